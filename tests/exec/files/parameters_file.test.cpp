// tests/exec/files/parameters_file.test.cpp - weights handed on by name, to whatever plan, optimizer or forward pass; files that do not fit
#include <tensorpar/exec/files/parameters_file.hpp>

#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <filesystem>
#include <map>
#include <random>
#include <tensorpar/exec/forward_pass.hpp>

#include "support/scratch_folder.hpp"
#include "support/spine.hpp"

using namespace tests;

namespace {
static_assert(tensorpar::exec::has_parameters<executor_of<float>> && tensorpar::exec::has_parameters<forward_pass<compute::eigen<float>>>);
struct least {                                           // all that the concept asks for
  using scalar = float;
  training_graph const& graph() const;
  tensorpar::program const& program() const;
  std::vector<float> fetch(int) const;
  void store(int, std::vector<float> const&);
};
struct mute : least { std::vector<float> fetch(int) const = delete; };
static_assert(tensorpar::exec::has_parameters<least> && !tensorpar::exec::has_parameters<mute> && !tensorpar::exec::has_parameters<int>);

plan with(plan p, training_options const& o) {
  p.optimizer = o.optimizer;
  return p;
}
std::string refusal(auto const& call) {
  try { call(); } catch (error const& e) { return e.what(); }
  return {};
}
bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }
}  // namespace

TEST_CASE("saved under one plan and optimizer, loaded under others and into a forward pass, to the bit") {
  scratch_folder const folder;
  std::string const path = folder.path() + "/weights.safetensors";
  computation_graph const g = small_transformer();
  training_options adam;
  adam.optimizer.kind = optimizer_kind::momentum;
  std::mt19937 draw(3);
  executor_of<float> a(differentiate(g, adam), with(random_plan(g, 3, draw), adam)), b(differentiate(g), random_plan(g, 2, draw));
  train(a, 2);
  save_parameters(a, path);
  CHECK_FALSE(std::filesystem::exists(path + ".partial"));
  load_parameters(b, path);                            // gives every parameter its values
  CHECK(parameters_of(b) == parameters_of(a));
  CHECK(b.steps() == 0);
  forward_pass<compute::eigen<float>> f(g);
  load_parameters(f, path);
  host_batch const batch = random_batch(g, 1, 1);
  f.run(batch);
  CHECK(f.output("loss")[0] == doctest::Approx(b.step(batch, 0).loss));
  save_parameters(f, folder.path() + "/again.safetensors");
  tensorpar::exec::safetensors_file const one(path), two(folder.path() + "/again.safetensors");
  for (tensorpar::exec::stored_tensor const& t : one.header().tensors) CHECK(one.read<float>(t.name) == two.read<float>(t.name));
  std::string const checkpoint = save_checkpoint(a, folder.path() + "/run");
  executor_of<float> c(differentiate(g), serial_plan(g));
  load_parameters(c, checkpoint + "/parameters.safetensors");
  CHECK(parameters_of(c) == parameters_of(a));
}

