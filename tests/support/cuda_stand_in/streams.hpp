// tests/support/cuda_stand_in/streams.hpp - streams, events and captures: what was asked for, what it waits for, and doing it
#pragma once
#include "machine.hpp"
#include "races.hpp"
#include <deque>
#include <memory>
#include <set>
#include <thread>
#include <utility>

namespace cuda_stand_in {

using work = std::function<cudaError_t()>;
struct queue;
struct operation {
  queue* in;
  work run;                                    // null: a place in the queue
  std::vector<std::shared_ptr<operation>> after;
  bool done = false;
  std::uint64_t time = 0;
  std::uint32_t number = 0;                    // in the queue
  progress before = {}, through = {};          // what it knows to be done, and who waits for it does
};
using place = std::shared_ptr<operation>;

struct node {
  work run;
  std::vector<std::size_t> after;
};
struct capture {
  queue* origin;
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  std::vector<node> nodes;
  bool invalid = false, ended = false;
};
/// A line of work while this lives (races.hpp); lines are used again, and go on where they were.
class line_of_work {
  struct lines {
    std::vector<std::uint32_t> asked{0};       // the host's is the first
    std::vector<unsigned> idle;
  };
  static lines& all() {
    static lines& a = *new lines;              // queues may go after everything else
    return a;
  }
  unsigned number_;

 public:
  line_of_work() {
    if (all().idle.empty()) {
      number_ = static_cast<unsigned>(all().asked.size());
      all().asked.push_back(0);
    } else {
      number_ = all().idle.back();
      all().idle.pop_back();
    }
  }
  line_of_work(line_of_work&& b) noexcept : number_(std::exchange(b.number_, 0)) {}
  line_of_work& operator=(line_of_work&&) = delete;
  ~line_of_work() { if (number_) all().idle.push_back(number_); }
  unsigned number() const { return number_; }
  /// So much more is asked for: the number of what was before.
  std::uint32_t ask(std::uint32_t n) const { return std::exchange(all().asked[number_], all().asked[number_] + n); }
};
struct queue {
  int gpu;
  bool blocking;                               // it and the default stream wait for each other
  std::deque<place> waiting;
  place last;
  std::shared_ptr<capture> writes;             // null: work is done
  std::set<std::size_t> tips;                  // nodes that the next one comes after
  line_of_work line = {};
  progress knows = {};                         // what was done before the next that is asked for
};

/// Nodes in an order that their graph allows, each in a line where it comes after all before it.
struct chained_nodes {
  struct member {
    work run;
    std::vector<std::size_t> after;            // places in this order
    std::size_t chain;
    std::uint32_t number;                      // in the chain, from 1
  };
  std::vector<member> all;
  std::vector<line_of_work> lines;             // of the chains
  std::vector<std::uint32_t> lengths;
  chained_nodes(std::vector<node> const& nodes, std::vector<std::size_t> const& order) {
    std::vector<std::size_t> at(nodes.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
      at[order[k]] = k;
      node const& n = nodes[order[k]];
      member x{n.run, {}, lines.size(), 1};
      for (std::size_t a : n.after) {
        x.after.push_back(at[a]);
        member const& b = all[at[a]];
        if (x.chain == lines.size() && b.number == lengths[b.chain]) {
          x.chain = b.chain;
          x.number = b.number + 1;
        }
      }
      if (x.chain == lines.size()) {
        lines.emplace_back();
        lengths.push_back(0);
      }
      lengths[x.chain] = x.number;
      all.push_back(std::move(x));
    }
  }
};

/// All queues, also those whose streams were destroyed before their work was done.
class scheduler {
  the_machine& m_ = the_machine::get();
  int open_ = -1;
  std::vector<std::shared_ptr<capture>> captures_;

