// tensorpar/ir/machine/machine_check.hpp - what a machine must say before anything is planned, priced or run
// on it; for files and values alike
#pragma once
#include <cstdio>
#include <limits>
#include <tensorpar/ir/machine/machine.hpp>
#include <utility>

namespace tensorpar {

/// Throws `error` unless
///  - there is a device, and every device has a kind;
///  - rates are numbers from 1 (0 where a format has none), memory is at least a byte, times are not
///    negative, all of them finite;
///  - shares that a kind reaches are from 0 to 1, its sizes of half a rate not negative;
///  - several devices have links, on at most 8 levels;
///  - every level's groups consist of those of the level inside it, and the outermost joins all devices.
/// `where`: what stands before the place in the message, as "file.json: ". O(devices).
inline void require_machine(machine const& m, std::string const& where) {
  auto const wrong = [&](std::string what, std::string const& at, std::string valid) {
    throw error(std::move(what), where + at, std::move(valid));
  };
  auto const real = [&](double x, int least, std::string const& at) {
    if (x >= least && x <= std::numeric_limits<double>::max()) return;
    char text[32];
    std::snprintf(text, sizeof text, "%g", x);
    wrong(std::string(text) + " is out of range", at,
          "a number from " + std::to_string(least) + " to 1.79e+308");
  };
  auto const whole = [&](i64 x, i64 least, i64 most, std::string const& at) {
    if (x >= least && x <= most) return;
    wrong(std::to_string(x) + " is out of range", at,
          "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  };
  if (m.device.empty()) wrong("no devices", "device", "at least one");
  if (m.kinds.empty()) wrong("no kinds of device", "kinds", "at least one");
  for (std::size_t i = 0; i < m.kinds.size(); ++i) {
    device_kind const& k = m.kinds[i];
    std::string const at = "kinds[" + std::to_string(i) + "].";
    real(k.flops, 1, at + "flops");
    real(k.memory_bandwidth, 1, at + "memory_bandwidth");
    whole(k.memory, 1, std::numeric_limits<i64>::max(), at + "memory");
    real(k.launch, 0, at + "launch");
    for (auto const& [rate, name] : {std::pair{k.rates.f32, "f32"}, {k.rates.tf32, "tf32"},
                                     {k.rates.bf16, "bf16"}, {k.rates.fp8, "fp8"}})
      if (rate != 0) real(rate, 1, at + "rates." + name);
    kernel_efficiency const& e = k.efficiency;
    for (auto const& [share, name] :
         {std::pair{e.products, "products"}, {e.attention, "attention"}, {e.memory, "memory"},
          {e.while_communicating, "while_communicating"}, {e.sustained, "sustained"}})
      if (real(share, 0, at + "efficiency." + name); share > 1)
        wrong("a share above 1", at + "efficiency." + name, "a number from 0 to 1");
    real(e.half_results, 0, at + "efficiency.half_results");
    real(e.half_terms, 0, at + "efficiency.half_terms");
  }
  int const kinds = static_cast<int>(m.kinds.size());
  for (std::size_t i = 0; i < m.device.size(); ++i)
    if (m.device[i] < 0 || m.device[i] >= kinds)
      whole(m.device[i], 0, kinds - 1, "device[" + std::to_string(i) + "]");
  if ((m.links.empty() && m.size() > 1) || m.links.size() > 8)
    wrong("a list of " + std::to_string(m.links.size()), "links", "from 1 to 8 entries");
  i64 inner = 1;
  for (std::size_t i = 0; i < m.links.size(); ++i) {
    link_level const& l = m.links[i];
    std::string const at = "links[" + std::to_string(i) + "].";
    bool const outermost = i + 1 == m.links.size();
    whole(l.group, outermost && inner < m.size() ? m.size() : inner, std::numeric_limits<int>::max(),
          at + "group");
    if (!outermost && l.group % inner)
      wrong("groups of " + std::to_string(l.group) + " do not consist of groups of " + std::to_string(inner),
            at + "group", "a multiple of " + std::to_string(inner));
    real(l.latency, 0, at + "latency");
    real(l.bandwidth, 1, at + "bandwidth");
    inner = l.group;
  }
}
/// The same for a machine that is a value.
inline void require_machine(machine const& m) { require_machine(m, "machine \"" + m.name + "\": "); }

}  // namespace tensorpar
