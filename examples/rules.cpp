// examples/rules.cpp - rewrite rules: made and proved from scratch, and those of other systems judged
#include "standard_output.hpp"
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <tensorpar/core/json.hpp>
#include <tensorpar/core/whole_file.hpp>
#include <tensorpar/rewrite/derive.hpp>
#include <tensorpar/rewrite/families.hpp>
#include <tensorpar/rewrite/judge.hpp>
#include <tensorpar/rewrite/make_rules.hpp>
#include <tensorpar/rewrite/proof_file.hpp>
#include <tensorpar/rewrite/standard_rules.hpp>

using namespace tensorpar;
namespace fs = std::filesystem;

namespace {

constexpr char const* kinds[] = {"algebra", "parallel", "hybrid"};

/// "element-wise sums 12" belongs to "element-wise".
std::string group_of(std::string const& name) {
  for (char const* g : {"activated", "element-wise", "concat", "transpose", "linear", "matmul", "convolution", "pooling", "embedding",
                        "heads", "attention"})
    if (name.starts_with(g)) return g;
  if (name.starts_with("batched")) return "batched-matmul";
  if (name.starts_with("softmax") || name.starts_with("layer norm")) return "normalisation";
  return name.starts_with("sum ") ? "sum" : "spreads";
}
std::string file_of(std::string group) {
  std::erase(group, '-');
  return group + ".hpp";
}
std::string axiom_names(proof const& p) {
  std::string s;
  for (int a : p.used) s += (s.empty() ? "" : "; ") + std::string(axioms[a].name);
  return s;
}
std::string statement(rule r) {
  r.name.clear();
  return spell(r);
}
/// A string literal in pieces that fit a line.
std::string literal(std::string const& s, std::string const& indent) {
  std::string r;
  for (std::size_t at = 0; at < s.size() || at == 0;) {
    std::size_t n = 120;
    if (at + n < s.size())
      while (n > 60 && s[at + n - 1] != ' ') --n;
    r += (at ? "\n" + indent : "") + "\"" + s.substr(at, n) + "\"";
    at += n;
  }
  return r;
}

std::map<std::string, std::string> headers(rule_making const& m) {
  std::map<std::string, std::string> all;
  std::map<std::string, std::vector<made_rule const*>> groups;
  for (made_rule const& r : m.rules)
    if (!r.implied) groups[group_of(r.what.name)].push_back(&r);
  for (auto const& [group, rules] : groups) {
    std::string id = group;
    for (char& c : id) if (c == '-') c = '_';
    std::string s = "// tensorpar/rewrite/rules/" + file_of(group) + " - proved rules about " + group +
        "; made by scripts/make-rules, do not edit\n"
                    "#pragma once\n#include <tensorpar/rewrite/shipped_rule.hpp>\n\nnamespace tensorpar::rules {\n\ninline constexpr "
                    "shipped_rule " +
                    id + "[] = {\n";
    for (made_rule const* r : rules)
      s += "    {\"" + r->what.name + "\", rule_kind::" + kinds[static_cast<int>(r->kind)] + ", " + std::to_string(r->proved.cases) +
          ",\n     " +
           literal(statement(r->what), "     ") + ",\n     " + literal(axiom_names(r->proved), "     ") + "},\n";
    all[file_of(group)] = s + "};\n\n}  // namespace tensorpar::rules\n";
  }
  return all;
}

/// One side of a rule as a part of a Mermaid flow chart.
std::string chart(rule const& r, pattern_graph const& g, std::string const& id) {
  std::string s = "  subgraph " + id + "[\" \"]\n    direction TB\n";
  auto of = [&](pattern_value v) { return id + (v.node < 0 ? "x" + std::to_string(v.slot) : "n" + std::to_string(v.node)); };
  detail::mentions const have = detail::mentioned(r, g);
  for (std::size_t x = 0; x < r.tensors.size(); ++x)
    if (have.tensors[x]) s += "    " + of({-1, static_cast<int>(x)}) + "([" + r.tensors[x] + "])\n";
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    pattern_node const& n = g.nodes[i];
    std::string label = n.op ? std::string(n.op->name) : "?" + r.parameters[static_cast<std::size_t>(n.function)].name;
    for (std::size_t a = 0; a < n.attr.size(); ++a)
      if (!n.attr[a].open)
        label += "<br/>" + std::string(n.op->attr_name(static_cast<int>(a))) + " " +
                 detail::spell_term(r, n.attr[a], n.op->attr_kind(static_cast<int>(a)) == 'f');
    std::string const me = of({static_cast<int>(i), 0});
    s += "    " + me + "[\"" + label + "\"]\n";
    for (pattern_value v : n.in) s += "    " + of(v) + " --> " + me + "\n";
  }
  return s + "  end\n";
}
/// Rules that papers show, and some beyond them: a title, and the rule from left to right as it stands there.
struct shown_rule {
  char const *title, *text;
};
constexpr shown_rule shown[] = {
    {"Unity, figure 4b: two convolutions of one image become one",
     "add(conv2d{groups=1}(x, y), conv2d{groups=1}(x, z)) => conv2d{groups=1}(x, add(y, z))"},
    {"Unity, figure 9, data parallelism (samples)",
     "linear(x, y) => combine{dim=d,degree=k}(linear(partition{dim=d,degree=k}(x), replicate{degree=k}(y)))"},
    {"Unity, figure 9, output channels; figure 10, step 1; figure 16",
     "linear(x, y) => combine{dim=-1,degree=k}(linear(replicate{degree=k}(x), partition{dim=-2,degree=k}(y)))"},
    {"Unity, figure 9, reduction (input channels); figure 10, step 3; figure 16",
     "linear(x, y) => reduce{degree=k}(linear(partition{dim=-1,degree=k}(x), partition{dim=-1,degree=k}(y)))"},
    {"Unity, figure 9, attention heads",
     "matmul{transpose_a=0,transpose_b=0}(x, y) => combine{dim=d,degree=k}(matmul{transpose_a=0,transpose_b=0}"
     "(partition{dim=d,degree=k}(x), partition{dim=d,degree=k}(y)))"},
    {"Unity, figure 10, step 2: a function goes through a combine", "?f(combine{dim=d,degree=k}(x)) => combine{dim=d,degree=k}(?f(x))"},
    {"Unity, figure 10, step 4: what is combined and cut again was never moved",
     "partition{dim=d,degree=k}(combine{dim=d,degree=k}(x)) => x"},
    {"Unity, figure 11a: a function in parts along any axis",
     "?f(x) => combine{dim=d,degree=k}(?f(partition{dim=d,degree=k}(x)))"},
    {"Unity, figure 11b: an addition is a sum over what is put side by side",
     "add(x, y) => sum{axis=-2}(concat{axis=-2}(split_axis{which=-1,inner=extent(x,-1)}(x), split_axis{which=-1,inner=extent(x,-1)}(y)))"},
    {"Unity, figure 11b, and 16c: a sum over parts", "sum{axis=-2}(x) => reduce{degree=k}(sum{axis=-2}(partition{dim=-2,degree=k}(x)))"},
    {"Unity, figure 16a: reduce and replicate meet and become an all-reduce", "replicate{degree=k}(?f(x)) => ?f(replicate{degree=k}(x))"},
    {"Unity, figure 16b: products instead of a concatenation",
     "linear(concat{axis=-1}(x, z), y) => add(linear(x, slice{axis=-1,begin=0,length=extent(x,-1)}(y)), "
     "linear(z, slice{axis=-1,begin=extent(x,-1),length=extent(z,-1)}(y)))"},
    {"Unity, figure 16b: one sum instead of two", "add(reduce{degree=k}(x), reduce{degree=k}(y)) => reduce{degree=k}(add(x, y))"},
    {"Unity, figure 16c: a bag is the sum of its embeddings", "embedding_bag(x, y) => sum{axis=-2}(embedding(x, y))"},
    {"Layer norm in parts of the sequence",
     "layernorm(x, y, z) => combine{dim=d,degree=k}(layernorm(partition{dim=d,degree=k}(x), replicate{degree=k}(y), "
     "replicate{degree=k}(z)))"},
    {"Attention in parts of the keys and values",
     "attention{causal=0}(x, y, z) => attention_finish(attention_parts(x, split_axis{which=-2}(y), split_axis{which=-2}(z)))"},
    {"Parts on devices of their own",
     "attention_parts(x, y, z) => combine{dim=-3,degree=k}(attention_parts(replicate{degree=k}(x), partition{dim=-3,degree=k}(y), "
     "partition{dim=-3,degree=k}(z)))"},
    {"States may be put together before they are sent", "attention_finish(x) => attention_finish(softmax_merge(x))"},
};
/// Throws `error` where one of them was not made.
std::string pictures(rule_making const& m) {
  std::map<std::string, std::pair<rule, std::string>> made;   // by statement
  for (made_rule const& r : m.rules) {
    if (r.implied) continue;
    made.emplace(statement(r.what), std::pair(r.what, r.what.name));
    if (auto back = reversed(r.what)) made.emplace(statement(*back), std::pair(*back, r.what.name));
  }
  std::string s = "\n## Pictures\nThe chains that these make up are found in `tests/rewrite/derivations.test.cpp`.\n";
  for (shown_rule const& w : shown) {
    auto const it = made.find(w.text);
    if (it == made.end()) throw error("a rule that the catalogue shows was not made: " + std::string(w.text), "rules", "");
    auto const& [r, name] = it->second;
    s += "\n### " + std::string(w.title) + "\n`" + name + "`\n```mermaid\nflowchart LR\n" + chart(r, r.source, "a") +
         chart(r, r.target, "b") + "  a ==> b\n```\n";
  }
  return s;
}

