// tests/prover/rule_dot.test.cpp - rules as pictures
#include <tensorpar/prover/rule_dot.hpp>
#include <doctest/doctest.h>

#include <tensorpar/rewrite/rule_parser.hpp>

using namespace tensorpar;
using namespace tensorpar::prover;

TEST_CASE("both sides, every operator and edge") {
  char const* const expected = R"dot(digraph {
  rankdir=TB; node [fontname="sans-serif"]; label="a \"rule\"";
  subgraph cluster_s {
    label="source";
    sx0 [shape=plaintext, label="x"];
    s0 [shape=box, style=filled, fillcolor="#ffe0b0", label="partition (d, k)"];
    s1 [shape=box, style=filled, fillcolor="#d8f0d8", label="f"];
    sx0 -> s0;
    s0 -> s1;
    sy0 [shape=plaintext, label="out"];
    s1 -> sy0;
  }
  subgraph cluster_t {
    label="target";
    tx0 [shape=plaintext, label="x"];
    t0 [shape=box, style=filled, fillcolor="#d8f0d8", label="f"];
    t1 [shape=box, style=filled, fillcolor="#ffe0b0", label="partition (d, k)"];
    tx0 -> t0;
    t0 -> t1;
    ty0 [shape=plaintext, label="out"];
    t1 -> ty0;
  }
}
)dot";
  std::string const one = to_dot(rewrite::parse_rule("a \"rule\": ?f(partition{d,k}(x)) => partition{d,k}(?f(x))"));
  CHECK(one == expected);
  std::string const two = to_dot(rewrite::parse_rule("relu(x), gelu(x) => gelu(x), relu(x)"));
  CHECK(two.find("label=\"out1\"") != two.npos);
}
