// fuzz/plan.cpp - any bytes: decode_plan returns a plan that survives writing and reading, or throws tensorpar::error
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <tensorpar/plan/plan_text.hpp>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace tensorpar;
  std::string_view const text(reinterpret_cast<char const*>(data), size);
  try {
    // The checksum would turn nearly every mutation away; with it made right, what lies behind is reached too.
    tensorpar::core::json value = tensorpar::core::parse_json(text, "input");
    for (int turn = 0; turn < 2; ++turn) {
      try {
        plan const p = decode(value, "input");
        std::string const once = encode(p).dump();
        if (!(decode_plan(once, "again") == p) || encode(decode_plan(once, "again")).dump() != once) std::abort();
      } catch (error const&) {
      }
      if (!value.is_object()) return 0;
      detail::plan_reader const r{value, "input", ""};
      plan p;
      p.cluster = detail::decode_machine(r["cluster"]);
      for (std::size_t i = 0, n = r["nodes"].array(0, 1000); i < n; ++i)
        p.nodes.push_back(detail::decode_node(r["nodes"][i], p.cluster.size()));
      if (value.contains("pipeline"))
        p.pipeline = detail::decode_pipeline(r["pipeline"], static_cast<int>(p.nodes.size()), p.cluster.size());
      value = encode(p);
    }
  } catch (error const&) {
  }
  return 0;
}