std::string catalogue(rule_making const& m) {
  std::string s =
      "# Rewrite rules\n\nMade by `scripts/make-rules`; do not edit. Every rule was proved by Z3 in all of its cases of ranks (up to "
      "four), axes and "
      "deciding numbers, for all degrees and extents (see [architecture](architecture.md)). What it means to be implied, and so not to "
      "stand here: "
      "`rewrite/term_closure.hpp`. In text, `?f` is any function applied to every element, what stands in braces are attributes, and an "
      "attribute that is "
      "left out is a parameter of its own name.\n\n";
  s += std::to_string(m.applications) + " applications were tried, " + std::to_string(m.terms) + " terms are valid, " +
      std::to_string(m.candidates) +
       " different candidates have equal fingerprints, " + std::to_string(m.verified) + " of them are proved (" + std::to_string(m.hybrid) +
       " change operators and spreads at once), and " + std::to_string(m.shipped) +
       " stand here: those that are not implied by others, and " + std::to_string(m.spreading) +
       " that bring parallel operators into a graph without any.\n";
  std::map<std::string, std::string> groups;
  for (made_rule const& r : m.rules)
    if (!r.implied)
      groups[group_of(r.what.name)] += "| " + r.what.name + " | " + kinds[static_cast<int>(r.kind)] + " | `" + statement(r.what) + "` | " +
                                       std::to_string(r.proved.cases) + " | " + axiom_names(r.proved) + " |\n";
  for (auto const& [group, rows] : groups)
    s += "\n## " + group + "\n| name | kind | rule | cases | axioms |\n|---|---|---|---|---|\n" + rows;
  s += pictures(m);
  s += "\n## Equal in every sample, not proved\nSome are true (they need to know that extents are equal), others are coincidences of the "
      "samples. None is "
       "used.\n\n| name | rule | first case without a proof |\n|---|---|---|\n";
  for (made_rule const& r : m.unproved) s += "| " + r.what.name + " | `" + statement(r.what) + "` | " + r.proved.open + " |\n";
  return s;
}

