// tensorpar/check/facts.hpp - what the checker knows of layouts, shardings and reshards: worked out device by
// device, each kind once
#pragma once
#include <array>
#include <map>
#include <tensorpar/check/boxes.hpp>
#include <tensorpar/ir/exchange.hpp>

namespace tensorpar::detail::check {

/// What is wrong, and on which device it shows first. No text: nothing.
struct complaint {
  fault code = fault::malformed;
  int device = -1;
  std::string text;
  explicit operator bool() const { return !text.empty(); }
};

/// A layout of a shape: its devices, ascending (none: it fits no such shape or machine), elements of a part,
/// shares of a sum.
struct placement { std::vector<int> devices; i64 elements = 0, shares = 1; };
/// An operator under a mesh: why it does not fit, or its devices and in how many shares each result comes.
struct running { std::string why; std::vector<int> devices; std::vector<i64> shares; };
/// An operand in a buffer: is every device's part the one that it needs? Which shares of the buffer's sum are
/// read.
struct reading { complaint wrong; std::vector<i64> shares; };
/// A result in a buffer: is every device's part the one that the buffer states? By share of the buffer's sum:
/// the result's share.
struct writing { complaint wrong; std::vector<i64> share; };
/// A reshard between two buffers: does it lead from the one's parts to the other's? By share of the sum
/// after: the shares before that are added up in it; all together each once. Elements that a device packs.
struct moving { complaint wrong; std::vector<std::vector<i64>> from; i64 elements = 0; };

class arrivals;

/// Facts by what they are about. A program repeats itself, layer by layer, and what is true of one operator,
/// mesh and layouts is true of equal ones: so geometry costs O(different ones * devices), and a replay does
/// not depend on the number of devices.
class facts {
 public:
  /// `only`: programs list this device alone; -1: all.
  explicit facts(int devices, int only = -1) : devices_(devices), only_(only) {}
  int devices() const { return devices_; }
  int only() const { return only_; }
  void look_at(int only) { only_ = only; }
  /// Are these the devices that a program lists for `all` of them?
  bool lists(std::vector<int> const& listed, std::vector<int> const& all) const {
    if (only_ < 0) return listed == all;
    bool const there = std::binary_search(all.begin(), all.end(), only_);
    return listed == (there ? std::vector<int>{only_} : std::vector<int>{});
  }

  // Numbers for layouts, operators and operators under meshes: equal ones have the same.
  int layout_number(ir::layout const& l, shape const& s) {
    key_.clear();
    add(s);
    key_.push_back(l.start);
    for (ir::layout_axis const& a : l.axes)
      key_.insert(key_.end(), {static_cast<i64>(a.kind), a.dim, a.degree, a.stride});
    auto const [number, fresh] = numbered(layouts_, layout_.size());
    if (fresh) {
      layout_.push_back({l, s});
      std::vector<place> const& at = places_of(number);
      placement p;
      p.devices = devices_of(at);
      for (ir::layout_axis const& a : l.axes)
        if (!at.empty() && a.kind == ir::part_kind::partial) p.shares *= a.degree;
      if (!at.empty()) p.elements = at.front().at.volume();
      placed_.push_back(std::move(p));
    }
    return number;
  }
  int operator_number(graph_node const& n, std::vector<shape> const& in, std::vector<shape> const& out) {
    auto const itself = [](shape const& s) -> shape const& { return s; };
    return operator_number(n, in, out, itself);
  }
  int operator_number(computation_graph const& g, int v) {
    graph_node const& n = g.node(v);
    return operator_number(n, n.in, n.out, [&](int value) -> shape const& { return g.type(value); });
  }
  int run_number(int op, ir::sharding const& mesh) {
    key_.assign({op, mesh.start});
    for (ir::mesh_axis const& a : mesh.axes) key_.insert(key_.end(), {a.letter, a.degree, a.stride});
    auto const [number, fresh] = numbered(runs_, run_.size());
    if (fresh) {
      run_.push_back({op, mesh});
      sharding_work const& w = work_of(number);
      running_.push_back({w.why, w.devices, w.shares});
    }
    return number;
  }
  /// The devices that a mesh names, ascending; none: it means nothing here.
  std::vector<int> const& devices_of_mesh(ir::sharding const& mesh) {
    std::vector<i64> key{mesh.start};
    for (ir::mesh_axis const& a : mesh.axes) key.insert(key.end(), {a.degree, a.stride});
    auto const [it, fresh] = meshes_.insert({std::move(key), {}});
    if (fresh) it->second = devices_of(walk(mesh.start, mesh.axes, devices_).all);
    return it->second;
  }
  placement const& placed(int layout) const { return placed_[idx(layout)]; }
  running const& runs(int run) const { return running_[idx(run)]; }
  int layouts() const { return static_cast<int>(placed_.size()); }

