// tests/report/report_subject.hpp - small plans with their programs and timelines, for tests of what is told about them
#pragma once
#include <support/small_graphs.hpp>
#include <tensorpar/program/core/timeline.hpp>
#include <tensorpar/program/unroll.hpp>

namespace tests {

struct report_subject {
  training_graph t;
  plan p;
  program q;
  timeline predicted, measured;
};
/// A random plan, simulated; the measured timeline is the predicted one stretched unevenly, without memory samples.
report_subject report_of(computation_graph const& g, int devices, unsigned seed, int micro_batches = 1);
/// The smallest graph that trains: one operator with one parameter.
computation_graph one_operator();
/// Graph of n chained relus with a skip connection every third, named so that every name needs escaping.
computation_graph hostile_names(int n);

}  // namespace tests
