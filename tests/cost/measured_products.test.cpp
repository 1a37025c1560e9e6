// tests/cost/measured_products.test.cpp - products on real devices, measured by others, against what kinds say they reach
#include <tensorpar/cost/analytical.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <tensorpar/core/read_file.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/ir/machine/precision.hpp>
#include <tensorpar/op/operators.hpp>
#include <vector>

using namespace tensorpar;

namespace {

std::vector<std::vector<std::string>> cells_of(std::string const& path) {
  std::vector<std::vector<std::string>> rows;
  std::string const text = core::read_file(path);
  for (std::size_t at = 0; at < text.size();) {
    std::size_t const end = std::min(text.find('\n', at), text.size());
    rows.emplace_back(1);
    for (; at < end; ++at)
      if (text[at] == ',') rows.back().emplace_back();
      else if (text[at] != '\r') rows.back().back() += text[at];
    at = end + 1;
  }
  return rows;
}
i64 number(std::string const& s) { return s.empty() ? 1 : std::stoll(s); }

/// A measured product on a kind that says what it reaches, with peaks in f32 as the authors give them.
struct measured {
  std::string of;      // device and operator
  device_kind kind;
  op::any_op op;
  std::vector<shape> in, out;
  double seconds;
  double predicted(cost::analytical const& model) const {
    return model.seconds(cost::compute_query{op, {in.data(), static_cast<int>(in.size())}, {out.data(), 1}, 4, kind});
  }
};
std::vector<measured> measurements(std::string const& folder) {
  std::map<std::string, device_kind> all{{"Tesla_V100-PCIE-32GB", kinds::v100()}, {"NVIDIA_A100-PCIE-40GB", kinds::a100()},
                                           {"NVIDIA_H100_80GB_HBM3", kinds::h100()}};
  all["Tesla_V100-PCIE-32GB"].efficiency = kinds::reached(0.9, 0, 0.85, 80);       // the preset leaves them open
  for (auto& [name, kind] : all) kind.efficiency.sustained = 0;                   // one product by itself
  for (auto const& row : cells_of(folder + "/devices.csv"))
    if (auto const at = all.find(row[0]); at != all.end()) {
      at->second.memory_bandwidth = std::stod(row[2]) * 1e9;
      at->second.flops = std::stod(row[6]) * 1e9;
    }
  std::vector<measured> r;
  for (char const* file : {"/ops_test.csv", "/ops_train.csv"})
    for (auto const& row : cells_of(folder + file)) {
      auto const kind = all.find(row[1]);
      if (kind == all.end() || (row[0] != "bmm" && row[0] != "linear")) continue;
      i64 const b = number(row[2]), m = number(row[3]), n = number(row[4]), k = number(row[5]);
      measured x{row[1] + " " + row[0], kind->second, matmul{}, {}, {}, std::stod(row[6]) * 1e-3};
      if (row[0] == "linear") {
        x.op = linear{.out = n, .bias = false};
        x.in = {shape{dim(b * m), dim(k)}, shape{dim(n), dim(k)}};
        x.out = {shape{dim(b * m), dim(n)}};
      } else {
        x.in = {shape{dim(b), dim(m), dim(k)}, shape{dim(b), dim(k), dim(n)}};
        x.out = {shape{dim(b), dim(m), dim(n)}};
      }
      r.push_back(std::move(x));
    }
  return r;
}
double mean(std::vector<double> const& x) {
  double sum = 0;
  for (double v : x) sum += v;
  return sum / static_cast<double>(x.size());
}
double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

}  // namespace

TEST_CASE("products are nearer to what was measured than at one flat share, on every device, and linear ones near") {
  std::string const folder = TENSORPAR_SOURCE "/../shared/data/neusight";
  if (!std::filesystem::exists(folder)) {
    MESSAGE("skipped: there is no shared/data/neusight");
    return;
  }
  struct errors { std::vector<double> sized, flat; };
  std::map<std::string, errors> all;
  cost::analytical const sized, flat{{.by_kind = false}};
  for (measured const& x : measurements(folder)) {
    all[x.of].sized.push_back(std::abs(x.predicted(sized) / x.seconds - 1));
    all[x.of].flat.push_back(std::abs(x.predicted(flat) / x.seconds - 1));
  }
  CHECK(all.size() == 6);
  for (auto const& [of, e] : all) {
    CAPTURE(of);
    MESSAGE(of << ", " << e.sized.size() << " products: mean error " << mean(e.sized) << ", median " << median(e.sized)
               << "; at a flat share " << mean(e.flat) << ", " << median(e.flat));
    CHECK(e.sized.size() > 1000);
    CHECK(mean(e.sized) <= mean(e.flat));
    if (of.ends_with("linear")) CHECK(median(e.sized) < 0.1);
  }
}