  void open(int gpu) {
    if (open_ == gpu) return;
    if (open_ >= 0) m_.memory.allow(open_, false);
    if (gpu >= 0) m_.memory.allow(gpu, true);
    open_ = gpu;
  }
  void perform(operation& o) {
    m_.clock += 1000;
    if (o.run && m_.state(o.in->gpu) == cudaSuccess) {
      open(o.in->gpu);
      races::enter(o.in->line.number(), o.number, o.before);
      if (cudaError_t const s = o.run(); s != cudaSuccess) m_.broken[o.in->gpu] = s;
      races::leave();
      m_.complain_of_races(o.in->gpu);
    }
    o.run = nullptr;
    o.after.clear();
    o.time = m_.clock;
    o.done = true;
    place const keep = o.in->waiting.front();
    o.in->waiting.pop_front();
  }
  void finish_open(operation& o) {
    while (!o.done) {
      place const front = o.in->waiting.front();
      for (place const& a : std::vector<place>(front->after)) finish_open(*a);
      perform(*front);
    }
  }

 public:
  std::map<int, std::shared_ptr<queue>> legacy;           // the default stream of each GPU
  std::vector<std::shared_ptr<queue>> queues;

  static scheduler& get() {
    static scheduler s;
    return s;
  }
  /// The GPU whose memory may be touched now.
  int opened() const { return open_; }
  queue& default_of(int gpu) {
    auto& q = legacy[gpu];
    if (!q) q = std::make_shared<queue>(queue{gpu, false, {}, nullptr, nullptr, {}});
    return *q;
  }
  /// Does what o waits for, and o.
  void finish(place const& o) {
    if (!o || o->done) return;
    finish_open(*o);
    open(-1);
  }
  /// The host waits for it, or hears that it is done.
  void wait_for(place const& o) {
    finish(o);
    if (o) races::host_learns(o->through);
  }
  void finish_all(int gpu) {
    for (auto const& q : queues) if (q->gpu == gpu) finish(q->last);
    finish(default_of(gpu).last);
  }
  void wait_for_all(int gpu) {
    for (auto const& q : queues) if (q->gpu == gpu) wait_for(q->last);
    wait_for(default_of(gpu).last);
  }
  /// One more of what o waits for, or o.
  void step(place const& o) {
    operation* next = o.get();
    for (bool found = false; !found;) {
      next = next->in->waiting.front().get();
      found = true;
      for (place const& a : next->after)
        if (!a->done) {
          next = a.get();
          found = false;
          break;
        }
    }
    perform(*next);
    open(-1);
  }
  /// Some of what may be done now.
  void shuffle() {
    for (std::uint64_t k = m_.next_draw() % 4; k > 0 && !queues.empty(); --k) {
      queue& q = *queues[m_.next_draw() % queues.size()];
      if (!q.waiting.empty()) step(q.waiting.front());
    }
  }
  void forget_idle() {
    std::erase_if(queues, [](std::shared_ptr<queue> const& q) { return q.use_count() == 1 && q->waiting.empty(); });
  }