TEST_CASE("files that do not fit change nothing") {
  scratch_folder const folder;
  std::string const path = folder.path() + "/weights.safetensors";
  computation_graph const g = residual_mlp();
  executor_of<float> run(differentiate(g), serial_plan(g));
  run.initialise(1);
  auto const before = parameters_of(run);
  auto const written = [&](auto const& change) {       // as another program might
    tensorpar::exec::stored_tensors header;
    std::vector<std::vector<float>> all;
    for (graph_value const& v : g.values)
      if (v.role == value_role::parameter) {
        tensorpar::exec::stored_tensor t{v.name, tensorpar::exec::stored_type::f32, {}, 0, 0};
        for (int d = 0; d < v.type.rank; ++d) t.extents.push_back(v.type.d[d].n);
        header.tensors.push_back(t);
      }
    change(header.tensors);
    for (tensorpar::exec::stored_tensor const& t : header.tensors) all.emplace_back(static_cast<std::size_t>(t.elements()), 0.5f);
    tensorpar::exec::safetensors_writer out(path, std::move(header));
    for (auto const& x : all) out.write(x);
    out.finish();
    return refusal([&] { load_parameters(run, path); });
  };
  CHECK(has(written([](auto& t) { t.pop_back(); }), "a tensor is missing"));
  CHECK(has(written([](auto& t) { t.front().name = "other"; }), "a tensor is missing"));
  CHECK(has(written([](auto& t) { t.push_back({"other", tensorpar::exec::stored_type::f32, {2}, 0, 0}); }),
            "a tensor that the model does not have"));
  CHECK(has(written([](auto& t) { t.front().extents.push_back(1); }), "a tensor of shape"));
  CHECK(has(refusal([&] { load_parameters(run, folder.path() + "/none"); }), "cannot read the file"));
  executor_of<double> wide(differentiate(g), serial_plan(g));
  CHECK(has(refusal([&] { save_parameters(wide, path); }), "parameters have no values yet (at save_parameters)"));
  CHECK(has(refusal([&] { save_checkpoint(wide, folder.path() + "/run"); }), "parameters have no values yet (at save_checkpoint)"));
  CHECK_FALSE(std::filesystem::exists(folder.path() + "/run"));
  CHECK(parameters_of(run) == before);
  CHECK(written([](auto&) {}) == "");
  CHECK(parameters_of(run)[0][0] == 0.5f);
  load_parameters(wide, path);                         // F32 as double
  CHECK(parameters_of(wide)[0][0] == 0.5);
  executor_of<prime_field> field(differentiate(g), serial_plan(g));
  CHECK(has(refusal([&] { load_parameters(field, path); }), "elements of type F32"));
  CHECK_FALSE(field.has_values());
  CHECK(has(refusal([&] { save_parameters(run, folder.path() + "/none/weights"); }), "cannot write the file"));
}

namespace {

using bytes = std::vector<unsigned char>;

/// Numbers that every real type has: n / 8 for |n| <= 128.
std::vector<double> eighths(i64 n, std::mt19937& draw) {
  std::vector<double> r;
  for (i64 i = 0; i < n; ++i) r.push_back((static_cast<double>(draw() % 257) - 128) / 8);
  return r;
}
/// As a file has them. Half precision by definition: a sign, a power of two from 2^-14, ten bits of fraction.
bytes stored(std::vector<double> const& all, tensorpar::exec::stored_type t) {
  bytes r;
  auto const put = [&](auto x) {
    unsigned char b[sizeof x];
    std::memcpy(b, &x, sizeof x);
    r.insert(r.end(), b, b + sizeof x);
  };
  for (double x : all)
    if (t == tensorpar::exec::stored_type::f64) put(x);
    else if (t == tensorpar::exec::stored_type::f32) put(static_cast<float>(x));
    else if (t == tensorpar::exec::stored_type::bf16) put(bfloat16(static_cast<float>(x)).bits);
    else {
      int e = 0;
      double const f = x == 0 ? 0 : std::frexp(std::fabs(x), &e) * 2;            // in [1, 2)
      int const half = x == 0 ? 0 : (e - 1 + 15) * 1024 + static_cast<int>((f - 1) * 1024);
      put(static_cast<std::uint16_t>(half + (x < 0 ? 0x8000 : 0)));
    }
  return r;
}
struct entry {
  tensorpar::exec::stored_tensor tensor;
  bytes data;
};
void write_file(std::string const& path, std::vector<entry> const& all) {
  tensorpar::exec::stored_tensors h;
  for (entry const& e : all) h.tensors.push_back(e.tensor);
  std::string file = tensorpar::exec::safetensors_header(h, path);
  for (entry const& e : all) file.append(e.data.begin(), e.data.end());
  write_bytes(path, file);
}
/// A file as another program writes it: other names and drawn types. Returns the numbers by parameter.
std::map<std::string, std::vector<double>> foreign_file(std::string const& path, computation_graph const& g, std::string const& prefix,
                                                        std::mt19937& draw) {
  std::map<std::string, std::vector<double>> r;
  std::vector<entry> all;
  tensorpar::exec::stored_type const types[] = {tensorpar::exec::stored_type::f16, tensorpar::exec::stored_type::bf16,
                                                tensorpar::exec::stored_type::f32, tensorpar::exec::stored_type::f64};
  for (graph_value const& v : g.values)
    if (v.role == value_role::parameter) {
      tensorpar::exec::stored_tensor t{prefix + v.name, types[draw() % 4], {}, 0, 0};
      for (int d = 0; d < v.type.rank; ++d) t.extents.push_back(v.type.d[d].n);
      r[v.name] = eighths(t.elements(), draw);
      all.push_back({t, stored(r[v.name], t.type)});
    }
  if (!prefix.empty()) {
    all.insert(all.begin() + 1, {{"steps", tensorpar::exec::stored_type::i64, {}, 0, 0}, bytes(8)});
    all.push_back({{"mask", tensorpar::exec::stored_type::bool8, {3, 5}, 0, 0}, bytes(15)});
  }
  write_file(path, all);
  return r;
}
template <class Run> bool holds(Run const& run, std::map<std::string, std::vector<double>> const& wanted) {
  bool all = true;
  for (std::size_t x = 0; x < run.graph().gradient.size(); ++x)
    if (graph_value const& v = run.graph().graph.values[x]; v.role == value_role::parameter) {
      auto const has = run.fetch(static_cast<int>(x));
      all = all && std::vector<double>(has.begin(), has.end()) == wanted.at(v.name);
    }
  return all;
}

}  // namespace