/// Writes the file, or says whether it is already the same.
bool write(fs::path const& path, std::string const& text, bool check) {
  if (check) {
    if (fs::exists(path) && read_file(path.string()) == text) return true;
    std::cerr << "rules: " << path.string() << " differs from what is made now\n";
    return false;
  }
  fs::create_directories(path.parent_path());
  write_whole_file(path.string(), text);
  return true;
}

int make(fs::path const& out, fs::path const& docs, bool check, int threads, std::string const& proofs) {
  making_options o;
  std::unique_ptr<proof_file> store;
  if (!proofs.empty()) {
    store = std::make_unique<proof_file>(proofs);
    o.store = store.get();
  }
  o.threads = threads;
  rule_making const m = make_rules(standard_families(), o);
  bool same = true;
  for (auto const& [file, text] : headers(m)) same = write(out / file, text, check) && same;
  same = write(docs, catalogue(m), check) && same;
  std::cout << json{{"event", "rules"},       {"applications", m.applications}, {"terms", m.terms},
                    {"pairs", m.pairs},       {"candidates", m.candidates},     {"verified", m.verified},
                    {"hybrid", m.hybrid},     {"unproved", m.unproved.size()}, {"spreading", m.spreading},  {"shipped", m.shipped},
                    {"enumerate_s", m.enumerate_s}, {"prove_s", m.prove_s},     {"imply_s", m.imply_s}}
                   .dump()
            << "\n";
  return same ? 0 : 1;
}

