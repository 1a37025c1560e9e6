// tensorpar/tool/demo_command.hpp - `tensorpar run-demo`: a small network planned for this machine, trained
// under several plans, and measured
#pragma once
#include <string>
#include <tensorpar/report/json.hpp>
#include <tensorpar/report/strategy.hpp>
#include <tensorpar/report/units.hpp>
#include <tensorpar/tool/console.hpp>
#include <tensorpar/tool/demo/local_plans.hpp>
#include <tensorpar/tool/demo/network.hpp>
#include <tensorpar/tool/demo/race.hpp>
#include <tensorpar/tool/settings.hpp>
#include <thread>

namespace tensorpar::tools {

/// Plans the built-in network for threads of this machine, and trains it under the plan, data parallelism,
/// tensor parallelism and on one device, in turns (`race`). Tells what each took beside what was predicted.
/// `found_something` where they did not train the same. Throws `error` as `plans_for` does. Takes
/// seconds.
inline exit_code demo_command(settings const& s, console const& io) {
  int const cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  int const devices = s.devices ? s.devices : usual_devices(cores);
  training_problem const asked{.graph = demo_graph(1),
                               .samples = demo_batch,
                               .optimizer = {optimizer_kind::momentum},
                               .scratch = exec::scratch_of<demo_kernels>(),
                               .name = "demo"};
  if (!s.json)
    io.out << "a network of a convolution and wide layers on " << devices << " of " << cores
           << " cores of this machine, " << demo_batch << " samples a step\n";
  planning_options const whole_batch{.micro_batches = {1},
                                     .schedules = std::vector<search::schedule_kind>{}};
  local_machine here(devices);
  local_plans const plans = plans_for(asked, here, whole_batch);
  std::string const strategy = report::strategy_text(plans.found.graph, plans.found.plan);
  if (!s.json) io.out << "chosen plan: " << strategy << "\n" << std::flush;
  auto const images = [](int step) { return demo_images(demo_batch, static_cast<unsigned>(step)); };
  race_result const r = race_plans(plans, images, {.rounds = s.rounds});
  bool const same = r.differ <= float_noise;
  if (s.json) {
    core::json line = race_json(r);
    line.update(
        {{"strategy", strategy}, {"cores", cores}, {"samples", demo_batch}, {"same_training", same}});
    io.out << report::event_line("race", line);
  } else {
    io.out << race_table(r) << race_text(r) << "after " << race_options{}.steps
           << " equal steps all have the same parameters but for "
           << report::detail::printed("%.1e", r.differ)
           << (same ? ", the noise of float\n" : ", which is MORE than the noise of float\n");
  }
  return same ? exit_code::fine : exit_code::found_something;
}

}  // namespace tensorpar::tools