TEST_CASE("files of others: any real type, other names, tensors besides; under any plan, in float and double") {
  scratch_folder const folder;
  std::string const path = folder / "foreign.safetensors";
  std::mt19937 draw(17);
  for (computation_graph const& g : {residual_mlp(), small_cnn(), small_transformer()})
    for (int trial = 0; trial < 4; ++trial) {
      executor_of<float> single(differentiate(g), random_plan(g, 1 + trial, draw));
      executor_of<double> wide(differentiate(g), random_plan(g, 1 + trial, draw));
      forward_pass<compute::eigen<double>> pass(g);
      auto const own = foreign_file(path, g, "", draw);
      load_parameters(single, path);
      load_parameters(wide, path);
      load_parameters(pass, path);
      CHECK(holds(single, own));
      CHECK(holds(wide, own));
      CHECK(holds(pass, own));
      auto const other = foreign_file(path, g, "model.", draw);
      auto const names = [](std::string const& parameter) { return "model." + parameter; };
      CHECK(has(refusal([&] { load_parameters(single, path); }), "a tensor is missing"));
      load_parameters(single, path, names);
      load_parameters(wide, path, names);
      load_parameters(pass, path, names);
      CHECK(holds(single, other));
      CHECK(holds(wide, other));
      CHECK(holds(pass, other));
    }
}

TEST_CASE("nothing is stored before every name, shape and type has been checked") {
  scratch_folder const folder;
  std::string const path = folder / "foreign.safetensors";
  std::mt19937 draw(18);
  computation_graph const g = small_cnn();
  forward_pass<compute::eigen<float>> pass(g);
  auto const before = foreign_file(path, g, "", draw);
  load_parameters(pass, path);
  foreign_file(path, g, "m.", draw);
  std::string last;                                      // of the parameters: all others are fine when it is met
  for (graph_value const& v : g.values) if (v.role == value_role::parameter) last = v.name;
  auto const all_but = [&](std::string const& name) { return [&, name](std::string const& p) { return p == last ? name : "m." + p; }; };
  CHECK(refusal([&] { load_parameters(pass, path, all_but("none")); }) ==
        "a tensor is missing (at " + path + ": tensor \"none\"); valid: a tensor for parameter '" + last + "'");
  CHECK(has(refusal([&] { load_parameters(pass, path, all_but("steps")); }), "a tensor of shape []"));
  CHECK(holds(pass, before));

  std::vector<entry> all;
  for (graph_value const& v : g.values)
    if (v.role == value_role::parameter) {
      tensorpar::exec::stored_tensor q{v.name, v.name == last ? tensorpar::exec::stored_type::f8_e4m3 : tensorpar::exec::stored_type::f16,
                                       {}, 0, 0};
      for (int d = 0; d < v.type.rank; ++d) q.extents.push_back(v.type.d[d].n);
      all.push_back({q, bytes(static_cast<std::size_t>(q.elements() * tensorpar::exec::bytes_of(q.type)))});
    }
  write_file(path, all);
  auto const same = [](std::string const& p) { return p; };
  for (std::string const& says : {refusal([&] { load_parameters(pass, path); }), refusal([&] { load_parameters(pass, path, same); })})
    CHECK(says == "elements of type F8_E4M3 (at " + path + ": tensor \"" + last + "\", dtype); valid: F16, BF16, F32, F64");
  CHECK(holds(pass, before));

  forward_pass<compute::eigen<prime_field>> field(g);    // an element that is none is found as well
  for (entry& e : all) {
    e.tensor.type = tensorpar::exec::stored_type::field;
    e.data.assign(static_cast<std::size_t>(8 * e.tensor.elements()), e.tensor.name == last ? 255 : 0);
  }
  write_file(path, all);
  CHECK(has(refusal([&] { load_parameters(field, path, same); }), "element 0 is 18446744073709551615"));
  CHECK_FALSE(field.has_values());
}

