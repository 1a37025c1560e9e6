// tensorpar/exec/files/parameters_file.hpp - parameters alone, by name, in a safetensors file: weights from
// elsewhere, weights for others
#pragma once
#include <concepts>
#include <optional>
#include <tensorpar/exec/device/has_parameters.hpp>
#include <tensorpar/exec/files/checkpoint.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace tensorpar {

/// Writes every parameter into the file `path`, which is replaced once all is on the disk. Neither an
/// optimizer's state is among it nor the masters of parameters in bf16 (save_checkpoint keeps both). Throws
/// `error` if the system refuses, and for a run that has failed or has no values yet; unless `numbers` says
/// any, also for a parameter that is NaN or infinite somewhere, which it names.
/// Several processes (exec/comm/processes.hpp) call it together: the one that leads writes.
template <exec::has_parameters Run>
void save_parameters(Run const& run, std::string const& path,
                     exec::saved_numbers numbers = exec::saved_numbers::finite) {
  detail::require_savable_on_all(run, "save_parameters");
  detail::write_together(run, [&](auto const& all) {
    detail::save_payload(all, path, 0, numbers, "save_parameters");
    return path;
  });
  exec::detail::on_all(run, "save_parameters", [] { return std::vector<exec::shared_fact>{}; });
}

namespace detail {
/// Reads file tensors into parameters, once every process has found them to be there and to fit: check(file)
/// says which, in pairs of a value and the tensor's name.
template <class Run, class Check> void load_tensors(Run& run, std::string const& path, Check const& check) {
  std::optional<exec::safetensors_file> file;
  std::vector<std::pair<int, std::string>> wanted;
  auto const on_all = [&](auto const& f) {
    exec::detail::on_all(run, "load_parameters", [&] { f(); return std::vector<exec::shared_fact>{}; }, true);
  };
  on_all([&] { wanted = check(file.emplace(path)); });
  on_all([&] {
    exec::detail::forget_values(run);
    for (auto const& [x, name] : wanted) run.store(x, file->template read<typename Run::scalar>(name));
  });
}
}  // namespace detail

/// Puts the parameters of such a file, whoever wrote it, into a run or a forward pass of a model with
/// parameters of the same names and shapes: of a checkpoint "parameters.safetensors", also where the
/// optimizer was another. Optimizer state, step and seed stay what they are. Runs in float or double take any
/// real type (exec/device/stored_type.hpp), others their own. Throws `error` for tensors that are missing,
/// too many, of another shape or element type, before any is stored.
/// Several processes (exec/comm/processes.hpp) call it together; where one cannot read its file, all throw
/// what it does, and none is changed. Where a file can no longer be read after it was checked, no run is left
/// with some of it: its parameters have no values then.
template <exec::has_parameters Run> void load_parameters(Run& run, std::string const& path) {
  detail::load_tensors(run, path, [&](exec::safetensors_file const& file) {
    detail::check_payload(run, file, 0, std::floating_point<typename Run::scalar>);
    std::vector<std::pair<int, std::string>> wanted;
    for (int x : detail::saved_values(run, 0)) wanted.emplace_back(x, run.graph().graph.value(x).name);
    return wanted;
  });
}
/// The same from a file whose tensors have other names, and that may hold more of them: `names(parameter)` is
/// the tensor's name in the file. Throws `error` as above, but for tensors that no parameter asks for.
template <exec::has_parameters Run, class Names>
  requires std::is_invocable_r_v<std::string, Names const&, std::string const&>
void load_parameters(Run& run, std::string const& path, Names const& names) {
  using number = typename Run::scalar;
  detail::load_tensors(run, path, [&](exec::safetensors_file const& file) {
    std::vector<std::pair<int, std::string>> wanted;
    for (int x : detail::saved_values(run, 0)) {
      std::string const& parameter = run.graph().graph.value(x).name;
      wanted.emplace_back(x, names(parameter));
      detail::check_tensor(file, wanted.back().second, detail::tensor_of(run, x), std::floating_point<number>,
                           "a tensor for parameter '" + parameter + "'");
      // elements that are none
      if constexpr (std::is_same_v<number, prime_field>) file.template read<number>(wanted.back().second);
    }
    return wanted;
  });
}

}  // namespace tensorpar
