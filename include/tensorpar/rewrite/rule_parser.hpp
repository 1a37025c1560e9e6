// tensorpar/rewrite/rule_parser.hpp - rules from text
#pragma once
#include <charconv>
#include <map>
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/rewrite/rule_text.hpp>
#include <tensorpar/rewrite/vocabulary.hpp>

namespace tensorpar::rewrite {

namespace detail {

class rule_parser {
  std::string_view s_;
  std::string const& where_;
  vocabulary const& words_;
  std::size_t at_ = 0;
  int depth_ = 0;
  rule r_;
  std::map<std::string, pattern_value, std::less<>> lets_;

  [[noreturn]] void fail(std::string what, std::string valid = {}) const {
    throw error(std::move(what), where_ + ":" + std::to_string(at_ + 1), std::move(valid));
  }
  void space() {
    while (at_ < s_.size() && (s_[at_] == ' ' || s_[at_] == '\t' || s_[at_] == '\n' || s_[at_] == '\r'))
      ++at_;
  }
  bool take(std::string_view t) {
    space();
    if (s_.substr(at_, t.size()) != t) return false;
    at_ += t.size();
    return true;
  }
  void need(std::string_view t) { if (!take(t)) fail("malformed rule", "'" + std::string(t) + "' here"); }
  static bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
  static bool digit(char c) { return c >= '0' && c <= '9'; }
  std::string word() {
    space();
    std::size_t e = at_;
    while (e < s_.size() && (letter(s_[e]) || (e > at_ && digit(s_[e])))) ++e;
    if (e == at_) fail("malformed rule", "a name here");
    std::string w(s_.substr(at_, e - at_));
    at_ = e;
    return w;
  }
  bool at_number() {
    space();
    return at_ < s_.size() && (digit(s_[at_]) || (s_[at_] == '-' && at_ + 1 < s_.size() &&
                                                  (digit(s_[at_ + 1]) || s_[at_ + 1] == '.')));
  }
  i64 integer() {
    space();
    i64 n = 0;
    auto const r = std::from_chars(s_.data() + at_, s_.data() + s_.size(), n);
    if (r.ec != std::errc()) fail("malformed rule", "an integer of 64 bits here");
    at_ = idx(r.ptr - s_.data());
    return n;
  }
  int small_integer() {
    i64 const n = integer();
    if (n != static_cast<int>(n)) fail("malformed rule", "an integer of 32 bits here");
    return static_cast<int>(n);
  }
  i64 real_bits() {
    double x = 0;
    auto const r = std::from_chars(s_.data() + at_, s_.data() + s_.size(), x);
    if (r.ec != std::errc()) fail("malformed rule", "a number here");
    at_ = idx(r.ptr - s_.data());
    return std::bit_cast<i64>(x);
  }
  int parameter(std::string const& name, parameter_kind k) {
    for (std::size_t i = 0; i < r_.parameters.size(); ++i)
      if (r_.parameters[i].name == name) {
        if (r_.parameters[i].kind != k)
          fail("parameter " + name + " stands for two kinds of thing", "another name");
        return static_cast<int>(i);
      }
    r_.parameters.push_back({name, k});
    return static_cast<int>(r_.parameters.size()) - 1;
  }
  int tensor(std::string const& name) {
    for (std::size_t i = 0; i < r_.tensors.size(); ++i) if (r_.tensors[i] == name) return static_cast<int>(i);
    r_.tensors.push_back(name);
    return static_cast<int>(r_.tensors.size()) - 1;
  }
  void axis_of(rule_factor& f) {
    if (at_number()) f.axis = small_integer();
    else f.axis_parameter = parameter(word(), parameter_kind::axis);
  }
  rule_factor property(term_kind k) {
    rule_factor f{k, 0, 0, -1};
    need("(");
    f.index = tensor(word());
    if (k == term_kind::extent || k == term_kind::degree) { need(","); axis_of(f); }
    need(")");
    return f;
  }
  /// `expected`: what a bare name stands for.
  rule_term term(parameter_kind expected, bool real = false) {
    rule_term t;
    if (real && at_number()) {
      t.number = real_bits();
      if (take("*")) fail("a product of a real number", "one number, or a product of parameters");
      return t;
    }
    do {
      if (at_number()) {
        if (real) fail("a product of a real number", "one number, or a product of parameters");
        if (__builtin_mul_overflow(t.number, integer(), &t.number))
          fail("malformed rule", "a product of 64 bits here");
        continue;
      }
      std::string const w = word();
      space();
      bool const call = at_ < s_.size() && s_[at_] == '(';
      if (call && real) fail("a property in a real attribute", "one number, or a product of parameters");
      if (!call) t.factors.push_back({term_kind::parameter, parameter(w, expected), 0, -1});
      else if (w == "extent") t.factors.push_back(property(term_kind::extent));
      else if (w == "degree") t.factors.push_back(property(term_kind::degree));
      else if (w == "copies") t.factors.push_back(property(term_kind::copies));
      else if (w == "sums") t.factors.push_back(property(term_kind::sums));
      else fail("there is no property " + w, "extent, degree, copies, sums");
    } while (take("*"));
    return t;
  }
  void attributes(pattern_node& n) {
    std::vector<bool> written(n.attr.size(), false);
    std::size_t next = 0;
    do {
      std::size_t const before = at_;
      std::size_t i = n.attr.size();
      space();
      if (at_ < s_.size() && letter(s_[at_])) {
        std::string const w = word();
        if (take("=")) {
          for (i = 0; i < n.attr.size() && n.op->attr_name(static_cast<int>(i)) != w;) ++i;
          if (i == n.attr.size())
            fail("operator " + std::string(n.op->name) + " has no attribute " + w, attribute_names(*n.op));
        } else {
          at_ = before;
        }
      }
      if (i == n.attr.size()) {   // by position, over those that are written at all
        while (next < n.attr.size() && n.attr[next].open) ++next;
        i = next++;
        if (i >= n.attr.size())
          fail("too many attributes for " + std::string(n.op->name), attribute_names(*n.op));
      }
      if (n.attr[i].open || written[i])
        fail("attribute " + std::string(n.op->attr_name(static_cast<int>(i))) +
                 (written[i] ? " stands twice" : " follows from the operands"), attribute_names(*n.op));
      n.attr[i] = term(kind_at(*n.op, i), n.op->attr_kind(static_cast<int>(i)) == 'f');
      written[i] = true;
    } while (take(","));
    need("}");
    for (std::size_t i = 0; i < written.size(); ++i)
      if (!written[i] && !n.attr[i].open) n.attr[i] = implicit(*n.op, i);
  }
  static parameter_kind kind_at(op::op_info const& o, std::size_t i) {
    attr_role const role = role_of(o, static_cast<int>(i));
    return role == attr_role::degree ? parameter_kind::degree
           : role == attr_role::axis ? parameter_kind::axis
                                     : parameter_kind::number;
  }
  rule_term implicit(op::op_info const& o, std::size_t i) {
    return parameter_term(parameter(std::string(o.attr_name(static_cast<int>(i))), kind_at(o, i)));
  }
  static std::string attribute_names(op::op_info const& o) {
    std::string s;
    for (int i = 0; i < o.attrs; ++i)
      if (attr_role const role = role_of(o, i); role != attr_role::follows && role != attr_role::label)
        s += (s.empty() ? "" : ", ") + std::string(o.attr_name(i));
    return s.empty() ? "none" : s;
  }
  pattern_value value(pattern_graph& g) {
    if (++depth_ > 100) fail("a rule nested too deeply", "100 operators in one another");
    pattern_value const v = one_value(g);
    --depth_;
    return v;
  }
  pattern_value one_value(pattern_graph& g) {
    pattern_value v;
    bool const function = take("?");
    std::string const w = word();
    space();
    bool const applied = at_ < s_.size() && (s_[at_] == '(' || s_[at_] == '{');
    if (function || applied) {
      pattern_node n;
      if (function) {
        n.function = parameter(w, parameter_kind::function);
      } else {
        n.op = words_.find(w);
        if (!n.op) fail("there is no operator " + w, words_.names() + "; ?" + w + "(x) for any function");
        for (int i = 0; i < n.op->attrs; ++i) {
          attr_role const role = role_of(*n.op, i);
          n.attr.push_back({1, {}, role == attr_role::follows || role == attr_role::label});
        }
        if (take("{")) attributes(n);
        else
          for (std::size_t i = 0; i < n.attr.size(); ++i)
            if (!n.attr[i].open) n.attr[i] = implicit(*n.op, i);
      }
      need("(");
      do n.in.push_back(value(g)); while (take(","));
      need(")");
      g.nodes.push_back(std::move(n));
      v = {static_cast<int>(g.nodes.size()) - 1, 0};
    } else if (auto const it = lets_.find(w); it != lets_.end()) {
      v = it->second;
    } else {
      v = {-1, tensor(w)};
    }
    if (v.node >= 0 && take(".")) v.slot = small_integer();
    return v;
  }
  pattern_graph side() {
    pattern_graph g;
    lets_.clear();
    for (;;) {
      std::size_t const before = at_;
      space();
      if (at_ < s_.size() && letter(s_[at_])) {
        std::string const w = word();
        space();
        if (s_.substr(at_, 2) != "=>" && take("=")) {
          pattern_value const v = value(g);
          lets_.insert_or_assign(w, v);
          need(";");
          continue;
        }
        at_ = before;
      }
      do g.outputs.push_back(value(g)); while (take(","));
      return g;
    }
  }
  void condition() {
    rule_condition c;
    c.a = term(axis_ahead() ? parameter_kind::axis : parameter_kind::degree);
    if (take("|")) { c.kind = condition_kind::divides; c.b = term(parameter_kind::degree); }
    else if (take("==")) { c.kind = condition_kind::equal; c.b = term(parameter_kind::degree); }
    else if (take("!=")) { c.kind = condition_kind::different; c.b = term(parameter_kind::axis); }
    else if (take("inside")) {
      c.kind = condition_kind::inner;
      c.tensor = tensor(word());
      if (take("by ")) c.b = number_term(integer());
    }
    else fail("malformed condition", "a | b, a == b, a != b or a inside x");
    r_.conditions.push_back(std::move(c));
  }
  /// Conditions on axes say so after their first term.
  bool axis_ahead() const {
    std::size_t const end = s_.find(',', at_);
    std::string_view const rest = s_.substr(at_, end == s_.npos ? s_.npos : end - at_);
    return rest.find("!=") != rest.npos || rest.find(" inside ") != rest.npos;
  }

