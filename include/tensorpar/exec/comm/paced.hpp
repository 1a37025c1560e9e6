// tensorpar/exec/comm/paced.hpp - devices and links that take as long as a model says: to compare plans and
// schedules on any machine
#pragma once
#include <chrono>
#include <string>
#include <tensorpar/exec/device/concepts.hpp>
#include <tensorpar/ir/reshard.hpp>
#include <thread>
#include <vector>

namespace tensorpar::exec::detail {
/// Begins when it is made. `last` sleeps until so many seconds have passed since.
class paced_work {
  using clock = std::chrono::steady_clock;
  clock::time_point start_ = clock::now();

 public:
  void last(double seconds) const {
    std::chrono::duration<double> const all(seconds);
    std::this_thread::sleep_until(start_ + std::chrono::duration_cast<clock::duration>(all));
  }
};
}  // namespace tensorpar::exec::detail

namespace tensorpar::compute {

/// `Policy`, but every operator takes at least `Seconds(op, in, out)` (shapes of this device's parts): after
/// the work is done the device sleeps. So many devices on few cores behave like devices of their own, and a
/// measured step can be compared with a simulated one whose cost model says the same. Precondition of a fair
/// comparison: the work itself takes less than its price on the cores at hand.
template <exec::compute_policy Policy, double (*Seconds)(op::any_op const&, shapes, shapes)> struct paced {
  using scalar_type = typename Policy::scalar_type;
  Policy policy;

  static std::string name() requires requires { std::string(Policy::name()); } { return Policy::name(); }
  static bool supports(op::any_op const& o) { return Policy::supports(o); }
  static i64 workspace(op::any_op const& o, shapes in, shapes out) { return Policy::workspace(o, in, out); }
  void run(exec::kernel_call const& c) const {
    exec::detail::paced_work const work;
    policy.run(c);
    std::vector<shape> in, out;
    for (int k = 0; k < c.inputs; ++k) in.push_back(c.in_block[k].local_shape());
    for (int k = 0; k < c.outputs; ++k) out.push_back(c.out_block[k].local_shape());
    work.last(Seconds(*c.op, {in.data(), c.inputs}, {out.data(), c.outputs}));
  }
};

}  // namespace tensorpar::compute

namespace tensorpar::comm {

/// `Comm` over slow links: a collective takes at least `Seconds(kind, members, bytes)` from when all its
/// members are there, a message as long from when it is there. `bytes`: what one device holds before a
/// reduction, after a gathering, on either side of an all-to-all, or what one message brings; that is
/// ir::reshard_kind::exchange, of two members. Who sends a message goes on at once, and a broadcast takes no
/// time, as no plan asks for one. A device computes while it communicates, whether `Comm` alone would let it
/// or not. Precondition: operations of `Comm` may run on another thread than the device's computing.
template <class Comm, double (*Seconds)(ir::reshard_kind, i64, double)> class paced : public Comm {
  using kind = ir::reshard_kind;

  /// Meets the others, does it, and sleeps.
  template <class Do> void at_pace(typename Comm::group const& g, kind k, double bytes, Do const& move) {
    Comm::barrier(g);
    exec::detail::paced_work const work;
    move();
    work.last(Seconds(k, g.size(), bytes));
  }
  template <class Element> static double bytes_of(i64 n) {
    return static_cast<double>(n) * static_cast<double>(sizeof(Element));
  }

 public:
  using typename Comm::group;
  static constexpr bool overlaps = true;
  using Comm::Comm;

  template <class Element> void all_reduce(group const& g, Element const* in, Element* out, i64 n) {
    at_pace(g, kind::all_reduce, bytes_of<Element>(n), [&] { Comm::all_reduce(g, in, out, n); });
  }
  template <class Element> void reduce_scatter(group const& g, Element const* in, Element* out, i64 n) {
    at_pace(g, kind::reduce_scatter, bytes_of<Element>(n * g.size()),
            [&] { Comm::reduce_scatter(g, in, out, n); });
  }
  template <class Element> void all_gather(group const& g, Element const* in, Element* out, i64 n) {
    at_pace(g, kind::all_gather, bytes_of<Element>(n * g.size()), [&] { Comm::all_gather(g, in, out, n); });
  }
  template <class Element> void all_to_all(group const& g, Element const* in, Element* out, i64 n) {
    at_pace(g, kind::all_to_all, bytes_of<Element>(n * g.size()), [&] { Comm::all_to_all(g, in, out, n); });
  }
  template <class Element> void receive(int from, int tag, Element* data, i64 n) {
    Comm::receive(from, tag, data, n);
    exec::detail::paced_work().last(Seconds(kind::exchange, 2, bytes_of<Element>(n)));
  }
};

}  // namespace tensorpar::comm
