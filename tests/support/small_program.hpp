// tests/support/small_program.hpp - a program written by hand, on one device
#pragma once
#include <tensorpar/program/core/program.hpp>

namespace tests {

using namespace tensorpar;

struct small_program {
  program p;
  small_program() { p.arena = {1 << 20}; }
  /// A value, or scratch, of floats.
  void add_buffer(shape const& s, bool value = true) {
    buffer f;
    if (value) f.value = static_cast<int>(p.buffers.size());
    f.type = s;
    f.bytes = s.elements() * 4;
    f.devices = {0};
    p.buffers.push_back(f);
  }
  void add_task(op::any_op const& o, std::vector<int> in, std::vector<int> out) {
    task t;
    t.node = static_cast<int>(p.tasks.size());
    t.op = o;
    t.in = std::move(in);
    t.out = std::move(out);
    t.devices = {0};
    p.tasks.push_back(t);
  }
  buffer& at(int i) { return p.buffers[static_cast<std::size_t>(i)]; }
  task& first() { return p.tasks[0]; }
  task& between() { return p.tasks[1]; }
};

}  // namespace tests
