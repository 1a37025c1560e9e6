// tensorpar/simulate/engine.hpp - a program run in virtual time on a machine
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/cost/groups.hpp>
#include <tensorpar/ir/machine/machine_check.hpp>
#include <tensorpar/program/core/task_lane.hpp>
#include <tensorpar/program/core/timeline.hpp>
#include <tensorpar/simulate/busy_times.hpp>
#include <tensorpar/simulate/prices.hpp>
#include <tensorpar/simulate/task_graph.hpp>
#include <utility>

namespace tensorpar {

struct simulation_options {
  // communication has lanes of its own (`passes::lane_of`); else all tasks of a device share one
  bool overlap = true;
  bool memory = true;        // fill timeline::memory
  friend bool operator==(simulation_options const&, simulation_options const&) = default;
};

namespace detail {

class simulator {
 public:
  simulator(program const& p, machine const& m, simulation::task_prices const& c, simulation_options o,
            bool lanes)
      : p_(p),
        m_(m),
        price_(c),
        use_(o),
        lanes_(lanes),
        each_(1 + idx(m.communication_lanes())),
        clock_(each_ * m.device.size()) {
    require_machine(m);
    std::size_t places = 0;
    sent_.assign(p.tasks.size(), 0);
    for (buffer const& b : p.buffers) { first_place_.push_back(places); places += b.devices.size(); }
    ready_.assign(places, 0);
    used_.assign(places, 0);
    touched_.assign(places, -1);
    packed_ = lanes && o.overlap && !p.buffers.empty();
    for (buffer const& b : p.buffers) packed_ = packed_ && b.offset.size() == b.devices.size();
    if (packed_) {
      born_.resize(p.tasks.size() + 1);
      for (std::size_t b = 0; b < p.buffers.size(); ++b)
        if (!p.buffers[b].persistent && p.buffers[b].bytes > 0)
          born_[std::min(idx(p.buffers[b].first), p.tasks.size())].push_back(b);
      arena_.resize(m.device.size());
    }
    if (!lanes) return;
    begin_.resize(each_ * m.device.size());
    std::vector<std::size_t> tasks(m.device.size(), 0);
    for (task const& t : p.tasks) for (int d : t.devices) ++tasks[idx(d)];
    for (std::size_t d = 0; d < tasks.size(); ++d) begin_[each_ * d].reserve(tasks[d]);
  }

  void run() {
    for (std::size_t t = 0; t < p_.tasks.size(); ++t) {
      if (packed_) claim(t);
      task const& x = p_.tasks[t];
      find_places(x);
      if (!x.communicates()) {
        for (std::size_t i = 0; i < x.devices.size(); ++i) carry_out(t, &i, 1, 0);
        continue;
      }
      if (x.step.kind == ir::reshard_kind::exchange || x.devices.size() == 1 ||
          x.step.group_size() == x.step.after.size()) {
        members_.clear();
        for (std::size_t i = 0; i < x.devices.size(); ++i) members_.push_back(i);
        talk(t, x.devices[0]);
        continue;
      }
      if (!p_.listed_for.empty()) {
        talk_for_others(t);
        continue;
      }
      for (auto const& g : cost::detail::groups_of(x.step)) {
        members_.clear();
        for (int d : g)
          members_.push_back(idx(
              std::lower_bound(x.devices.begin(), x.devices.end(), d) - x.devices.begin()));
        talk(t, g.front());
      }
    }
  }

  double seconds() const { return end_; }

  timeline result() && {
    timeline r;
    r.seconds = end_;
    std::size_t n = 0;
    for (auto const& l : begin_) n += l.size();
    r.spans.reserve(n);
    for (std::size_t i = 0; i < begin_.size(); ++i)
      for (simulation::lane_mark const& k : begin_[i])
        r.spans.push_back({static_cast<int>(i / each_), i % each_ ? lane::communication : lane::compute,
                           static_cast<int>(k.task), p_.tasks[k.task].name, k.start, k.end,
                           i % each_ ? static_cast<int>(i % each_) - 1 : 0});
    if (use_.memory) memory(r);
    return r;
  }

 private:
  struct range { i64 begin, end; std::size_t place; };

  program const& p_;
  machine const& m_;
  simulation::task_prices const& price_;
  simulation_options use_;
  bool lanes_, packed_ = false;
  std::size_t each_;                                                      // lanes of a device
  simulation::lane_clock clock_;                                          // each_ * device + lane
  // of a buffer: one place per device that holds it
  std::vector<std::size_t> first_place_;
  // by place: written; last read or written, or free to be; first touched
  std::vector<double> ready_, used_, touched_;
  std::vector<std::vector<std::size_t>> born_;                // buffers by the task that they live from
  // by device: who had which bytes last, ascending
  std::vector<std::vector<range>> arena_;
  std::vector<std::vector<simulation::lane_mark>> begin_;                      // by device and lane
  // of the task at hand: buffer * devices + device
  std::vector<std::size_t> places_, members_;
  std::vector<double> sent_;                                  // by task: when a send started
  double end_ = 0;
  static constexpr std::size_t nowhere = idx(-1);

