// examples/digits.hpp - the handwritten digits as batches, and the two networks that learn them
#pragma once
#include <algorithm>
#include <charconv>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <tensorpar/core/read_file.hpp>
#include <tensorpar/exec/device/host.hpp>
#include <tensorpar/typed/typed.hpp>
#include <vector>

namespace digits {

using namespace tensorpar;

inline constexpr axis batch{"batch"}, pixels{"pixels"}, channels{"channels"}, height{"height"}, width{"width"}, classes{"classes"};

// [quoted: models]
struct mlp {
  static constexpr void define(auto& g) {
    auto image = g.input("image", {batch, pixels(64)});
    auto label = g.input("label", {batch}, dtype::i32);
    auto logits = image | linear{512} | relu{} | linear{512} | relu{} | named("head", linear{.out = 10, .to = classes});
    g.output("logits", logits);
    g.output("loss", all(logits, label) | cross_entropy{});
  }
};

struct cnn {
  static constexpr void define(auto& g) {
    auto image = g.input("image", {batch, channels(1), height(8), width(8)});
    auto label = g.input("label", {batch}, dtype::i32);
    auto features = image | conv2d{.out = 16, .bias = true} | relu{} | conv2d{.out = 32, .bias = true} | relu{} | max_pool();
    auto logits = features | flatten{.to = pixels} | linear{128} | relu{} | named("head", linear{.out = 10, .to = classes});
    g.output("logits", logits);
    g.output("loss", all(logits, label) | cross_entropy{});
  }
};
static_assert(parameters(typed<mlp>) == 64 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10);
static_assert(is_series_parallel(typed<mlp>) && is_series_parallel(typed<cnn>));
// [end]

struct sample {
  float pixel[64];
  std::int32_t label;
};

/// Reads the csv; throws `error` with file and line for anything but 64 numbers from 0 to 16 and a digit.
inline std::vector<sample> read(std::string const& path) {
  std::istringstream in(core::read_text(path, "the digits.csv of examples/data, or --data FILE"));
  std::vector<sample> all;
  std::string line;
  for (int n = 1; std::getline(in, line); ++n) {
    auto fail = [&](char const* what) {
      throw error(what, path + ":" + std::to_string(n), "64 numbers from 0 to 16, then a digit, separated by commas");
    };
    sample s{};
    char const* p = line.data();
    char const* const end = p + line.size();
    for (int k = 0; k <= 64; ++k) {
      int v = 0;
      auto const [next, problem] = std::from_chars(p, end, v);
      if (problem != std::errc()) fail("not a number");
      if (v < 0 || v > (k < 64 ? 16 : 9)) fail("a number out of range");
      if (k < 64) s.pixel[k] = static_cast<float>(v) / 16; else s.label = v;
      p = next;
      if (k < 64 && (p == end || *p++ != ',')) fail("too few numbers");
    }
    if (p != end) fail("more than 65 numbers");
    all.push_back(s);
  }
  if (all.empty()) throw error("no samples", path, "one sample per line");
  return all;
}

/// Four fifths to learn from and one fifth held out, the same for every run with this seed.
struct split {
  std::vector<sample> train, test;
};
inline split divide(std::vector<sample> all, u64 seed) {
  std::mt19937_64 draw(seed);
  for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[draw() % i]);
  auto const cut = static_cast<std::ptrdiff_t>(all.size() - all.size() / 5);
  return {{all.begin(), all.begin() + cut}, {all.begin() + cut, all.end()}};
}

/// Samples order[from, from + n) as a batch for a graph whose input "image" has this shape: 64 pixels, or [n, 1, side, side] where the side
/// is a multiple of 8.
inline host_batch make_batch(std::vector<sample> const& all, std::vector<std::size_t> const& order, std::size_t from, i64 n, shape image) {
  host_batch b;
  host_tensor x, y;
  image.d[0].n = n;
  x.shape = image;
  y.shape = shape({dim(n)}, dtype::i32);
  i64 const wide = image.rank == 4 ? image.d[3].n : 8, larger = image.rank == 4 ? wide / 8 : 1;   // each pixel becomes a square
  for (i64 i = 0; i < n; ++i) {
    sample const& s = all[order[from + static_cast<std::size_t>(i)]];
    for (i64 at = 0; at < 64 * larger * larger; ++at) x.real.push_back(s.pixel[at / wide / larger * 8 + at % wide / larger]);
    y.index.push_back(s.label);
  }
  b["image"] = std::move(x);
  b["label"] = std::move(y);
  return b;
}

/// The order in which an epoch visits the samples.
inline std::vector<std::size_t> shuffled(std::size_t n, u64 seed) {
  std::vector<std::size_t> r(n);
  std::iota(r.begin(), r.end(), std::size_t{0});
  std::mt19937_64 draw(seed);
  for (std::size_t i = n; i > 1; --i) std::swap(r[i - 1], r[draw() % i]);
  return r;
}

template <class Scalar> double accuracy(std::vector<Scalar> const& logits, std::vector<std::int32_t> const& label) {
  std::size_t const c = logits.size() / label.size();
  std::size_t right = 0;
  for (std::size_t i = 0; i < label.size(); ++i) {
    auto const row = logits.begin() + static_cast<std::ptrdiff_t>(i * c);
    right += static_cast<std::size_t>(std::max_element(row, row + static_cast<std::ptrdiff_t>(c)) - row == label[i]);
  }
  return static_cast<double>(right) / static_cast<double>(label.size());
}

}  // namespace digits
