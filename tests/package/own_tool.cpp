// tests/package/own_tool.cpp - a program outside the project: the tool for a graph of its own
// [quoted: own]
#include <tensorpar/tool/tool.hpp>
#include <tensorpar/typed/lower.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, classes{"classes"};

struct mlp {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, 64});
    auto label = g.input("label", {batch}, dtype::i32);
    g.output("loss", all(x | linear{256} | relu{} | linear{.out = 10, .to = classes}, label) | cross_entropy{});
  }
};

int main(int argc, char** argv) { return tool(argc, argv, lower(typed<mlp>, {batch = 1}), "mlp"); }
// [end]