  /// A buffer may be written only when all that used the same bytes before are done: with two lanes, the
  /// order of tasks does not say so.
  void claim(std::size_t t) {
    for (std::size_t b : born_[t]) {
      buffer const& x = p_.buffers[b];
      for (std::size_t i = 0; i < x.devices.size(); ++i) {
        std::vector<range>& a = arena_[idx(x.devices[i])];
        i64 const begin = x.offset[i], end = begin + x.bytes;
        std::size_t const place = first_place_[b] + i;
        auto const low =
            std::upper_bound(a.begin(), a.end(), begin, [](i64 v, range const& r) { return v < r.end; });
        auto high = low;
        double wait = 0;
        range left{0, 0, 0}, right{0, 0, 0};
        for (; high != a.end() && high->begin < end; ++high) {
          wait = std::max(wait, used_[high->place]);
          if (high->begin < begin) left = {high->begin, begin, high->place};
          if (high->end > end) right = {end, high->end, high->place};
        }
        ready_[place] = used_[place] = wait;
        range now[3];
        std::ptrdiff_t n = 0;
        if (left.end > left.begin) now[n++] = left;
        now[n++] = {begin, end, place};
        if (right.end > right.begin) now[n++] = right;
        std::ptrdiff_t const had = high - low, kept = std::min(had, n);
        auto const next = std::copy(now, now + kept, low);
        if (had > n) a.erase(next, next + (had - n));
        else a.insert(next, now + kept, now + n);
      }
    }
  }

  /// A collective of a program that lists one of the devices that do the same: each group of one that is
  /// listed, in which the others' listed ones stand for them.
  void talk_for_others(std::size_t t) {
    task const& x = p_.tasks[t];
    std::vector<char> done(x.devices.size(), 0);
    for (std::size_t i = 0; i < done.size(); ++i) {
      if (done[i]) continue;
      members_.clear();
      for (int d : x.step.members(x.devices[i])) {
        int const listed = p_.listed_for[idx(d)];
        std::size_t const k =
            idx(std::lower_bound(x.devices.begin(), x.devices.end(), listed) - x.devices.begin());
        if (!std::exchange(done[k], 1)) members_.push_back(k);
      }
      talk(t, x.devices[i]);
    }
  }

  /// Where each buffer of the task lies on each of its devices.
  void find_places(task const& x) {
    places_.clear();
    auto find = [&](int b) {
      buffer const& y = p_.buffers[idx(b)];
      std::size_t const first = first_place_[idx(b)];
      if (y.devices == x.devices) {
        for (std::size_t i = 0; i < x.devices.size(); ++i) places_.push_back(first + i);
        return;
      }
      for (int d : x.devices) {
        auto const it = std::lower_bound(y.devices.begin(), y.devices.end(), d);
        places_.push_back(it == y.devices.end() || *it != d
                              ? nowhere
                              : first + idx(it - y.devices.begin()));
      }
    };
    for (int b : x.in) find(b);
    for (int b : x.out) find(b);
    if (x.workspace >= 0) find(x.workspace);
  }

  /// Runs task t on its `members_`, the group of this device or all of an exchange.
  void talk(std::size_t t, int device) {
    carry_out(t, members_.data(), members_.size(), idx(passes::lane_of(p_.tasks[t], device, m_)));
  }
  /// Runs task t on some of its devices (by index) together: all start when the last of them can.
  void carry_out(std::size_t t, std::size_t const* who, std::size_t n, std::size_t l) {
    task const& x = p_.tasks[t];
    std::size_t const width = x.devices.size(), reads = x.in.size(),
                      rows = width ? places_.size() / width : 0, writes = reads + x.out.size();
    if (!use_.overlap) l = 0;
    double start = 0, seconds = 0;
    for (std::size_t k = 0; k < n; ++k) {
      std::size_t const d = idx(x.devices[who[k]]);
      for (std::size_t r = 0; r < rows; ++r)
        if (std::size_t const place = places_[r * width + who[k]]; place != nowhere)
          start = std::max(start, r < reads || !lanes_ ? ready_[place] : used_[place]);
      if (lanes_) start = std::max(start, clock_.free_at(each_ * d + l));
      seconds = std::max(seconds, price_.of(t, m_.device[d]));
    }
    // what is received is on its way from the moment it was sent
    if (x.kind == task_kind::receive && x.other_half >= 0)
      start = std::max(start, sent_[idx(x.other_half)]);
    if (x.kind == task_kind::send) sent_[t] = start;
    if (lanes_ && l == 0 && n == 1) seconds += delay(idx(x.devices[who[0]]), start, seconds);
    double const end = start + seconds;
    for (std::size_t k = 0; k < n; ++k) {
      std::size_t const d = idx(x.devices[who[k]]);
      for (std::size_t r = 0; r < rows; ++r) {
        std::size_t const place = places_[r * width + who[k]];
        if (place == nowhere) continue;
        if (r >= reads && r < writes) ready_[place] = end;
        used_[place] = std::max(used_[place], end);
        if (touched_[place] < 0) touched_[place] = start;
      }
      if (!lanes_) continue;
      clock_.hold(each_ * d + l, end);
      begin_[each_ * d + l].push_back({t, start, end});
    }
    end_ = std::max(end_, end);
  }

