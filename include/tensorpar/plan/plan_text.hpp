// tensorpar/plan/plan_text.hpp - plans as text, whose nodes are written and read one after another: there may
// be a million of them
#pragma once
#include <optional>
#include <tensorpar/plan/codec.hpp>

namespace tensorpar {

namespace detail {

/// Would decode_node take it?
inline bool sound(op_strategy const& n, i64 devices) {
  if (n.sharding.start < 0 || n.sharding.start >= devices || n.sharding.axes.size() > 64) return false;
  i64 parts = 1, last = n.sharding.start;
  for (ir::mesh_axis const& a : n.sharding.axes) {
    if ((a.letter && !names_loop(a.letter)) || a.degree < 1 || a.degree > devices || a.stride < 1 ||
        a.stride > devices)
      return false;
    parts *= a.degree;
    last += (a.degree - 1) * a.stride;
    if (parts > devices || last >= devices) return false;
  }
  return true;
}

/// The nodes as json::dump(1) has them two levels down.
inline void put_indented(std::string& out, std::vector<op_strategy> const& nodes) {
  out += nodes.empty() ? "[]" : "[";
  for (op_strategy const& n : nodes) {
    out += &n == nodes.data() ? "\n  {\n   \"start\": " : ",\n  {\n   \"start\": ";
    put_number(out, n.sharding.start);
    out += n.sharding.axes.empty() ? ",\n   \"axes\": []" : ",\n   \"axes\": [";
    for (ir::mesh_axis const& a : n.sharding.axes) {
      out += &a == n.sharding.axes.data() ? "\n    {\n     \"letter\": \"" : ",\n    {\n     \"letter\": \"";
      if (a.letter) out += a.letter;
      out += "\",\n     \"degree\": ";
      put_number(out, a.degree);
      out += ",\n     \"stride\": ";
      put_number(out, a.stride);
      out += "\n    }";
    }
    if (!n.sharding.axes.empty()) out += "\n   ]";
    if (n.zero != ir::zero_stage::none)
      out.append(",\n   \"zero\": \"").append(zero_stage_names[static_cast<int>(n.zero)]).append("\"");
    out += n.recompute ? ",\n   \"recompute\": true\n  }" : "\n  }";
  }
  if (!nodes.empty()) out += "\n ]";
}

/// What nlohmann's parser reads of a plan: nodes as choices, all else as a value in which "nodes" is an empty
/// list. Stops where nodes do not look as they are written: to say what is wrong with them is for those who
/// read all as a value.
class plan_builder {
  enum class in { rest, nodes, node, axes, axis };
  enum : unsigned { start = 1, axes = 2, zero = 4, recompute = 8, letter = 16, degree = 32, stride = 64 };

  core::detail::json_builder rest_;
  in at_ = in::rest;
  int depth_ = 0;                        // of the rest
  bool next_ = false;                    // the next value is that of the outermost "nodes"
  unsigned key_ = 0, seen_ = 0, of_axis_ = 0;

  bool once(unsigned key, unsigned& seen) {
    bool const fresh = !(seen & key);
    seen |= key;
    key_ = key;
    return fresh && key != 0;
  }
  /// Values that are none of a node's.
  template <class Read> bool plain(Read const& read) {
    bool const instead_of_nodes = std::exchange(next_, false);
    return at_ == in::rest && !instead_of_nodes && read();
  }

 public:
  std::vector<op_strategy> nodes;

  plan_builder(std::string_view text, std::string const& where) : rest_(text, where) {}
  core::json rest() { return rest_.result(); }

