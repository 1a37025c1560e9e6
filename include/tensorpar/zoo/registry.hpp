// tensorpar/zoo/registry.hpp - every model of the zoo by name, for command lines: `--model
// NAME[:key=value,...]`
#pragma once
#include <string>
#include <tensorpar/zoo/keys.hpp>
#include <vector>

namespace tensorpar::zoo {

/// Facts about a model without making it. samples_per_device: the batch of one device. Unity (OSDI 2022,
/// section 6.1) has 64 for ResNeXt and Inception, 4 for BERT, 1024 for DLRM and XDL (its script for Criteo
/// 256), 256 for CANDLE-Uno and the towers. Chosen here: 64 for ResNet, VGG and the split test as for other
/// images, and 32 for NASNet, which keeps more tensors. Of sequences 4 as for BERT, 16 for `mmt` with its 256
/// tokens, 1 where a model fills a device with 2048 tokens or more.
struct entry {
  std::string name, description;
  i64 samples_per_device;
  std::vector<parameter> params;
};

namespace detail {

template <class Model> struct family {};

/// Calls visit(name, description, samples per device, family of models, sizes, reduced sizes) for every
/// model.
template <class Visit> [[gnu::cold]] void each_model(Visit&& visit) {
  visit("resnext50", "ResNeXt-50, additions in all blocks", 64, family<resnext<>>{}, resnext_sizes{},
        resnext_reduced);
  visit("resnext50_artifact", "ResNeXt-50 as Unity's artifact runs it: a chain", 64, family<resnext<>>{},
        resnext50_artifact, resnext_artifact_reduced);
  visit("inception_v3", "Inception-v3 with batch normalisation", 64, family<inception<>>{}, inception_sizes{},
        inception_reduced);
  visit("inception_v3_artifact", "Inception-v3 as Unity's artifact runs it", 64, family<inception<>>{},
        inception_v3_artifact, inception_artifact_reduced);
  visit("bert_large", "BERT-Large with masked language modelling", 4, family<bert<>>{}, bert_sizes{},
        bert_reduced);
  visit("bert_artifact", "attention and linear layers that Unity's artifact runs as BERT", 4,
        family<bert_artifact<>>{}, bert_artifact_sizes{}, bert_artifact_reduced);
  visit("dlrm", "DLRM, four tables", 1024, family<dlrm<>>{}, dlrm_sizes{}, dlrm_reduced);
  visit("dlrm_summit", "DLRM, eight wide tables", 1024, family<dlrm<>>{}, dlrm_summit, dlrm_summit_reduced);
  visit("dlrm_criteo", "DLRM for Criteo's 26 features", 256, family<dlrm<>>{}, dlrm_criteo,
        dlrm_criteo_reduced);
  visit("xdl", "XDL, four tables", 1024, family<xdl<>>{}, xdl_sizes{}, xdl_reduced);
  visit("candle_uno", "CANDLE-Uno, five towers", 256, family<candle_uno<>>{}, candle_uno_sizes{},
        candle_uno_reduced);
  visit("mlp_unify", "two towers of linear layers", 256, family<mlp_unify<>>{}, mlp_unify_sizes{},
        mlp_unify_reduced);
  visit("gpt3_1b3", "GPT-3, 1.3e9 parameters", 4, family<gpt<>>{}, gpt_sizes{}, gpt_reduced);
  visit("gpt3_175b", "GPT-3, 175e9 parameters", 1, family<gpt<>>{}, gpt3_175b, gpt_reduced);
  visit("llama3_8b", "LLaMA-3, 8.03e9 parameters", 1, family<llama<>>{}, llama_sizes{}, llama_reduced);
  visit("llama3_70b", "LLaMA-3, 70.6e9 parameters", 1, family<llama<>>{}, llama3_70b, llama_reduced);
  visit("llama3_405b", "LLaMA-3, 405.9e9 parameters", 1, family<llama<>>{}, llama3_405b, llama_reduced);
  visit("moe_2b6", "a mixture of 16 experts in GShard's shapes", 4, family<mixture<>>{}, mixture_sizes{},
        mixture_reduced);
  visit("nasnet_a", "NASNet-A (4 @ 1056), not series-parallel", 32, family<nasnet<>>{}, nasnet_sizes{},
        nasnet_reduced);
  visit("mmt", "a multi-modal transformer of four branches", 16, family<mmt<>>{}, mmt_sizes{}, mmt_reduced);
  visit("vgg19", "VGG-19", 64, family<vgg<>>{}, vgg_sizes{}, vgg_reduced);
  visit("resnet50", "ResNet-50 with batch normalisation", 64, family<resnet<>>{}, resnet_sizes{},
        resnet_reduced);
  visit("split_test", "linear layers that fork twice", 64, family<split_test<>>{}, split_test_sizes{},
        split_test_reduced);
}

/// A model's graph with its batch bound. `own`: sizes that are known to fit each other.
[[gnu::cold]] inline computation_graph bound(model_builder const& g, std::vector<parameter> const& own,
                                             i64 samples, std::string const& where) {
  try {
    return lower(g, {zoo::batch = samples});
  } catch (error const& e) {      // every size by itself was valid
    std::string valid = "sizes that fit each other, such as";
    for (parameter const& k : own) valid += " " + k.key + "=" + std::to_string(k.value);
    throw error(e.problem(), where, std::move(valid));
  }
}
template <class Model, class S>
computation_graph built(S const& s, S const& own, i64 samples, std::string const& where) {
  if (samples < 1 || samples > rows)
    throw error("a batch of " + std::to_string(samples), where,
                "a whole number from 1 to " + std::to_string(rows));
  model_builder g;
  Model::define(g, s);
  return bound(g, sizes_in(own), samples, where);
}
[[noreturn]] inline void no_such_model(std::string_view name, std::string const& where);

/// `spec` is NAME:sizes, or a name alone where `reduced`.
[[gnu::cold]] inline computation_graph make_model(std::string_view spec, i64 samples, bool reduced) {
  std::string const where =
      std::string(reduced ? "zoo::make_reduced" : "zoo::make") + ": '" + std::string(spec) + "'";
  std::size_t const colon = reduced ? spec.npos : spec.find(':');
  std::string_view const name = spec.substr(0, colon);
  computation_graph r;
  bool found = false;
  each_model(
      [&]<class Model, class S>(char const* n, char const*, i64, family<Model>, S const& own, S const& tiny) {
        if (name != n) return;
        found = true;
        S s = reduced ? tiny : own;
        if (colon != spec.npos) set_sizes(s, spec.substr(colon + 1), where);
        r = built<Model>(s, reduced ? tiny : own, samples, where);
      });
  if (!found) no_such_model(name, where);
  return r;
}

}  // namespace detail

/// Every model, in the order of `each_model`.
inline std::vector<entry> const& entries() {
  static std::vector<entry> const all = [] {
    std::vector<entry> r;
    detail::each_model([&]<class Model, class S>(char const* n, char const* d, i64 samples,
                                                 detail::family<Model>, S const& s, S const&) {
      r.push_back({n, d, samples, detail::sizes_in(s)});
    });
    return r;
  }();
  return all;
}

inline void detail::no_such_model(std::string_view name, std::string const& where) {
  std::string names;
  for (entry const& e : entries()) names += (names.empty() ? "" : ", ") + e.name;
  throw error("no model '" + std::string(name) + "'", where, std::move(names));
}

/// The forward graph of a model with its batch bound: "gpt3_1b3", or "gpt3_1b3:layers=12,seq=512" with sizes
/// of your own (see `entries`). Throws `error` for an unknown model or size, a text that is neither, a value
/// out of range, and sizes that do not fit each other. O(operators).
inline computation_graph make(std::string_view spec, i64 samples) {
  return detail::make_model(spec, samples, false);
}
/// The same network with everything small but every structural feature there: for tests that plan and train
/// it. Extents are divisible by 2 and 3, many by 4, where the network's own sizes are as free; indices and
/// classes are 12 at least.
inline computation_graph make_reduced(std::string_view name, i64 samples) {
  return detail::make_model(name, samples, true);
}

}  // namespace tensorpar::zoo