  /// By how much longer a device computes for so many seconds because it communicates meanwhile.
  double delay(std::size_t device, double start, double seconds) const {
    double const share = m_.kind_of(static_cast<int>(device)).efficiency.while_communicating;
    if (share <= 0 || share >= 1 || !use_.overlap) return 0;
    simulation::busy_times talks(begin_.data() + each_ * device + 1, each_ - 1, start);
    double now = start, left = seconds, longer = 0;              // left at full speed
    for (simulation::lane_mark at{}; left > 0 && talks.next(at);) {
      double const alone = std::max(0.0, at.start - now);
      if (alone >= left) break;
      left -= alone;
      now += alone;
      double const both = std::min(at.end - now, left / share);
      left -= both * share;
      now += both;
      longer += both * (1 - share);
    }
    return longer;
  }

  void memory(timeline& r) const {
    struct change { double time; i64 bytes; };
    std::vector<std::vector<change>> by_device(m_.device.size());
    std::vector<i64> always(m_.device.size(), 0);
    for (std::size_t b = 0; b < p_.buffers.size(); ++b) {
      buffer const& x = p_.buffers[b];
      for (std::size_t i = 0; i < x.devices.size(); ++i) {
        std::size_t const d = idx(x.devices[i]), place = first_place_[b] + i;
        if (x.persistent) { always[d] = core::saturating_add(always[d], x.bytes); continue; }
        if (touched_[place] < 0 || x.bytes == 0) continue;
        // bytes taken over are counted from when their last owner was done with them
        double const from =
            x.in_place_of < 0
                ? touched_[place]
                : std::max(touched_[place], used_[first_place_[idx(x.in_place_of)] + i]);
        by_device[d].push_back({std::min(from, used_[place]), x.bytes});
        by_device[d].push_back({used_[place], -x.bytes});
      }
    }
    for (std::size_t d = 0; d < by_device.size(); ++d) {
      auto& c = by_device[d];
      std::sort(c.begin(), c.end(), [](change const& a, change const& b) {
        return a.time != b.time ? a.time < b.time : a.bytes < b.bytes;
      });
      i64 now = always[d];
      r.memory.push_back({static_cast<int>(d), 0, now});
      for (std::size_t i = 0; i < c.size(); ++i) {
        now += c[i].bytes;
        if (i + 1 < c.size() && c[i + 1].time == c[i].time) continue;
        if (r.memory.back().device == static_cast<int>(d) && r.memory.back().time == c[i].time)
          r.memory.back().bytes = now;
        else r.memory.push_back({static_cast<int>(d), c[i].time, now});
      }
    }
  }
};

}  // namespace detail

/// Runs the program in virtual time. A device has one compute lane and one communication lane, or one for
/// each level of links (`machine::lane_per_link`), each in program order. A task starts when its operands are
/// there, when the bytes it writes are no longer used, and when its lane is free. A collective starts when
/// this holds for every member of the group; an exchange, when it holds for all devices of both sides. A
/// slice is a local copy and belongs to the compute lane. What a device computes while it communicates takes
/// longer where its kind says so (`kernel_efficiency::while_communicating`); communication that comes later
/// in the program delays nothing. A task waits only for tasks that stand earlier in the program, so one pass
/// in program order is an event-driven run. Throws `error` for a machine that means nothing
/// (ir/machine/machine_check.hpp).
/// Laws: critical_path <= seconds <= serial_seconds; deterministic; memory over time never exceeds the arena.
/// O(places * log + tasks * devices), places = buffers times the devices that hold them.
template <class = void>
timeline simulate(program const& p, machine const& on, simulation::task_prices const& price,
                         simulation_options use = {}) {
  detail::simulator s(p, on, price, use, true);
  s.run();
  return std::move(s).result();
}
#ifdef TENSORPAR_COMPILED
extern template timeline simulate<>(program const& p, machine const& on, simulation::task_prices const&
    price, simulation_options use);
#endif
template <cost::cost_model M>
timeline simulate(program const& p, machine const& on, M const& model, simulation_options use = {}) {
  return simulate(p, on, simulation::price(p, on, model), use);
}
template <class M>
  requires(!cost::cost_model<M> && !std::same_as<M, simulation::task_prices>)
cost::cost_model_lack<M> simulate(program const&, machine const&, M const&, simulation_options = {});

/// Only data dependencies count: lanes without limit, no bytes used twice. A lower bound for every schedule
/// of this program.
inline double critical_path(program const& p, machine const& on, simulation::task_prices const& price) {
  detail::simulator s(p, on, price, {}, false);
  s.run();
  return s.seconds();
}

}  // namespace tensorpar
