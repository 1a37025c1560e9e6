// tests/exec/parameters_file.test.cpp - weights handed on by name, to whatever plan, optimizer or forward pass; files that do not fit
#include <tensorpar/exec/parameters_file.hpp>

#include <doctest/doctest.h>
#include <filesystem>
#include <tensorpar/exec/forward_pass.hpp>

#include "support/scratch_folder.hpp"
#include "support/spine.hpp"

using namespace tests;

namespace {
static_assert(has_parameters<executor_of<float>> && has_parameters<forward_pass<compute::eigen<float>>>);
struct least {                                           // all that the concept asks for
  using scalar = float;
  training_graph const& graph() const;
  tensorpar::program const& program() const;
  std::vector<float> fetch(int) const;
  void store(int, std::vector<float> const&);
};
struct mute : least { std::vector<float> fetch(int) const = delete; };
static_assert(has_parameters<least> && !has_parameters<mute> && !has_parameters<int>);

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
  adam.optimizer.kind = optimizer_kind::adamw;
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
  safetensors_file const one(path), two(folder.path() + "/again.safetensors");
  for (stored_tensor const& t : one.header().tensors) CHECK(one.read<float>(t.name) == two.read<float>(t.name));
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
    stored_tensors header;
    std::vector<std::vector<float>> all;
    for (graph_value const& v : g.values)
      if (v.role == value_role::parameter) {
        stored_tensor t{v.name, stored_type::f32, {}, 0, 0};
        for (int d = 0; d < v.type.rank; ++d) t.extents.push_back(v.type.d[d].n);
        header.tensors.push_back(t);
      }
    change(header.tensors);
    for (stored_tensor const& t : header.tensors) all.emplace_back(static_cast<std::size_t>(t.elements()), 0.5f);
    safetensors_writer out(path, std::move(header));
    for (auto const& x : all) out.write(x);
    out.finish();
    return refusal([&] { load_parameters(run, path); });
  };
  CHECK(has(written([](auto& t) { t.pop_back(); }), "a tensor is missing"));
  CHECK(has(written([](auto& t) { t.front().name = "other"; }), "a tensor is missing"));
  CHECK(has(written([](auto& t) { t.push_back({"other", stored_type::f32, {2}, 0, 0}); }), "a tensor that the model does not have"));
  CHECK(has(written([](auto& t) { t.front().extents.push_back(1); }), "a tensor of shape"));
  CHECK(has(refusal([&] { load_parameters(run, folder.path() + "/none"); }), "cannot read the file"));
  executor_of<double> wide(differentiate(g), serial_plan(g));
  CHECK(has(refusal([&] { save_parameters(wide, path); }), "parameters have no values yet (at save_parameters)"));
  CHECK(has(refusal([&] { save_checkpoint(wide, folder.path() + "/run"); }), "parameters have no values yet (at save_checkpoint)"));
  CHECK_FALSE(std::filesystem::exists(folder.path() + "/run"));
  CHECK(parameters_of(run) == before);
  CHECK(written([](auto&) {}) == "");
  CHECK(parameters_of(run)[0][0] == 0.5f);
  CHECK(has(refusal([&] { load_parameters(wide, path); }), "elements of type F32"));
  CHECK(has(refusal([&] { save_parameters(run, folder.path() + "/none/weights"); }), "cannot write the file"));
}