  // --- captures
  std::shared_ptr<capture> begin(queue& q, cudaStreamCaptureMode mode) {
    q.writes = std::make_shared<capture>(capture{&q, mode, std::this_thread::get_id(), {}});
    q.tips.clear();
    captures_.push_back(q.writes);
    return q.writes;
  }
  void end(capture& c) {
    c.ended = true;
    for (auto const& q : queues)
      if (q->writes.get() == &c) {
        q->writes = nullptr;
        q->tips.clear();
      }
    std::erase_if(captures_, [&](auto const& x) { return x.get() == &c; });
  }
  /// A call that would not be part of a capture, although it may have to be: not while this thread captures, nor, if it does so for all
  /// threads, another.
  bool refuse_unsafe() {
    bool refused = false;
    for (auto const& c : captures_)
      if (c->mode == cudaStreamCaptureModeGlobal ||
          (c->mode == cudaStreamCaptureModeThreadLocal && c->thread == std::this_thread::get_id()))
        c->invalid = refused = true;
    return refused;
  }
  bool capturing_on(int gpu) {
    bool any = false;
    for (auto const& q : queues)
      if (q->gpu == gpu && q->writes) q->writes->invalid = any = true;
    return any;
  }
  /// `through`: what is done when this is, beside itself.
  cudaError_t ask(queue& q, work run, std::vector<place> after = {}, progress const& through = {}) {
    if (q.writes) {
      if (q.writes->invalid) return cudaErrorStreamCaptureInvalidated;
      q.writes->nodes.push_back({std::move(run), {q.tips.begin(), q.tips.end()}});
      q.tips = {q.writes->nodes.size() - 1};
      return cudaSuccess;
    }
    if (&q == &default_of(q.gpu)) {
      for (auto const& b : queues) {
        if (b->gpu != q.gpu || !b->blocking) continue;
        if (b->writes) {
          b->writes->invalid = true;
          return cudaErrorStreamCaptureImplicit;
        }
        if (b->last) after.push_back(b->last);
      }
    } else if (place const& d = default_of(q.gpu).last; q.blocking && d) {
      after.push_back(d);
    }
    for (place const& a : after) learn(q.knows, a->through);
    std::erase_if(after, [](place const& a) { return a->done; });
    learn(q.knows, races::host());
    learn(q.knows, 0, races::host_goes_on());
    q.last = std::make_shared<operation>(operation{&q, std::move(run), std::move(after)});
    q.last->number = q.line.ask(1) + 1;
    q.last->before = q.knows;
    learn(q.knows, q.line.number(), q.last->number);
    learn(q.knows, through);
    q.last->through = q.knows;
    q.waiting.push_back(q.last);
    if (m_.when == schedule::early) finish(q.last);
    if (m_.when == schedule::shuffled) shuffle();
    return cudaSuccess;
  }
  /// All nodes, as one piece of work of the queue.
  cudaError_t replay(queue& q, std::shared_ptr<chained_nodes> const& graph) {
    std::vector<std::uint32_t> base;
    progress through;
    for (std::size_t c = 0; c < graph->lines.size(); ++c) {
      base.push_back(graph->lines[c].ask(graph->lengths[c]));
      learn(through, graph->lines[c].number(), base[c] + graph->lengths[c]);
    }
    return ask(q, [graph, base] {
      progress const before = races::known();
      std::vector<progress> knows;
      for (auto const& n : graph->all) {
        progress p = before;
        for (std::size_t a : n.after) learn(p, knows[a]);
        unsigned const line = graph->lines[n.chain].number();
        std::uint32_t const number = base[n.chain] + n.number;
        races::enter(line, number, p);
        if (cudaError_t const s = n.run(); s != cudaSuccess) return s;
        learn(p, line, number);
        knows.push_back(std::move(p));
      }
      return cudaSuccess;
    }, {}, through);
  }
};

/// A graph's nodes in an order that it allows: late, the last first that may be; else as they were asked for.
inline std::vector<std::size_t> order_of(std::vector<node> const& nodes, schedule when) {
  std::vector<std::size_t> r;
  std::vector<char> done(nodes.size(), 0);
  auto const ready = [&](std::size_t k) {
    for (std::size_t a : nodes[k].after) if (!done[a]) return false;
    return !done[k];
  };
  while (r.size() < nodes.size())
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      std::size_t const at = when == schedule::late ? nodes.size() - 1 - k : k;
      if (!ready(at)) continue;
      done[at] = 1;
      r.push_back(at);
      break;
    }
  return r;
}

}  // namespace cuda_stand_in

struct CUstream_st { std::shared_ptr<cuda_stand_in::queue> q; };
struct CUevent_st {
  int gpu;
  unsigned flags;
  cuda_stand_in::place at;                     // null: nowhere yet
  std::shared_ptr<cuda_stand_in::capture> written;        // by this capture
  std::set<std::size_t> tips;
};
struct CUgraph_st { std::vector<cuda_stand_in::node> nodes; };
struct CUgraphExec_st {
  int gpu;
  std::shared_ptr<cuda_stand_in::chained_nodes> nodes;
};