/// One line per rule, or its JSON; then how many there are of each kind, and how many of the accepted follow from the shipped rules.
int import(std::string const& file, std::string const& out, bool as_json) {
  auto const start = std::chrono::steady_clock::now();
  auto const all = read_foreign_rules(file);
  bool const replicas = counts_replicas(all);
  prover p;
  json verdicts = json::array();
  std::map<std::string, int> kinds_of;
  int implied = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    import_verdict const v = judge(all[i], replicas, std::to_string(i), p);
    json j{{"index", i}, {"verdict", v.accepted ? "accepted" : v.undecided ? "not decided" : "rejected"}, {"reason", v.reason}};
    if (!v.counterexample.empty()) j["counterexample"] = v.counterexample;
    j["proved"] = v.proved;
    if (v.accepted) {
      derivation const d = derive(*v.what, rules_both_ways());
      bool const in_all = d.found && d.untried == 0;
      j["implied"] = in_all;
      if (d.found) j["chain"] = d.steps;
      implied += in_all;
    }
    if (v.what) j["rule"] = statement(*v.what);
    std::string const kind = v.accepted ? v.proved ? "accepted, proved" : "accepted, not proved" : v.reason.substr(0, v.reason.find(':'));
    ++kinds_of[kind];
    if (as_json) std::cout << j.dump() << "\n";
    else std::cout << i << "\t" << kind << "\t" << (v.what ? statement(*v.what) : v.reason) << "\n";
    if (!as_json && !v.counterexample.empty()) std::cout << "\t\tcounterexample: " << v.counterexample << "\n";
    verdicts.push_back(std::move(j));
  }
  if (!out.empty()) write_whole_file(out, verdicts.dump(1) + "\n");
  json summary{{"event", "import"}, {"rules", all.size()}};
  for (auto const& [kind, n] : kinds_of) summary[kind] = n;
  summary["implied by the shipped rules"] = implied;
  summary["seconds"] = detail::seconds_since(start);
  std::cout << summary.dump() << "\n";
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  CLI::App app{"Rewrite rules: making and proving them, judging those of other systems"};
  app.require_subcommand(1);
  CLI::App* const making = app.add_subcommand("make", "Enumerates, proves and writes the rules that are shipped");
  std::string out, docs;
  bool check = false;
  int threads = 0;
  making->add_option("--out", out, "Folder for the headers")->required();
  making->add_option("--docs", docs, "File for the catalogue")->required();
  std::string proofs;
  making->add_option("--proofs", proofs, "File of verdicts: an interrupted run goes on where it was");
  making->add_flag("--check", check, "Write nothing; fail where a file would change");
  making->add_option("--threads", threads, "Threads; 0: one per processor");
  CLI::App* const importing = app.add_subcommand("import", "Judges the rules in a file of FlexFlow's (.json) or TASO's (.pb)");
  std::string file, verdicts;
  bool as_json = false;
  importing->add_option("file", file, "The file")->required();
  importing->add_option("--out", verdicts, "File for the verdicts, as JSON");
  importing->add_flag("--json", as_json, "One JSON object per line");
  CLI11_PARSE(app, count, arguments);
  try {
    return importing->parsed() ? import(file, verdicts, as_json) : make(out, docs, check, threads, proofs);
  } catch (std::exception const& e) {
    std::cerr << "rules: " << e.what() << "\n";
    return 1;
  }
}
