// tensorpar/search/pipeline/schedules/schedule_kind.hpp - the names of schedules
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/index.hpp>

namespace tensorpar::search {

enum class schedule_kind : int {
  gpipe,
  one_f_one_b,
  k_f_k_b,
  greedy,
  interleaved,
  zb_h1,
  zb_h2,
  zb_auto,
  zb_v,
  v_half,
  v_min
};
inline constexpr std::array<std::string_view, 11> schedule_names{
    "gpipe",   "1f1b", "kfkb",   "greedy", "interleaved-1f1b", "zb-h1", "zb-h2",
    "zb-auto", "zb-v", "v-half", "v-min"};
constexpr std::string_view name_of(schedule_kind k) { return schedule_names[idx(k)]; }

/// Throws `error` listing the names if there is none such.
inline schedule_kind schedule_named(std::string_view name) {
  std::string all;
  for (std::size_t i = 0; i < schedule_names.size(); ++i) {
    if (schedule_names[i] == name) return static_cast<schedule_kind>(i);
    all += (i == 0 ? "" : ", ") + std::string(schedule_names[i]);
  }
  throw error("schedule \"" + std::string(name) + "\"", "schedule", all);
}

}  // namespace tensorpar::search
