// tensorpar/exec/files/checkpoint.hpp - a training run on disk: whole or not at all, and free of the plan
// that made it
#pragma once
#include <concepts>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/comm/agreement.hpp>
#include <tensorpar/exec/device/has_parameters.hpp>
#include <tensorpar/exec/files/checkpoint_folder.hpp>
#include <tensorpar/exec/files/different_tensors.hpp>
#include <tensorpar/exec/files/finite_check.hpp>
#include <tensorpar/exec/files/safetensors_file.hpp>
#include <tensorpar/program/core/program.hpp>

namespace tensorpar {

/// What can be saved and resumed: parameters and optimizer state by value id, as whole row-major tensors
/// (`fetch` and `store`; those that the program keeps are its persistent buffers), and the run's step and
/// seed. Model: `executor`.
template <class Run>
concept resumable = requires(Run& run, Run const& saved, int value,
                             std::vector<typename Run::scalar> const& all, u64 n) {
  { exec::stored_as<typename Run::scalar>::type } -> std::convertible_to<exec::stored_type>;
  { saved.graph() } -> std::convertible_to<training_graph const&>;
  { saved.program() } -> std::convertible_to<program const&>;
  { saved.plan_value() } -> std::convertible_to<plan const&>;
  { saved.fetch(value) } -> std::same_as<std::vector<typename Run::scalar>>;
  run.store(value, all);
  { saved.steps() } -> std::convertible_to<u64>;
  { saved.seed() } -> std::convertible_to<u64>;
  run.set_steps(n);
  run.set_seed(n);
};

namespace detail {

/// Ids of what is saved: parameters (0) or optimizer state (1).
template <class Run> std::vector<int> saved_values(Run const& run, int kind) {
  std::set<int> ids;
  for (buffer const& b : static_cast<program const&>(run.program()).buffers)
    if (b.persistent && b.value >= 0) ids.insert(b.value);
  std::vector<int> r;
  for (int x : ids)
    if (run.graph().graph.value(x).role == (kind ? value_role::state : value_role::parameter)) r.push_back(x);
  return r;
}
template <class Run> exec::stored_tensor tensor_of(Run const& run, int x) {
  graph_value const& v = run.graph().graph.value(x);
  exec::stored_tensor t{v.name, exec::stored_as<typename Run::scalar>::type, {}, 0, 0};
  for (int d = 0; d < v.type.rank; ++d) t.extents.push_back(v.type.d[d].n);
  return t;
}

/// Throws `error` for a run whose parameters are half updated, or were never given values.
template <class Run> void require_savable(Run const& run, char const* where) {
  if constexpr (requires { run.failed(); })
    if (run.failed())
      throw error("a run that failed in the middle of a step", where, "a run whose steps all ended well");
  if constexpr (requires { run.has_values(); })
    if (!run.has_values())
      throw error("a run whose parameters have no values yet", where,
                  "initialise(seed), load_checkpoint or store before");
}
/// The same on all processes; all that they are to save is what they have alike.
template <class Run> void require_savable_on_all(Run const& run, char const* where) {
  exec::detail::on_all(run, where, [&] {
    require_savable(run, where);
    return std::vector<exec::shared_fact>{};
  });
}
template <class Run>
exec::checkpoint_part save_payload(Run const& run, std::string const& path, int kind,
                                   exec::saved_numbers numbers, char const* where) {
  std::vector<int> const ids = saved_values(run, kind);
  exec::stored_tensors header;
  for (int x : ids) header.tensors.push_back(tensor_of(run, x));
  exec::safetensors_writer out(path, std::move(header));
  for (int x : ids) {
    auto const all = run.fetch(x);
    graph_value const& v = run.graph().graph.value(x);
    if (numbers == exec::saved_numbers::finite)
      exec::detail::require_finite(all, kind ? "optimizer state" : "parameter", v.name, v.type, where);
    out.write(all);
  }
  out.finish();
  return {payload_names[kind], out.bytes(), out.hash()};
}

inline std::string extents_text(std::vector<i64> const& e) { return core::json(e).dump(); }

/// What parameters tell a checkpoint's model from the run's: "; <the first>", or that these are the same.
/// O(parameters).
template <class Run> std::string how_other(Run const& run, std::string const& folder) {
  std::vector<exec::stored_tensor> ours;
  for (int x : saved_values(run, 0)) ours.push_back(tensor_of(run, x));
  std::string const text =
      exec::detail::different_tensors(exec::safetensors_file(folder + "/" + payload_names[0]).header(), ours);
  return "; " + (text.empty() ? "parameters are the same, operators are others" : text);
}

/// Throws `error` unless the file holds tensor `name` as the run's `w` is: of its shape and its type, or if
/// `any_real` of any real type. `valid`: what to say where it is missing.
inline void check_tensor(exec::safetensors_file const& in, std::string const& name,
                         exec::stored_tensor const& w, bool any_real, std::string const& valid) {
  exec::stored_tensor const* t = in.header().find(name);
  if (!t) throw error("a tensor is missing", exec::detail::tensor_place(in.path(), name), valid);
  if (t->extents != w.extents)
    throw error("a tensor of shape " + extents_text(t->extents),
                exec::detail::tensor_place(in.path(), name, "shape"), extents_text(w.extents));
  if (any_real ? !t->real() : !t->is(w.type))
    throw error("elements of type " + t->type_name(), exec::detail::tensor_place(in.path(), name, "dtype"),
                any_real ? exec::real_types : exec::name_of(w.type));
}
/// Throws `error` unless the file holds exactly the run's tensors of this kind. `any_real`: as above.
template <class Run>
void check_payload(Run const& run, exec::safetensors_file const& in, int kind, bool any_real = false) {
  std::map<std::string, exec::stored_tensor> wanted;
  for (int x : saved_values(run, kind)) wanted.emplace(run.graph().graph.value(x).name, tensor_of(run, x));
  for (auto const& [name, w] : wanted)
    check_tensor(in, name, w, any_real,
                 "every " + std::string(kind ? "optimizer state" : "parameter") + " of the model");
  for (exec::stored_tensor const& t : in.header().tensors)
    if (!wanted.contains(t.name))
      throw error("a tensor that the model does not have", exec::detail::tensor_place(in.path(), t.name),
                  "the model's own tensors alone");
  if constexpr (std::is_same_v<typename Run::scalar, prime_field>)
    // elements that are none are found before any is stored
    for (auto const& w : wanted) in.read<typename Run::scalar>(w.first);
}

template <class Run>
std::string write_checkpoint(Run const& run, std::string const& dir, int keep_last,
                             exec::saved_numbers numbers) {
  if (keep_last < 1)
    throw error("checkpoints to keep: " + std::to_string(keep_last), "save_checkpoint", "at least 1");
  exec::detail::make_folders(dir);
  exec::detail::folder_lock const lock(dir);
  detail::step_folder const mine{run.steps(), false}, aside{run.steps(), true};
  for (std::string const& n : exec::detail::names_in(dir))
    // of a process that died
    if (n.starts_with(".partial-") || n.starts_with(".discarded-"))
      exec::detail::remove_folder(dir + "/" + n);
  for (detail::step_folder const& s : detail::step_folders(dir)) {
    if (s.step <= mine.step) break;
    if (detail::is_sound(dir + "/" + s.name()))
      throw error("a checkpoint of a later step, " + s.name() + ", is there", dir,
                  "another folder, or remove the later checkpoints first");
    detail::discard(dir, s.name());
  }

  std::string const part = exec::detail::make_new_folder(dir + "/.partial-" + mine.name() + "-");
  std::string const whole = dir + "/" + mine.name(), old = dir + "/" + aside.name();
  exec::checkpoint_manifest m;
  m.step = run.steps();
  m.seed = run.seed();
  m.model = run.plan_value().model;
  m.graph = ir::training_hash(run.graph());
  m.optimizer = run.plan_value().optimizer.kind;
  m.scalar = name_of(exec::stored_as<typename Run::scalar>::type);
  try {
    for (int kind : {0, 1})
      m.files.push_back(
          detail::save_payload(run, part + "/" + payload_names[kind], kind, numbers, "save_checkpoint"));
    exec::output_file manifest(part + "/manifest.json");
    manifest.write(exec::encode(m).dump(1) + "\n");
    manifest.finish();
    exec::detail::sync_folder(part);
    if (exec::detail::exists(whole)) {  // the same step again: at every moment one of the two is complete
      if (exec::detail::exists(old))
        detail::discard(dir, detail::is_sound(whole) ? aside.name() : mine.name());
      if (exec::detail::exists(whole)) exec::detail::rename_path(whole, old);
    }
    exec::detail::rename_path(part, whole);
  } catch (...) {
    exec::detail::remove_folder(part);
    throw;
  }
  exec::detail::sync_folder(dir);
  int kept = 0;
  for (detail::step_folder const& s : detail::step_folders(dir))
    if (s.old || ++kept > keep_last) detail::discard(dir, s.name());
  return whole;
}

/// A run of several processes as the one that writes sees it: the others hear that a value is fetched, and
/// fetch it too.
template <class Run> struct leading_run {
  Run const& run;
  using scalar = typename Run::scalar;
  auto const& graph() const { return run.graph(); }
  auto const& program() const { return run.program(); }
  auto const& plan_value() const { return run.plan_value(); }
  u64 steps() const { return run.steps(); }
  u64 seed() const { return run.seed(); }
  std::vector<scalar> fetch(int value) const {
    run.hear_leader(&value, sizeof value);
    return run.fetch(value);
  }
};

/// What the leader's write(run) returns or throws, on every process.
template <class Run, class Write> std::string write_by_leader(Run const& run, Write const& write) {
  // the path; or what is wrong, and where and what is valid, with `wrong`
  std::string said[3];
  int wrong = 0, over = -1;
  if (run.leads()) {
    try {
      said[0] = write(leading_run<Run>{run});
    } catch (error const& e) {
      wrong = 1;
      said[0] = e.problem(), said[1] = e.where(), said[2] = e.valid();
    } catch (std::exception const& e) {
      wrong = 1;
      said[0] = e.what();
    }
    run.hear_leader(&over, sizeof over);
  } else {
    for (int value = 0;;) {
      run.hear_leader(&value, sizeof value);
      if (value < 0) break;
      run.fetch(value);
    }
  }
  run.hear_leader(&wrong, sizeof wrong);
  for (std::string& s : said) {
    u64 n = s.size();
    run.hear_leader(&n, sizeof n);
    s.resize(n);
    run.hear_leader(s.data(), n);
  }
  if (wrong) throw error(said[0], said[1], said[2]);
  return said[0];
}
/// What write(run) returns; of several processes the one that leads writes.
template <class Run, class Write> std::string write_together(Run const& run, Write const& write) {
  if constexpr (requires(void* p) {
                  run.hear_leader(p, u64{});
                  { run.leads() } -> std::same_as<bool>;
                })
    return write_by_leader(run, write);
  else return write(run);
}

}  // namespace detail

/// Saves the run as `dir`/step-<steps>, and returns that path once all is on the disk. The files are written
/// in a folder with another name, synced, and renamed. A process that dies at any point leaves the
/// checkpoints that were there, or those and the new one. Afterwards the `keep_last` newest stay and older
/// ones are removed.
/// Throws `error` if the system refuses, another process saves to `dir`, or the run has failed or has no
/// values yet. Also if a complete checkpoint of a later step is there, because a reader could not tell later
/// which of the two is the run's latest.
/// Also for a parameter or a state that is NaN or infinite somewhere, which it names, unless `numbers` says
/// any. The checkpoints that are there stay.
/// Several processes (exec/comm/processes.hpp) call it together. The one that leads writes, and all return or
/// throw what it does.
template <resumable Run>
std::string save_checkpoint(Run const& run, std::string const& dir, int keep_last = 2,
                            exec::saved_numbers numbers = exec::saved_numbers::finite) {
  detail::require_savable_on_all(run, "save_checkpoint");
  std::string const path = detail::write_together(
      run, [&](auto const& all) { return detail::write_checkpoint(all, dir, keep_last, numbers); });
  exec::detail::on_all(run, "save_checkpoint", [] { return std::vector<exec::shared_fact>{}; });
  return path;
}

namespace detail {
/// A checkpoint that has been found to be one of this run, open. Throws `error` as load_checkpoint does.
struct open_checkpoint {
  found_checkpoint found;
  std::vector<exec::safetensors_file> payload;                   // parameters, optimizer state

