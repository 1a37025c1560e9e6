// examples/far_device.hpp - a device whose memory the host cannot read, as an accelerator's; here other addresses for the host's own
#pragma once
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/executor.hpp>

namespace far {

using namespace tensorpar;

// [quoted: memory]
/// Addresses are moved to where no program has memory, so whoever uses one without asking the memory first ends with a fault.
struct far_memory {
  u64 shift;

  explicit far_memory(int device) : shift((u64{1} << 47) + (static_cast<u64>(device) << 40)) {}
  template <class T> T* near(T* p) const { return p ? reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(p) - shift) : p; }

  std::byte* allocate(i64 n) const {
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(exec::host_memory{}.allocate(n)) + shift);
  }
  void release(std::byte* p, i64 n) const { exec::host_memory{}.release(near(p), n); }
  void write(void* p, void const* h, i64 n) const { exec::host_memory{}.write(near(p), h, n); }
  void read(void* h, void const* p, i64 n) const { exec::host_memory{}.read(h, near(p), n); }
  template <class S>
  void move_box(op::tensor_block const& box, op::tensor_block const& from, S const* src, op::tensor_block const& to, S* dst,
                bool adds) const {
    exec::host_memory{}.move_box(box, from, near(src), to, near(dst), adds);
  }
  void wait() const {}
};
// [end]

// [quoted: policy]
/// Computes in it: made for each device, with that device's memory.
template <class Scalar> class far_compute {
  far_memory memory_;

 public:
  using scalar_type = Scalar;
  using memory = far_memory;
  explicit far_compute(exec::device_place at) : memory_(at.device) {}
  far_memory device_memory() const { return memory_; }
  static bool supports(op::any_op const& o) { return compute::eigen<Scalar>::supports(o); }
  static i64 workspace(op::any_op const& o, shapes in, shapes out) { return compute::eigen<Scalar>::workspace(o, in, out); }
  void run(exec::kernel_call const& c) const {
    std::vector<void const*> in;
    std::vector<void*> out;
    for (int k = 0; k < c.inputs; ++k) in.push_back(memory_.near(c.in[k]));
    for (int k = 0; k < c.outputs; ++k) out.push_back(memory_.near(c.out[k]));
    exec::kernel_call here = c;
    here.in = in.data();
    here.out = out.data();
    here.workspace = memory_.near(c.workspace);
    compute::eigen<Scalar>{}.run(here);
  }
};
// [end]

// [quoted: communicator]
/// Says the same `memory`, else the executor does not take the two together.
struct far_threads : comm::threads {
  using memory = far_memory;
  far_memory own;
  far_threads(world& h, int rank, far_memory m) : comm::threads(h, rank), own(m) {}       // the executor hands it the device's
  template <class E> void all_reduce(group const& g, E const* in, E* out, i64 n) {
    comm::threads::all_reduce(g, own.near(in), own.near(out), n);
  }
  template <class E> void reduce_scatter(group const& g, E const* in, E* out, i64 n) {
    comm::threads::reduce_scatter(g, own.near(in), own.near(out), n);
  }
  template <class E> void all_gather(group const& g, E const* in, E* out, i64 n) {
    comm::threads::all_gather(g, own.near(in), own.near(out), n);
  }
  template <class E> void all_to_all(group const& g, E const* in, E* out, i64 n) {
    comm::threads::all_to_all(g, own.near(in), own.near(out), n);
  }
  template <class E> void broadcast(group const& g, int root, E* data, i64 n) { comm::threads::broadcast(g, root, own.near(data), n); }
  template <class E> void send(int to, int tag, E const* data, i64 n) { comm::threads::send(to, tag, own.near(data), n); }
  template <class E> void receive(int from, int tag, E* data, i64 n) { comm::threads::receive(from, tag, own.near(data), n); }
};
// [end]

}  // namespace far