namespace {
/// A run below whose first stored value the file loses its end, as it may on a network's file system.
template <class Run> struct while_cut : Run {
  using Run::Run;
  std::string cut;
  int stored = 0;
  void store(int value, std::vector<typename Run::scalar> const& all) {
    Run::store(value, all);
    if (!cut.empty() && stored++ == 0) std::filesystem::resize_file(cut, std::filesystem::file_size(cut) / 2);
  }
};
}  // namespace

TEST_CASE("a file that loses its end while it is read leaves no run with some of it") {
  scratch_folder const folder;
  computation_graph const g = residual_mlp();
  executor_of<float> trained(differentiate(g), serial_plan(g));
  trained.initialise(5);
  while_cut<executor_of<float>> run(differentiate(g), serial_plan(g));
  while_cut<forward_pass<compute::eigen<float>>> pass(g);
  run.initialise(6);
  pass.take_parameters(run);
  for (bool named : {false, true}) {
    auto const load = [&](auto& to) {
      std::string const path = folder / "weights.safetensors";
      save_parameters(trained, path);
      to.cut = path;
      to.stored = 0;
      std::string const says = refusal([&] {
        if (named) load_parameters(to, path, [](std::string const& p) { return p; });
        else load_parameters(to, path);
      });
      CHECK(has(says, path));
      CHECK(to.stored > 0);
      CHECK_FALSE(to.has_values());
      to.cut.clear();
    };
    load(run);
    CHECK(has(refusal([&] { run.step(random_batch(g, 1, 1), 0.1); }), "has no values yet"));
    CHECK(has(refusal([&] { save_parameters(run, folder / "mixed"); }), "values"));
    load(pass);
    CHECK(has(refusal([&] { pass.run(random_batch(g, 1, 1)); }), "has no values yet"));
  }
  save_parameters(trained, folder / "whole");
  load_parameters(run, folder / "whole");                 // and all is well again
  CHECK(run.has_values());
  CHECK(run.step(random_batch(g, 1, 1), 0).loss == trained.step(random_batch(g, 1, 1), 0).loss);

  for (int cut : {0, 1}) {                                // of a checkpoint, the parameters' file or the optimizer state's
    training_options o;
    o.optimizer.kind = optimizer_kind::momentum;
    executor_of<float> from(differentiate(g, o), with(serial_plan(g), o));
    from.initialise(1);
    std::string const at = save_checkpoint(from, folder / ("checkpoint" + std::to_string(cut)));
    while_cut<executor_of<float>> to(differentiate(g, o), with(serial_plan(g), o));
    to.initialise(2);
    to.cut = at + (cut ? "/optimizer.safetensors" : "/parameters.safetensors");
    CHECK(has(refusal([&] { load_checkpoint(to, at); }), to.cut));
    CHECK_FALSE(to.has_values());
  }
}

TEST_CASE("a checkpoint's payload is of the run's own type") {
  scratch_folder const folder;
  computation_graph const g = residual_mlp();
  executor_of<float> a(differentiate(g), serial_plan(g));
  executor_of<double> b(differentiate(g), serial_plan(g));
  train(a, 1);
  std::string const saved = save_checkpoint(a, folder.path());
  CHECK(has(refusal([&] { load_checkpoint(b, saved); }), "a checkpoint of elements of type F32"));
  CHECK(has(refusal([&] { detail::check_payload(b, tensorpar::exec::safetensors_file(saved + "/parameters.safetensors"), 0); }),
            "elements of type F32"));
  load_parameters(b, saved + "/parameters.safetensors");
  CHECK(b.has_values());
}
