// tensorpar/tool/cli_door.hpp - the only door to CLI11, which reads command lines
#pragma once
#include <CLI/CLI.hpp>
