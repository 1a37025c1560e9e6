// tensorpar/prover/foreign_rules.hpp - rule collections of other systems: FlexFlow's JSON and TASO's protobuf
#pragma once
#include <array>
#include <map>
#include <string>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/json.hpp>

namespace tensorpar::prover {

/// An operand: output `slot` of operator `op` of the same side, or, for op < 0, the rule's variable with that
/// number.
struct foreign_value {
  int op = 0, slot = 0;
};
struct foreign_operator {
  std::string type;                      // OP_LINEAR, OP_PARTITION, ...
  std::vector<foreign_value> input;
  std::map<std::string, i64> parameter;  // PM_AXIS, PM_ACTI, ...
};
struct foreign_output {
  foreign_value source, target;
};
struct foreign_rule {
  std::vector<foreign_operator> source, target;
  std::vector<foreign_output> outputs;
};

namespace detail {

inline void check_foreign(foreign_rule const& r, std::string const& where) {
  for (auto const* side : {&r.source, &r.target}) {
    std::string const which = side == &r.source ? "source operator " : "target operator ";
    for (std::size_t i = 0; i < side->size(); ++i)
      for (foreign_value const& v : (*side)[i].input)
        if (v.op >= static_cast<int>(i) || v.slot < 0)
          throw error(which + std::to_string(i) + " reads operator " + std::to_string(v.op), where,
                      "operators before it, or variables below 0");
  }
  if (r.outputs.empty()) throw error("a rule without outputs", where, "at least one");
  for (foreign_output const& o : r.outputs)
    if (o.source.op < 0 || o.source.op >= static_cast<int>(r.source.size()) ||
        o.target.op >= static_cast<int>(r.target.size()) || o.source.slot < 0 || o.target.slot < 0)
      throw error("an output names an operator that is not there", where, "operators of their side");
}

/// Reads numbers and pieces of a protobuf message; positions are bytes from the start of the file.
class wire_reader {
  std::string_view s_;
  std::size_t at_, end_;
  std::string const& where_;

 public:
  wire_reader(std::string_view s, std::size_t at, std::size_t end, std::string const& where)
      : s_(s), at_(at), end_(end), where_(where) {}
  bool more() const { return at_ < end_; }
  [[noreturn]] void fail(std::string what) const {
    throw error(std::move(what), where_ + ": byte " + std::to_string(at_), "a rule collection");
  }
  u64 varint() {
    u64 x = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ >= end_) fail("the file ends within a number");
      auto const b = static_cast<unsigned char>(s_[at_++]);
      x |= static_cast<u64>(b & 127) << shift;
      if (!(b & 128)) return x;
    }
    fail("a number of more than ten bytes");
  }
  int number() { return static_cast<int>(static_cast<i64>(varint())); }
  /// The next field's number; `kind` must be its wire type.
  int field(int kind) {
    u64 const tag = varint();
    if (static_cast<int>(tag & 7) != kind)
      fail("field " + std::to_string(tag >> 3) + " has wire type " + std::to_string(tag & 7));
    return static_cast<int>(tag >> 3);
  }
  int any_field(int& kind) {
    u64 const tag = varint();
    kind = static_cast<int>(tag & 7);
    return static_cast<int>(tag >> 3);
  }
  wire_reader piece() {
    u64 const n = varint();
    if (n > end_ - at_) fail("a piece of " + std::to_string(n) + " bytes goes beyond what holds it");
    wire_reader r(s_, at_, at_ + idx(n), where_);
    at_ += idx(n);
    return r;
  }
};

inline std::string_view foreign_operator_name(int n) {
  static constexpr std::string_view names[] = {
      "OP_INPUT",         "OP_WEIGHT",      "OP_ANY",          "OP_CONV2D",         "OP_DROPOUT",
      "OP_LINEAR",        "OP_POOL2D_MAX",  "OP_POOL2D_AVG",   "OP_RELU",           "OP_SIGMOID",
      "OP_TANH",          "OP_BATCHNORM",   "OP_CONCAT",       "OP_SPLIT",          "OP_RESHAPE",
      "OP_TRANSPOSE",     "OP_EW_ADD",      "OP_EW_MUL",       "OP_MATMUL",         "OP_MUL",
      "OP_ENLARGE",       "OP_MERGE_GCONV", "OP_CONSTANT_IMM", "OP_CONSTANT_ICONV", "OP_CONSTANT_ONE",
      "OP_CONSTANT_POOL", "OP_PARTITION",   "OP_COMBINE",      "OP_REPLICATE",      "OP_REDUCE",
      "OP_EMBEDDING"};
  return n >= 0 && n < static_cast<int>(std::size(names)) ? names[n] : std::string_view();
}
inline std::string_view foreign_parameter_name(int n) {
  static constexpr std::string_view names[] = {
      "PM_OP_TYPE",      "PM_NUM_INPUTS",     "PM_NUM_OUTPUTS", "PM_GROUP",      "PM_KERNEL_H",
      "PM_KERNEL_W",     "PM_STRIDE_H",       "PM_STRIDE_W",    "PM_PAD",        "PM_ACTI",
      "PM_NUMDIM",       "PM_AXIS",           "PM_PERM",        "PM_OUTSHUFFLE", "PM_MERGE_GCONV_COUNT",
      "PM_PARALLEL_DIM", "PM_PARALLEL_DEGREE"};
  return n >= 0 && n < static_cast<int>(std::size(names)) ? names[n] : std::string_view();
}

}  // namespace detail