 public:
  rule_parser(std::string_view s, std::string const& where, vocabulary const& words)
      : s_(s), where_(where), words_(words) {}
  rule parse() {
    if (std::size_t const colon = s_.find(':'); colon != s_.npos) {
      space();
      std::size_t e = colon;
      while (e > at_ && s_[e - 1] == ' ') --e;
      r_.name = std::string(s_.substr(at_, e - at_));
      at_ = colon + 1;
    }
    r_.source = side();
    need("=>");
    r_.target = side();
    if (take("where")) do condition(); while (take(","));
    space();
    if (at_ != s_.size()) fail("text after the rule", "the end here");
    if (auto const all = problems(r_); !all.empty())
      throw error("a rule that means nothing: " + all.front(), where_, "");
    return r_;
  }
};

}  // namespace detail

/// The rule written in `text`. A name is a tensor, in braces a parameter; `?f(x)` applies a function
/// parameter; "t = ...;" names a value for later use. Throws `error` with where() == "where:column". O(length
/// * operators).
template <class = void>
rule parse_rule(std::string_view text, vocabulary const& words = standard_vocabulary(),
                       std::string const& where = "rule") {
  return detail::rule_parser(text, where, words).parse();
}

#ifdef TENSORPAR_COMPILED
extern template rule parse_rule<>(std::string_view text, vocabulary const& words, std::string const& where);
#endif

}  // namespace tensorpar::rewrite
