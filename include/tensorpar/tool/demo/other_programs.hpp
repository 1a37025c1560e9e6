// tensorpar/tool/demo/other_programs.hpp - what other programs take of this machine while something is
// measured
#pragma once
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <tensorpar/core/read_file.hpp>
#include <unistd.h>

namespace tensorpar::tools {

/// Clock ticks of all processors together since the system started.
struct processor_ticks {
  double busy = 0, all = 0;
};

/// The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. Busy is all but idle
/// and iowait. Nothing where it is not that. O(the line).
inline std::optional<processor_ticks> processor_ticks_in(std::string_view text) {
  if (text.substr(0, 4) != "cpu ") return std::nullopt;
  text = text.substr(4, text.find('\n') - 4);
  processor_ticks r;
  int field = 0;
  for (; field < 8; ++field) {  // guests are counted as users already
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    unsigned long long n = 0;
    auto const [end, problem] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (problem != std::errc()) break;
    text = text.substr(static_cast<std::size_t>(end - text.data()));
    r.all += static_cast<double>(n);
    if (field != 3 && field != 4) r.busy += static_cast<double>(n);
  }
  if (field < 4) return std::nullopt;  // old kernels say less than all eight
  return r;
}

/// A moment: ticks of all programs, nothing where the system does not say, and of this one with its threads.
struct machine_look {
  std::optional<processor_ticks> machine;
  double own = 0;
};
/// The share of all cores that other programs used between two moments, from 0 to 1; also what a virtual
/// machine's host gave to others. Nothing for less than 20 ticks: they are too coarse.
inline std::optional<double> others_between(machine_look const& a, machine_look const& b) {
  if (!a.machine || !b.machine || b.machine->all - a.machine->all < 20) return std::nullopt;
  double const other = b.machine->busy - a.machine->busy - (b.own - a.own);
  return std::clamp(other / (b.machine->all - a.machine->all), 0.0, 1.0);
}

/// Watches from when it is made. Says nothing where the system does not (all but Linux).
class machine_watch {
  machine_look start_ = now();

 public:
  static machine_look now() {
    machine_look r;
    try {
      r.machine = processor_ticks_in(core::read_file("/proc/stat"));
    } catch (std::exception const&) {  // there is none
    }
    r.own = static_cast<double>(std::clock()) / CLOCKS_PER_SEC * static_cast<double>(::sysconf(_SC_CLK_TCK));
    return r;
  }
  /// See `others_between`: since it was made.
  std::optional<double> others() const { return others_between(start_, now()); }
};

/// So much of all cores is no noise any more: a step that needs every core waits for it.
inline constexpr double busy_share = 0.1;
inline bool is_busy(std::optional<double> others) { return others && *others >= busy_share; }
/// A sentence where the machine is busy, else nothing. `others`: of `machine_watch`.
inline std::string busy_text(std::optional<double> others) {
  if (!is_busy(others)) return "";
  char b[160];
  std::snprintf(b, sizeof b,
                "this machine is busy: other programs used %.0f %% of its cores while this ran; measured "
                "times are too long",
                100 * *others);
  return b;
}

}  // namespace tensorpar::tools