  template <class Run> open_checkpoint(Run const& run, std::string const& from) {
    if (exec::detail::exists(from + "/manifest.json")) {
      found.manifest = sound_manifest(from);
      found.path = from;
    } else {
      found = latest_checkpoint(from);
      std::string why;
      for (std::string const& s : found.skipped) why += "; " + s;
      if (!found)
        throw error("there is no complete checkpoint" + why, from,
                    "a folder that save_checkpoint has written");
    }
    exec::checkpoint_manifest const& m = found.manifest;
    std::string const place = found.path + "/manifest.json",
                      type = name_of(exec::stored_as<typename Run::scalar>::type);
    auto const optimizer = [](optimizer_kind k) { return std::string(optimizer_names[static_cast<int>(k)]); };
    optimizer_kind const kind = run.plan_value().optimizer.kind;
    if (m.scalar != type)
      throw error("a checkpoint of elements of type " + m.scalar, place + ": scalar", type);
    if (m.optimizer != kind)
      throw error("a checkpoint of a run with " + optimizer(m.optimizer), place + ": optimizer",
                  optimizer(kind));
    if (u64 const h = ir::training_hash(run.graph()); m.graph != h)
      throw error("a checkpoint of another model, \"" + m.model + "\"", place + ": graph",
                  "graph " + core::detail::hex_of(h) + ", \"" + run.plan_value().model + "\""
                      + how_other(run, found.path));
    if (m.files.size() != 2 || m.files[0].name != payload_names[0] || m.files[1].name != payload_names[1])
      throw error("not the files of a checkpoint", place + ": files",
                  std::string(payload_names[0]) + ", " + payload_names[1]);
    for (int k : {0, 1}) payload.emplace_back(found.path + "/" + m.files[idx(k)].name);
    for (int k : {0, 1}) check_payload(run, payload[idx(k)], k);
  }
  /// What every process must have found.
  std::vector<exec::shared_fact> facts() const {
    std::vector<exec::shared_fact> r{{"step", found.manifest.step}, {"seed", found.manifest.seed}};
    for (exec::checkpoint_part const& p : found.manifest.files)
      r.push_back({p.name + " with hash", p.hash, exec::shared_fact::kind::hash});
    return r;
  }
};
}  // namespace detail

/// Puts a checkpoint's parameters, optimizer state, step and seed into a run of the same model, under any
/// plan, on any number of devices. `from` is a folder of checkpoints (the newest complete one is taken) or
/// one checkpoint's own folder. The run is changed only after all has been checked. Throws `error`: no
/// complete checkpoint, damage, another model, optimizer or scalar, tensors that are missing, too many, or of
/// another shape.
/// Several processes (exec/comm/processes.hpp) call it together, each with a folder that it can read. Where
/// one of them cannot, all throw what it does; where they find checkpoints of different steps, seeds or
/// contents, all throw who found which. No run is changed then. Where a file can no longer be read after
/// that, no run is left with some of it: its parameters have no values then.
template <resumable Run> found_checkpoint load_checkpoint(Run& run, std::string const& from) {
  std::optional<detail::open_checkpoint> c;
  exec::detail::on_all(run, "load_checkpoint", [&] { return c.emplace(run, from).facts(); }, true);
  exec::detail::on_all(run, "load_checkpoint", [&] {
    exec::detail::forget_values(run);
    // parameters last: whoever has them all has the optimizer's state too
    for (int k : {1, 0})
      for (int x : detail::saved_values(run, k))
        run.store(x, c->payload[idx(k)].template read<typename Run::scalar>(
                         run.graph().graph.value(x).name));
    run.set_steps(c->found.manifest.step);
    run.set_seed(c->found.manifest.seed);
    return std::vector<exec::shared_fact>{};
  }, true);
  return c->found;
}

}  // namespace tensorpar