/// FlexFlow's rule collection: {"rule": [{"srcOp", "dstOp", "mappedOutput"}]}, operators in topological
/// order.
/// Throws `error` that says where (file, rule, what) for anything missing, of another type, or out of range.
/// O(size).
inline std::vector<foreign_rule> read_flexflow_rules(core::json const& j, std::string const& where) {
  auto member = [](core::json const& o, char const* key, bool array,
                   std::string const& at) -> core::json const& {
    if (!o.is_object() || !o.contains(key) ||
        (array ? !o[key].is_array() : !(o[key].is_number_integer() || o[key].is_string())))
      throw error(std::string("no ") + (array ? "array \"" : "value \"") + key + "\"", at,
                  "FlexFlow's rule collection");
    return o[key];
  };
  auto number = [&](core::json const& o, char const* key, std::string const& at) {
    core::json const& v = member(o, key, false, at);
    if (!v.is_number_integer() || v.get<i64>() < -1000000 || v.get<i64>() > 1000000)
      throw error(std::string("\"") + key + "\" is no small integer", at, "an integer");
    return static_cast<int>(v.get<i64>());
  };
  auto text = [&](core::json const& o, char const* key, std::string const& at) {
    core::json const& v = member(o, key, false, at);
    if (!v.is_string()) throw error(std::string("\"") + key + "\" is no text", at, "text");
    return v.get<std::string>();
  };
  std::vector<foreign_rule> all;
  for (core::json const& r : member(j, "rule", true, where)) {
    std::string const at = where + ": rule " + std::to_string(all.size());
    foreign_rule f;
    for (bool target : {false, true})
      for (core::json const& o : member(r, target ? "dstOp" : "srcOp", true, at)) {
        foreign_operator p;
        p.type = text(o, "type", at);
        for (core::json const& t : member(o, "input", true, at))
          p.input.push_back({number(t, "opId", at), number(t, "tsId", at)});
        for (core::json const& q : member(o, "para", true, at))
          p.parameter[text(q, "key", at)] = number(q, "value", at);
        (target ? f.target : f.source).push_back(std::move(p));
      }
    for (core::json const& o : member(r, "mappedOutput", true, at))
      f.outputs.push_back({{number(o, "srcOpId", at), number(o, "srcTsId", at)},
                           {number(o, "dstOpId", at), number(o, "dstTsId", at)}});
    detail::check_foreign(f, at);
    all.push_back(std::move(f));
  }
  return all;
}

/// TASO's rule collection (and FlexFlow's, in the same schema): a protobuf message, read without a protobuf
/// library.
/// Throws `error` that says at which byte, or in which rule. O(size).
inline std::vector<foreign_rule> read_taso_rules(std::string_view bytes, std::string const& where) {
  std::vector<foreign_rule> all;
  detail::wire_reader file(bytes, 0, bytes.size(), where);
  auto read_operator = [&](detail::wire_reader r) {
    foreign_operator o;
    while (r.more()) {
      int kind = 0;
      int const field = r.any_field(kind);
      if (field == 1 && kind == 0) {
        int const n = r.number();
        o.type = detail::foreign_operator_name(n);
        if (o.type.empty()) r.fail("there is no operator type " + std::to_string(n));
      } else if ((field == 2 || field == 3) && kind == 2) {
        detail::wire_reader p = r.piece();
        int pair[3] = {0, 0, 0};
        while (p.more()) {
          int const f = p.field(0);
          int const n = p.number();
          if (f < 1 || f > 2) p.fail("there is no field " + std::to_string(f));
          pair[f] = n;
        }
        if (field == 2) {
          o.input.push_back({pair[1], pair[2]});
        } else {
          std::string_view const name = detail::foreign_parameter_name(pair[1]);
          if (name.empty()) p.fail("there is no parameter " + std::to_string(pair[1]));
          o.parameter[std::string(name)] = pair[2];
        }
      } else {
        r.fail("there is no field " + std::to_string(field) + " of wire type " + std::to_string(kind) +
               " in an operator");
      }
    }
    if (o.type.empty()) r.fail("an operator without a type");
    return o;
  };
  while (file.more()) {
    if (int const f = file.field(2); f != 1)
      file.fail("there is no field " + std::to_string(f) + " in a collection");
    detail::wire_reader r = file.piece();
    foreign_rule rule;
    while (r.more()) {
      int const field = r.field(2);
      detail::wire_reader p = r.piece();
      if (field == 1) rule.source.push_back(read_operator(p));
      else if (field == 2) rule.target.push_back(read_operator(p));
      else if (field == 3) {
        int n[5] = {0, 0, 0, 0, 0};
        while (p.more()) {
          int const f = p.field(0), v = p.number();
          if (f < 1 || f > 4) p.fail("there is no field " + std::to_string(f) + " in an output");
          n[f] = v;
        }
        rule.outputs.push_back({{n[1], n[3]}, {n[2], n[4]}});
      } else {
        p.fail("there is no field " + std::to_string(field) + " in a rule");
      }
    }
    detail::check_foreign(rule, where + ": rule " + std::to_string(all.size()));
    all.push_back(std::move(rule));
  }
  return all;
}

/// The rules in a file: JSON where its name ends in .json, else protobuf. Throws `error` if it cannot be
/// read, and as the readers do.
inline std::vector<foreign_rule> read_foreign_rules(std::string const& path) {
  if (path.ends_with(".json")) return read_flexflow_rules(core::read_json(path), path);
  return read_taso_rules(core::read_file(path, "a readable rule collection"), path);
}

}  // namespace tensorpar::prover
