// tensorpar/exec/parameters_file.hpp - parameters alone, by name, in a safetensors file: weights from elsewhere, weights for others
#pragma once
#include <concepts>
#include <tensorpar/exec/checkpoint.hpp>

namespace tensorpar {

/// Whose parameters can be fetched and stored by value id, as whole row-major tensors. Models: `executor`, `forward_pass`.
template <class Run>
concept has_parameters = requires(Run& run, Run const& from, int value, std::vector<typename Run::scalar> const& all) {
  { stored_as<typename Run::scalar>::type } -> std::convertible_to<stored_type>;
  { from.graph() } -> std::convertible_to<training_graph const&>;
  { from.program() } -> std::convertible_to<program const&>;
  { from.fetch(value) } -> std::same_as<std::vector<typename Run::scalar>>;
  run.store(value, all);
};

/// Writes every parameter into the file `path`, which is replaced once all is on the disk. Neither an optimizer's state is among it nor the
/// masters of parameters in bf16 (save_checkpoint keeps both). Throws `error` if the system refuses, and for a run that has failed or has
/// no values yet.
/// Several processes (exec/processes.hpp) call it together: the one that leads writes.
template <has_parameters Run> void save_parameters(Run const& run, std::string const& path) {
  detail::require_savable(run, "save_parameters");
  detail::write_together(run, [&](auto const& all) {
    detail::save_payload(all, path + ".partial", 0);
    detail::rename_path(path + ".partial", path);
    std::size_t const slash = path.find_last_of('/');
    detail::sync_folder(slash == std::string::npos ? "." : path.substr(0, slash + 1));
    return path;
  });
}

/// Puts the parameters of such a file, whoever wrote it, into a run or a forward pass of a model with parameters of the same names and
/// shapes: of a checkpoint "parameters.safetensors", also where the optimizer was another. Optimizer state, step and seed stay what they
/// are. Throws `error` for tensors that are missing, too many, of another shape or element type than the run's, before any is stored.
template <has_parameters Run> void load_parameters(Run& run, std::string const& path) {
  safetensors_file const file(path);
  detail::check_payload(run, file, 0);
  for (int x : detail::saved_values(run, 0))
    run.store(x, file.template read<typename Run::scalar>(run.graph().graph.value(x).name));
}

}  // namespace tensorpar