  bool null() { return plain([&] { return rest_.null(); }); }
  bool boolean(bool x) {
    if (at_ != in::node) return plain([&] { return rest_.boolean(x); });
    return key_ == recompute && (nodes.back().recompute = x);
  }
  // below 0
  bool number_integer(core::json::number_integer_t x) {
    return plain([&] { return rest_.number_integer(x); });
  }
  bool number_unsigned(core::json::number_unsigned_t x) {
    if (at_ != in::node && at_ != in::axis) return plain([&] { return rest_.number_unsigned(x); });
    if (x > INT32_MAX) return false;
    if (at_ == in::node) nodes.back().sharding.start = static_cast<int>(x);
    else
      (key_ == degree ? nodes.back().sharding.axes.back().degree : nodes.back().sharding.axes.back().stride) =
          static_cast<i64>(x);
    return key_ == start || key_ == degree || key_ == stride;
  }
  bool number_float(core::json::number_float_t x, std::string const& s) {
    return plain([&] { return rest_.number_float(x, s); });
  }
  bool string(std::string& x) {
    if (at_ != in::node && at_ != in::axis) return plain([&] { return rest_.string(x); });
    if (at_ == in::axis) {
      if (key_ != letter || x.size() > 1 || (!x.empty() && x[0] == '\0')) return false;
      if (!x.empty()) nodes.back().sharding.axes.back().letter = x[0];
      return true;
    }
    for (ir::zero_stage s : {ir::zero_stage::updates, ir::zero_stage::weights, ir::zero_stage::gradients})
      if (key_ == zero && x == zero_stage_names[static_cast<int>(s)]) {
        nodes.back().zero = s;
        return true;
      }
    return false;
  }
  bool binary(core::json::binary_t&) { return false; }
  bool key(std::string& x) {
    if (at_ == in::node)
      return once(x == "start"       ? start
                  : x == "axes"      ? axes
                  : x == "zero"      ? zero
                  : x == "recompute" ? recompute
                                     : 0u,
                  seen_);
    if (at_ == in::axis)
      return once(x == "letter" ? letter : x == "degree" ? degree : x == "stride" ? stride : 0u, of_axis_);
    next_ = depth_ == 1 && x == "nodes";
    return rest_.key(x);
  }
  bool start_object(std::size_t n) {
    key_ = 0;
    if (at_ == in::nodes) {
      at_ = in::node;
      seen_ = 0;
      nodes.emplace_back();
      return true;
    }
    if (at_ == in::axes) {
      at_ = in::axis;
      of_axis_ = 0;
      nodes.back().sharding.axes.push_back({'\0', 0, 0});
      return true;
    }
    ++depth_;
    return plain([&] { return rest_.start_object(n); });
  }
  bool end_object() {
    if (at_ == in::axis) {
      at_ = in::axes;
      return of_axis_ == (letter | degree | stride);
    }
    if (at_ == in::node) {
      at_ = in::nodes;
      return (seen_ & (start | axes)) == (start | axes);
    }
    --depth_;
    return rest_.end_object();
  }
  bool start_array(std::size_t n) {
    if (at_ == in::node && key_ == axes) {
      at_ = in::axes;
      return true;
    }
    if (next_ && at_ == in::rest) {
      next_ = false;
      at_ = in::nodes;
      return rest_.start_array(n);
    }
    ++depth_;
    return plain([&] { return rest_.start_array(n); });
  }
  bool end_array() {
    if (at_ == in::axes) {
      at_ = in::node;
      key_ = 0;
      return true;
    }
    if (at_ == in::nodes) at_ = in::rest;
    else --depth_;
    return rest_.end_array();
  }
  bool parse_error(std::size_t, std::string const&, nlohmann::detail::exception const&) { return false; }
};

/// decode(parse_json(text, where), where) of a plan as it is written; nothing where that would be refused, or
/// may be.
inline std::optional<plan> decode_at_once(std::string_view text, std::string const& where) {
  if (text.find('\0') != text.npos || core::detail::json_too_deep(text) != text.npos) return std::nullopt;
  try {
    plan_builder b(text, where);
    if (!core::json::sax_parse(text.begin(), text.end(), &b)) return std::nullopt;
    core::json const rest = b.rest();
    if (!rest.is_object() || !rest.contains("cluster") || !rest.contains("nodes") ||
        !rest["nodes"].is_array())
      return std::nullopt;
    plan p = decode_around(rest, where, std::move(b.nodes));
    for (op_strategy const& n : p.nodes) if (!sound(n, p.cluster.size())) return std::nullopt;
    require_said(rest, where, p, checksum_of(p));
    return p;
  } catch (error const&) { return std::nullopt; }
}

}  // namespace detail

/// The plan written in `text`, as decode reads it; errors also say line and column where the text is not JSON
/// (cut short, for example). O(text).
inline plan decode_plan(std::string_view text, std::string const& where) {
  if (std::optional<plan> p = detail::decode_at_once(text, where)) return std::move(*p);
  return decode(core::parse_json(text, where), where);
}
/// encode(p).dump(1), and a last line's end. Throws `error` where decode would refuse it. O(plan).
inline std::string text_of(plan const& p, std::string const& where) {
  // no text holds a bare quote, and all other nodes are lists
  constexpr std::string_view place = "\"nodes\": \"\"";
  for (op_strategy const& n : p.nodes)
    if (!detail::sound(n, p.cluster.size())) {
      decode(encode(p), where);                                              // says what is wrong with it
      throw error("a node that no plan can hold", where, "nodes that decode reads");
    }
  core::json around = detail::encode_around(p, "");
  around["checksum"] = detail::checksum_of(p);
  (void)detail::decode_around(around, where, p.nodes);
  std::string text = around.dump(1) + "\n", r;
  std::size_t const at = text.find(place), first = at + place.size() - 2;
  r.reserve(text.size() + 160 * p.nodes.size());
  r.append(text, 0, first);
  detail::put_indented(r, p.nodes);
  return r.append(text, first + 2);
}

}  // namespace tensorpar