  reading const& reads(int run, int operand, int layout) {
    auto const [it, fresh] = reads_.insert({{run, operand, layout}, {}});
    if (fresh) it->second = work_out_reading(run, idx(operand), layout);
    return it->second;
  }
  writing const& writes(int run, int result, int layout) {
    auto const [it, fresh] = writes_.insert({{run, result, layout}, {}});
    if (fresh) it->second = work_out_writing(run, idx(result), layout);
    return it->second;
  }
  /// Precondition: the layouts are the step's, and fit.
  moving const& moves(ir::reshard_step const& m, int before, int after) {
    std::vector<i64> key{static_cast<i64>(m.kind), m.from_dim, m.to_dim, before, after};
    for (ir::group_axis const& a : m.group) key.insert(key.end(), {a.degree, a.stride});
    auto const [it, fresh] = moves_.insert({std::move(key), {}});
    if (fresh) it->second = work_out_moving(m, before, after);
    return it->second;
  }
  /// The most elements that one device of the first layout may have to pack for one of the second.
  i64 largest_common(int before, int after) {
    auto const [it, fresh] = common_.insert({{before, after, 0}, 0});
    if (fresh) {
      std::vector<place> const a = places_of(before), &b = places_of(after);
      for (place const& p : a)
        for (place const& q : b) it->second = std::max(it->second, common(p.at, q.at).volume());
    }
    return it->second;
  }

 private:
  struct op_facts { graph_node node; ir::iteration_space space; std::vector<shape> in, out; };
  template <class T> using kept = std::map<std::array<int, 3>, T>;

  int devices_, only_;
  std::vector<i64> key_;                    // what is looked for, without a new list each time
  std::map<std::vector<i64>, int> layouts_, operators_, runs_;
  std::vector<std::pair<ir::layout, shape>> layout_;
  std::vector<placement> placed_;
  std::vector<op_facts> operator_;
  std::vector<std::pair<int, ir::sharding>> run_;
  std::vector<running> running_;
  kept<reading> reads_;
  kept<writing> writes_;
  kept<i64> common_;
  std::map<std::vector<i64>, moving> moves_;
  std::map<std::vector<i64>, std::vector<int>> meshes_;
  // parts by device take room: those asked for last
  std::vector<std::pair<int, std::vector<place>>> recent_places_;
  std::pair<int, sharding_work> recent_work_{-1, {}};

  void add(shape const& s) {
    key_.push_back(s.rank);
    for (int d = 0; d < s.rank; ++d) key_.push_back(s.d[d].n);
  }
  /// The number of `key_`, which is `next` if there is none yet; and whether it is new.
  std::pair<int, bool> numbered(std::map<std::vector<i64>, int>& known, std::size_t next) const {
    auto const it = known.lower_bound(key_);
    if (it != known.end() && it->first == key_) return {it->second, false};
    known.emplace_hint(it, key_, static_cast<int>(next));
    return {static_cast<int>(next), true};
  }
  /// `type` of what `in` and `out` list: their shapes.
  template <class Operand, class Type>
  int operator_number(graph_node const& n, std::vector<Operand> const& in, std::vector<Operand> const& out,
                      Type const& type) {
    key_.assign({static_cast<i64>(n.op.op->id), n.phase == step_phase::forward, static_cast<i64>(in.size())});
    key_.insert(key_.end(), std::begin(n.op.attr), std::end(n.op.attr));
    key_.push_back(static_cast<i64>(n.letters.size()));
    key_.insert(key_.end(), n.letters.begin(), n.letters.end());
    for (auto const* side : {&in, &out})
      for (Operand const& x : *side) {
        key_.push_back(static_cast<i64>(type(x).type));
        add(type(x));
      }
    auto const [number, fresh] = numbered(operators_, operator_.size());
    if (!fresh) return number;
    op_facts made;
    for (Operand const& x : in) made.in.push_back(type(x));
    for (Operand const& x : out) made.out.push_back(type(x));
    made.space = ir::space_of(n.op, made.in, made.out);
    made.node.op = n.op;
    made.node.phase = n.phase;
    made.node.letters = n.letters;
    operator_.push_back(std::move(made));
    return number;
  }
  /// Until the next eight layouts are asked for.
  std::vector<place> const& places_of(int layout) {
    for (std::size_t i = 0; i < recent_places_.size(); ++i)
      if (recent_places_[i].first == layout) {
        std::rotate(recent_places_.begin(), recent_places_.begin() + static_cast<std::ptrdiff_t>(i),
                    recent_places_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        return recent_places_.front().second;
      }
    if (recent_places_.size() == 8) recent_places_.pop_back();
    auto const& [l, s] = layout_[idx(layout)];
    recent_places_.insert(recent_places_.begin(), {layout, places(l, s, devices_)});
    return recent_places_.front().second;
  }
  sharding_work const& work_of(int run) {
    if (recent_work_.first != run) {
      op_facts const& o = operator_[idx(run_[idx(run)].first)];
      recent_work_ = {run, works(o.node, o.space, o.in, o.out, run_[idx(run)].second, devices_)};
    }
    return recent_work_.second;
  }
  int rank_of(int layout) const { return layout_[idx(layout)].second.rank; }

  // check_geometry.hpp
  reading work_out_reading(int run, std::size_t operand, int layout);
  writing work_out_writing(int run, std::size_t result, int layout);
  moving work_out_moving(ir::reshard_step const& m, int before, int after);
  void keep(std::vector<place> const& before, std::vector<place> const& after, arrivals& to);
  void exchange(std::vector<place> const& before, std::vector<place> const& after, arrivals& to);
  bool collective(ir::reshard_step const& m, std::vector<place> const& before, int layout, arrivals& to);
};

}  // namespace tensorpar::detail::check
