// bench/search.cpp - how long planning takes, and how far a plan is from the bound
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/search/optimize.hpp>

using namespace tensorpar;

namespace {

int apply(computation_graph& g, any_op const& o, std::vector<int> in, std::string name = {}) { return g.node(g.add_with_weights(o, std::move(in), std::move(name))).out[0]; }

computation_graph mlp() {
  computation_graph g;
  int x = g.add_input("x", shape{dim(64), dim(64)});
  int const y = g.add_input("y", shape({dim(64)}, dtype::i32));
  x = apply(g, relu{}, {apply(g, linear{512}, {x}, "fc1")});
  x = apply(g, relu{}, {apply(g, linear{512}, {x}, "fc2")});
  x = apply(g, linear{10}, {x}, "fc3");
  g.add_output("loss", apply(g, cross_entropy{}, {x, y}));
  return g;
}

computation_graph conv_net() {
  computation_graph g;
  int x = g.add_input("x", shape{dim(64), dim(1), dim(8), dim(8)});
  int const y = g.add_input("y", shape({dim(64)}, dtype::i32));
  auto const conv = [](i64 out) { conv2d c{}; c.out = out; c.kernel = 3; c.pad = 1; return c; };
  x = apply(g, relu{}, {apply(g, conv(32), {x}, "conv1")});
  x = apply(g, relu{}, {apply(g, conv(64), {x}, "conv2")});
  x = apply(g, pool2d{}, {x});
  x = apply(g, relu{}, {apply(g, conv(64), {x}, "conv3")});
  x = apply(g, flatten{}, {x});
  x = apply(g, relu{}, {apply(g, linear{128}, {x}, "fc1")});
  x = apply(g, linear{10}, {x}, "fc2");
  g.add_output("loss", apply(g, cross_entropy{}, {x, y}));
  return g;
}

computation_graph gpt(int layers, i64 batch, i64 sequence, i64 hidden, i64 heads, i64 vocabulary) {
  computation_graph g;
  int const tokens = g.add_input("tokens", shape({dim(batch), dim(sequence)}, dtype::i32));
  int const labels = g.add_input("labels", shape({dim(batch), dim(sequence)}, dtype::i32));
  int x = apply(g, embedding{vocabulary, hidden}, {tokens}, "embed");
  for (int l = 0; l < layers; ++l) {
    std::string const n = "l" + std::to_string(l) + ".";
    int const a = apply(g, layernorm{}, {x}, n + "norm1");
    int const q = apply(g, linear{hidden}, {a}, n + "q"), k = apply(g, linear{hidden}, {a}, n + "k"), v = apply(g, linear{hidden}, {a}, n + "v");
    x = apply(g, add{}, {x, apply(g, linear{hidden}, {apply(g, attention{heads, true}, {q, k, v})}, n + "out")});
    int const b = apply(g, layernorm{}, {x}, n + "norm2");
    x = apply(g, add{}, {x, apply(g, linear{hidden}, {apply(g, gelu{}, {apply(g, linear{4 * hidden}, {b}, n + "up")})}, n + "down")});
  }
  x = apply(g, linear{vocabulary}, {apply(g, layernorm{}, {x}, "norm")}, "head");
  g.add_output("loss", apply(g, cross_entropy{}, {x, labels}));
  return g;
}

void line(char const* name, char const* metric, double value, char const* unit, double reference) {
  std::printf("{\"bench\":\"search\",\"case\":\"%s\",\"metric\":\"%s\",\"value\":%.6g,\"unit\":\"%s\",\"reference\":%.6g,\"ratio\":%.4g}\n", name, metric, value, unit, reference, reference > 0 ? value / reference : 0.0);
}
double memory_mb() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_maxrss) / 1024;
}

void run(char const* name, computation_graph const& g, machine const& m, search_options const& o, double most_seconds, double most_mb) {
  search_result r;
  double least = 1e300;
  for (int i = 0; i < 3; ++i) {
    auto const from = std::chrono::steady_clock::now();
    r = optimize(g, m, analytical{}, o);
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count());
  }
  line(name, "plan", least, "s", most_seconds);
  if (most_mb > 0) line(name, "peak memory of the process", memory_mb(), "MB", most_mb);
  line(name, "operators", r.operators, "", 0);
  line(name, "different operators", r.kinds, "", 0);
  line(name, "spreads", static_cast<double>(r.choices), "", 0);
  line(name, "movements priced", static_cast<double>(r.moves_priced), "", 0);
  line(name, "tables joined", r.statistics.tables, "", 0);
  line(name, "step", r.cost.seconds, "s", r.bound);
  line(name, "gap", r.gap, "", 0);
  for (baseline const& b : r.baselines) line(name, ("step, " + b.name).c_str(), b.cost.seconds, "s", r.cost.seconds);
}

}  // namespace

int main() {
  device_kind const cpu{"core", 2e10, 1e10, i64{4} << 30, 2e-6};
  machine const four = make_cluster("4 cores", cpu, 4, 4, {"memory", 4, 2e-6, 5e9}, {});
  search_options o;
  run("digits mlp on 4", mlp(), four, o, 0.02, 0);
  run("digits conv net on 4", conv_net(), four, o, 0.02, 0);
  machine const eight = make_cluster("8 cores", cpu, 8, 8, {"memory", 8, 2e-6, 5e9}, {});
  run("digits conv net on 8", conv_net(), eight, o, 0.02, 0);
  device_kind const gpu{"H100", 4e14, 3e12, i64{80} << 30, 4e-6};
  machine const cluster = make_cluster("8x8", gpu, 64, 8, {"NVLink", 8, 2e-6, 4.5e11}, {"InfiniBand", 64, 5e-6, 5e10});
  run("gpt 96 layers on 8x8", gpt(96, 64, 2048, 4096, 32, 51200), cluster, o, 1, 300);
}
