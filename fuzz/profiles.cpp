// fuzz/profiles.cpp - any bytes: a profile is read into an acyclic graph, and if it is small also planned, or tensorpar::error. The first
// byte chooses the format.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <tensorpar/peers/optima/max_load.hpp>
#include <tensorpar/peers/optima/pipedream.hpp>
#include <tensorpar/peers/optima/piper.hpp>
#include <tensorpar/peers/profiles/graphpipe_price.hpp>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace tensorpar;
  using namespace tensorpar::peers;
  if (size == 0) return 0;
  std::string_view const text(reinterpret_cast<char const*>(data) + 1, size - 1);
  auto const check = [](bool good) {
    if (!good) std::abort();
  };
  try {
    if (data[0] == 'd') {
      auto const g = parse_dnn_partitioning(text, "input", tensorpar::core::profile_units::as_published);
      check(tensorpar::graph::is_acyclic(g) && tensorpar::graph::is_acyclic(space_of(g)));
      if (g.node_count() > 10) return 0;
      max_load_optimum const best = min_max_load(g, {2, 1, g.memory});
      if (best.feasible) check(price_max_load(g, best.split, g.memory).fits);
    } else if (data[0] == 'p') {
      auto const g = parse_piper(text, "input", tensorpar::core::profile_units::as_published);
      check(tensorpar::graph::is_acyclic(g));
      piper_setup setup = setup_of(g);
      if (g.node_count() > 8 || setup.devices > 8) return 0;
      piper_optimum const best = min_piper(g, setup);
      if (best.feasible) check(best.seconds <= 1e300);
    } else if (data[0] == 't') {
      auto const g = parse_pipedream(text, "input");
      check(tensorpar::graph::is_acyclic(g));
      if (g.node_count() <= 10) min_pipedream(g, {{{3, 1e9}}, 1, 0, false});
    } else {
      auto const g = parse_graphpipe(text, "input");
      if (g.log) price_graphpipe(*g.log, 1024);
    }
  } catch (error const&) {
  }
  return 0;
}
