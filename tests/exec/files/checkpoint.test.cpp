// tests/exec/files/checkpoint.test.cpp - resuming is as if nothing had happened, under any plan; and no crash or damage goes unnoticed
#include "support/faults.hpp"
#include "support/scratch_folder.hpp"
#include "support/small_run.hpp"
#include "support/spine.hpp"
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <tensorpar/exec/files/checkpoint.hpp>

using namespace tests;

namespace {

template <class E> void steps(E& e, int from, int to) {
  for (int k = from; k < to; ++k) e.step(random_batch(e.graph().graph, e.plan_value().micro_batches, static_cast<u64>(k)), 0.125);
}
/// Parameters and optimizer state.
template <class E> std::vector<std::vector<typename E::scalar>> all_of(E const& e) {
  std::vector<std::vector<typename E::scalar>> r;
  for (std::size_t x = 0; x < e.graph().graph.values.size(); ++x) {
    value_role const role = e.graph().graph.values[x].role;
    if (role == value_role::parameter || role == value_role::state) r.push_back(e.fetch(static_cast<int>(x)));
  }
  return r;
}

static_assert(resumable<small_run>);
static_assert(resumable<executor_of<float>> && resumable<executor_of<double>> && resumable<executor_of<prime_field>>);
struct lacks_seed : small_run {
  void set_seed(u64) = delete;
};
static_assert(!resumable<lacks_seed> && !resumable<int>);

std::string load_refused(small_run& run, std::string const& from) {
  auto const before = run.at;
  u64 const step = run.step;
  try {
    load_checkpoint(run, from);
  } catch (error const& e) {
    CHECK(run.at == before);  // nothing was stored
    CHECK(run.step == step);
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE_TEMPLATE("a run resumed under another plan equals the uninterrupted one", S, prime_field, double) {
  std::mt19937 draw(11);
  int trial = 0;
  for (computation_graph const& g : {residual_mlp(), small_cnn(), small_transformer()})
    for (optimizer_kind k : {optimizer_kind::sgd, optimizer_kind::momentum, optimizer_kind::adamw}) {
      training_options o;
      o.optimizer.kind = k;
      o.optimizer.eps = 1e-3;  // a gradient that is zero but for rounding stays small after AdamW's division
      plan four = random_plan(g, 4, draw), two = random_plan(g, 2, draw), one = serial_plan(g);
      four.optimizer = two.optimizer = one.optimizer = o.optimizer;
      for (op_strategy& c : four.nodes) c = {c.sharding, static_cast<tensorpar::ir::zero_stage>(draw() % 4), draw() % 2 == 0};
      scratch_folder const folder;
      executor_of<S> through(differentiate(g, o), four);
      through.initialise(7);
      steps(through, 0, 3);
      std::string const path = save_checkpoint(through, folder / "run");
      CHECK(path == folder / "run/step-3");
      auto const saved = all_of(through);
      steps(through, 3, 6);
      auto const want = all_of(through);
      for (plan const& p : {four, two, one}) {
        CAPTURE(trial);
        executor_of<S> again(differentiate(g, o), p);
        found_checkpoint const f = load_checkpoint(again, folder / "run");
        CHECK(f.path == path);
        CHECK(f.skipped.empty());
        CHECK(again.steps() == 3);
        CHECK(again.seed() == 7);
        CHECK(again.copies_agree());
        bool const loaded = all_of(again) == saved;
        CHECK(loaded);
        steps(again, 3, 6);
        if constexpr (std::is_same_v<S, prime_field>) {
          bool const exact = all_of(again) == want;
          CHECK(exact);
        } else {
          if (p == four) {
            bool const bitwise = all_of(again) == want;
            CHECK(bitwise);
          } else
            CHECK(distance(all_of(again), want) < 1e-12);
        }
        ++trial;
      }
    }
}

TEST_CASE("another number of micro-batches is the same model") {
  computation_graph const g = residual_mlp();
  training_options once, twice;
  twice.micro_batches = 2;
  CHECK(tensorpar::ir::training_hash(differentiate(g, once)) == tensorpar::ir::training_hash(differentiate(g, twice)));
  computation_graph const other = [] {  // the same graph bound to half of the rows
    computation_graph h;
    int const x = h.add_input("x", {12, 48}), labels = h.add_input("labels", shape({12}, dtype::i32));
    int v = h.add_with_weights(linear{24}, {x}, "fc1");
    v = h.add_with_weights(relu{}, {out(h, v)}, "act");
    int const u = h.add_with_weights(linear{24}, {out(h, v)}, "fc2");
    v = h.add_with_weights(add{}, {out(h, v), out(h, u)}, "sum");
    v = h.add_with_weights(layernorm{}, {out(h, v)}, "norm");
    v = h.add_with_weights(linear{12}, {out(h, v)}, "head");
    v = h.add_with_weights(cross_entropy{}, {out(h, v), labels}, "loss");
    h.add_output("loss", out(h, v));
    return h;
  }();
  CHECK(g.hash() != other.hash());
  CHECK(tensorpar::ir::training_hash(differentiate(g)) == tensorpar::ir::training_hash(differentiate(other)));
  CHECK(tensorpar::ir::training_hash(differentiate(g)) != tensorpar::ir::training_hash(differentiate(small_cnn())));
}

TEST_CASE("the newest complete checkpoint is found, older ones go") {
  scratch_folder const folder;
  std::string const dir = folder / "a/b/run";
  CHECK(!latest_checkpoint(dir));
  small_run run;
  for (u64 n : {u64{1}, u64{2}, u64{10}}) {
    run.set(n);
    save_checkpoint(run, dir, 2);
  }
  CHECK(tensorpar::exec::detail::names_in(dir) == std::vector<std::string>{"step-10", "step-2"});
  CHECK(tensorpar::exec::detail::names_in(dir + "/step-10")
        == std::vector<std::string>{"manifest.json", "optimizer.safetensors", "parameters.safetensors"});
  CHECK(latest_checkpoint(dir).path == dir + "/step-10");  // by number, not by name
  small_run back;
  CHECK(load_checkpoint(back, dir + "/step-2").manifest.step == 2);
  CHECK(back.step == 2);
  CHECK(back.whole());
  CHECK_THROWS_WITH_AS(save_checkpoint(back, dir), doctest::Contains("a checkpoint of a later step, step-10, is there"), error);
  CHECK_THROWS_WITH_AS(save_checkpoint(back, dir, 0), doctest::Contains("at least 1"), error);
  CHECK_THROWS_WITH_AS(save_checkpoint(back, dir + "/step-2/manifest.json"), doctest::Contains("not a folder"), error);

  // a later one that is damaged is in nobody's way
  write_bytes(dir + "/step-10/parameters.safetensors", "x");
  found_checkpoint const f = latest_checkpoint(dir);
  CHECK(f.path == dir + "/step-2");
  REQUIRE(f.skipped.size() == 1);
  CHECK(f.skipped[0].find("the file has 1 bytes (at " + dir + "/step-10/parameters.safetensors); valid: ") == 0);
  save_checkpoint(back, dir);  // the same step again
  CHECK(tensorpar::exec::detail::names_in(dir) == std::vector<std::string>{"step-2"});
  back.set(3);
  back.at.begin()->second[0] = 5;  // same step, other content: replaced
  save_checkpoint(back, dir, 1);
  back.set(3);
  save_checkpoint(back, dir, 1);
  CHECK(tensorpar::exec::detail::names_in(dir) == std::vector<std::string>{"step-3"});
  small_run third;
  load_checkpoint(third, dir);
  CHECK(third.whole());

  // what a crash between two renames leaves: the old one set aside, the new one not yet in place
  tensorpar::exec::detail::rename_path(dir + "/step-3", dir + "/step-3.old");
  CHECK(latest_checkpoint(dir).path == dir + "/step-3.old");
  save_checkpoint(back, dir);
  CHECK(tensorpar::exec::detail::names_in(dir) == std::vector<std::string>{"step-3"});
  // both there, the new one damaged
  std::filesystem::copy(dir + "/step-3", dir + "/step-3.old");
  write_bytes(dir + "/step-3/manifest.json", "{");
  CHECK(latest_checkpoint(dir).path == dir + "/step-3.old");
  save_checkpoint(back, dir);
  CHECK(tensorpar::exec::detail::names_in(dir) == std::vector<std::string>{"step-3"});
  // names that are not ours are left alone
  for (char const* name : {"step-", "step-x", "step-07", "step-99999999999999999999", "notes"})
    tensorpar::exec::detail::make_folders(dir + "/" + name);
  back.set(4);
  save_checkpoint(back, dir, 1);
  CHECK(tensorpar::exec::detail::names_in(dir) == std::vector<std::string>{"notes", "step-", "step-07", "step-4",
                                                                           "step-99999999999999999999", "step-x"});
}

TEST_CASE("damage is found: any byte, any cut") {
  scratch_folder const folder;
  small_run run;
  run.set(3);
  std::string const path = save_checkpoint(run, folder.path());
  std::mt19937 draw(4);
  for (char const* name : {"manifest.json", "parameters.safetensors", "optimizer.safetensors"}) {
    std::string const file = path + "/" + name, good = bytes_of_file(file);
    CAPTURE(name);
    for (std::size_t i = 0; i < good.size(); i += 1 + draw() % 4) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ 1 << draw() % 7);
      write_bytes(file, bad);
      bool refused = false;
      try {
        detail::sound_manifest(path);
      } catch (error const&) { refused = true; }
      bool const blank =
          name[0] == 'm' && (good[i] == ' ' || good[i] == '\n') && (bad[i] == ' ' || bad[i] == '\n' || bad[i] == '\t' || bad[i] == '\r');
      if (!blank) CHECK_MESSAGE(refused, i);  // white space between words carries nothing
    }
    for (std::size_t n = 0; n < good.size(); n += 23) {
      write_bytes(file, good.substr(0, n));
      CHECK(!latest_checkpoint(folder.path()));
    }
    write_bytes(file, good);
    CHECK(latest_checkpoint(folder.path()));
    std::filesystem::remove(file);
    CHECK(latest_checkpoint(folder.path()).skipped.size() == 1);
    CHECK(load_refused(run, folder.path()).find("there is no complete checkpoint; ") == 0);
    write_bytes(file, good);
  }
  CHECK(load_refused(run, folder / "nowhere") ==
        "there is no complete checkpoint (at " + folder / "nowhere" + "); valid: a folder that save_checkpoint has written");
}

TEST_CASE("a checkpoint of something else is refused, in one sentence, before anything is stored") {
  scratch_folder const folder;
  small_run run;
  run.set(3);
  std::string const path = save_checkpoint(run, folder.path());
  small_run momentum(optimizer_kind::momentum), wide(optimizer_kind::adamw, 7);
  CHECK(load_refused(momentum, path) == "a checkpoint of a run with adamw (at " + path + "/manifest.json: optimizer); valid: momentum");
  CHECK(load_refused(wide, path).find("a checkpoint of another model, \"small\" (at " + path + "/manifest.json: graph); valid: graph ") ==
        0);
  CHECK(load_refused(wide, path).find("] in the file and [7") != std::string::npos);          // names and shapes of the first that differ
  computation_graph const g = residual_mlp();
  executor_of<float> f(differentiate(g), serial_plan(g));
  CHECK_THROWS_WITH_AS(load_checkpoint(f, path), doctest::Contains("a checkpoint of elements of type F64"), error);

  // Forged ones, with hashes that fit: the payload itself is looked at.
  auto const forge = [&](auto const& change, int which) {
    tensorpar::exec::checkpoint_manifest m = detail::sound_manifest(path);
    scratch_folder const copy;
    std::vector<tensorpar::exec::stored_tensors> headers;
    for (int k : {0, 1})
      headers.push_back(tensorpar::exec::safetensors_file(path + "/" + m.files[static_cast<std::size_t>(k)].name).header());
    change(m, headers[static_cast<std::size_t>(which)]);
    for (std::size_t k = 0; k < 2; ++k) {
      tensorpar::exec::safetensors_writer w(copy / detail::payload_names[k], headers[k]);
      for (tensorpar::exec::stored_tensor const& t : headers[k].tensors) {
        if (t.type == tensorpar::exec::stored_type::f64)
          w.write(std::vector<double>(static_cast<std::size_t>(t.elements())));
        else
          w.write(std::vector<float>(static_cast<std::size_t>(t.elements())));
      }
      w.finish();
      if (k < m.files.size()) {
        m.files[k].bytes = w.bytes();
        m.files[k].hash = w.hash();
      }
    }
    write_bytes(copy / "manifest.json", tensorpar::exec::encode(m).dump());
    std::string const said = load_refused(run, copy.path());
    return said.substr(0, said.find(" (at ")) + said.substr(std::min(said.size(), said.find("; valid")));
  };
  using manifest = tensorpar::exec::checkpoint_manifest;
  CHECK(forge([](manifest&, tensorpar::exec::stored_tensors& h) { h.tensors.pop_back(); }, 0)
        == "a tensor is missing; valid: every parameter of the model");
  CHECK(forge([](manifest&, tensorpar::exec::stored_tensors& h) { h.tensors.pop_back(); }, 1) ==
        "a tensor is missing; valid: every optimizer state of the model");
  CHECK(forge(
            [](manifest&, tensorpar::exec::stored_tensors& h) {
              h.tensors.push_back({"more", tensorpar::exec::stored_type::f64, {2}, 0, 0});
            },
            0) == "a tensor that the model does not have; valid: the model's own tensors alone");
  CHECK(forge([](manifest&, tensorpar::exec::stored_tensors& h) { std::swap(h.tensors[0].extents[0], h.tensors[0].extents[1]); }, 0) ==
        "a tensor of shape [3,6]; valid: [6,3]");
  CHECK(forge([](manifest&, tensorpar::exec::stored_tensors& h) { h.tensors[0].extents = {18}; }, 1)
        == "a tensor of shape [18]; valid: [6,3]");
  CHECK(forge([](manifest&, tensorpar::exec::stored_tensors& h) { h.tensors[0].type = tensorpar::exec::stored_type::f32; }, 0)
        == "elements of type F32; valid: F64");
  CHECK(forge([](manifest& m, tensorpar::exec::stored_tensors&) { m.files.pop_back(); }, 0).find("not the files of a checkpoint") == 0);
  CHECK(forge([](manifest&, tensorpar::exec::stored_tensors&) {}, 0) == "");  // the forger's tools work

  auto const edited = [&](std::string const& from, std::string const& to) {
    std::string text = bytes_of_file(path + "/manifest.json");
    text.replace(text.find(from), from.size(), to);
    try {
      tensorpar::exec::decode_manifest(text, "m");
    } catch (error const& e) { return std::string(e.what()); }
    return std::string();
  };
  CHECK(edited("\"tensorpar_checkpoint\": 1", "\"tensorpar_checkpoint\": 2") ==
        "a checkpoint of schema version 2 (at m: tensorpar_checkpoint); valid: version 1");
  CHECK(edited("\"step\": 3", "\"step\": 4").find("the manifest was edited or damaged") == 0);
  CHECK(edited("\"step\": 3", "\"step\": -4") == "not a whole number from 0 (at m: step); valid: a whole number below 2^64");
  CHECK(edited("adamw", "adam") == "unknown optimizer (at m: optimizer); valid: sgd, momentum, adamw");
  CHECK(edited("parameters.safetensors", "../parameters").find("not a plain file's name (at m: files[0].name)") == 0);
  CHECK(edited("optimizer.safetensors", "parameters.safetensors").find("a file that stands twice (at m: files[1].name)") == 0);
  CHECK(edited("\"seed\"", "\"seeds\"").find("unknown key (at m: \"seeds\")") == 0);
}

TEST_CASE("manifests survive, at the ends of their ranges too") {
  std::mt19937_64 draw(8);
  for (int trial = 0; trial < 200; ++trial) {
    tensorpar::exec::checkpoint_manifest m;
    m.step = draw() >> draw() % 64;
    m.seed = trial == 0 ? ~u64{0} : draw();
    m.model = "a \"model\" \xc3\xa4 " + std::to_string(draw() % 100);
    m.graph = draw();
    m.optimizer = static_cast<optimizer_kind>(draw() % 3);
    m.scalar = "F32";
    for (u64 n = draw() % 4; n > 0; --n) m.files.push_back({"file-" + std::to_string(n), draw(), draw()});
    CHECK(tensorpar::exec::decode_manifest(tensorpar::exec::encode(m).dump(static_cast<int>(draw() % 3) - 1), "m") == m);
  }
  tensorpar::exec::checkpoint_manifest m;
  m.model = "\xff";
  CHECK_THROWS_WITH_AS(tensorpar::exec::encode(m), doctest::Contains("UTF-8"), error);
}

TEST_CASE("two processes do not save to one folder") {
  scratch_folder const folder;
  tensorpar::exec::detail::folder_lock const other(folder.path());  // locks belong to open files, so this stands for another process
  small_run run;
  CHECK_THROWS_WITH_AS(save_checkpoint(run, folder.path()), doctest::Contains("another process is saving here"), error);
  CHECK(tensorpar::exec::detail::names_in(folder.path()).empty());
}

TEST_CASE("a disk that is full leaves the old checkpoint") {
  scratch_folder const folder;
  small_run run;
  run.set(1);
  save_checkpoint(run, folder.path());
  pid_t const child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {  // writing beyond the limit fails, as on a full disk
    ::signal(SIGXFSZ, SIG_IGN);
    ::rlimit const limit{100, 100};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    run.set(2);
    try {
      save_checkpoint(run, folder.path());
    } catch (error const&) { ::_exit(tensorpar::exec::detail::names_in(folder.path()).size() == 1 ? 7 : 8); }
    ::_exit(9);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
  CHECK(latest_checkpoint(folder.path()).manifest.step == 1);
}

TEST_CASE("a process killed at any system call of a save leaves a complete checkpoint") {
  // what is saved next, over which folder: a new step, a new step that pushes an old one out, the same step again
  struct scene {
    std::vector<u64> before;
    u64 next;
    int keep;
  };
  if (!may_trace()) {
    MESSAGE("skipped: no process may trace another here, so that none is killed at its system calls");
    return;
  }
  for (scene const& s : {scene{{1}, 2, 2}, scene{{1, 2}, 3, 1}, scene{{1}, 1, 1}}) {
    int kills = 0;
    scratch_folder const start;
    small_run run;
    for (u64 k : s.before) {
      run.set(k);
      save_checkpoint(run, start.path(), 2);
    }
    for (int n = 0;; ++n) {
      CAPTURE(n);
      CAPTURE(s.next);
      scratch_folder const folder;
      std::filesystem::copy(start.path(), folder.path(), std::filesystem::copy_options::recursive);
      run.set(s.next);
      bool const done = done_despite_kill([&] { save_checkpoint(run, folder.path(), s.keep); }, n);
      kills += !done;
      small_run back;
      found_checkpoint const f = load_checkpoint(back, folder.path());
      CHECK(f.skipped.empty());  // what a crash leaves is never even mistaken for a checkpoint
      CHECK(back.whole());
      CHECK((f.manifest.step == s.before.back() || f.manifest.step == s.next));
      if (done) CHECK(f.manifest.step == s.next);
      if (done || n % 3 == 0) {  // the next save works, and sweeps up
        run.set(s.next + 1);
        save_checkpoint(run, folder.path(), 1);
        CHECK(tensorpar::exec::detail::names_in(folder.path()) == std::vector<std::string>{"step-" + std::to_string(s.next + 1)});
      }
      if (done) break;
      REQUIRE(n < 2000);
    }
    CHECK(kills > 20);
  }
}

TEST_CASE("a process killed at any time between saves leaves a complete checkpoint") {
  std::mt19937 draw(6);
  scratch_folder const folder;
  small_run run;
  u64 last = 1;
  run.set(last);
  auto const start = std::chrono::steady_clock::now();
  save_checkpoint(run, folder.path());
  auto const one = 1 + std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start).count();
  for (int trial = 0; trial < 30; ++trial) {
    pid_t const child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (u64 n = last + 1;; ++n) {
        run.set(n);
        try {
          save_checkpoint(run, folder.path());
        } catch (...) { ::_exit(2); }
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(static_cast<long>(draw()) % (6 * one)));  // about three saves, whatever the disk
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
    small_run back;
    found_checkpoint const f = load_checkpoint(back, folder.path());
    CHECK(f.skipped.empty());
    CHECK(back.whole());
    CHECK(back.step >= last);
    last = back.step;
  }
  CHECK(last > 1);
}
