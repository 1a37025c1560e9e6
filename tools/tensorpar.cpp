// tools/tensorpar.cpp - the program `tensorpar`: plans, compares, shows, diffs, checks and simulates the training of the zoo's models, and runs a demo
#include <tensorpar/tool/tool.hpp>

int main(int argc, char** argv) { return tensorpar::tool(argc, argv); }
