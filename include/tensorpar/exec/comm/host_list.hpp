// tensorpar/exec/comm/host_list.hpp - hosts as Slurm lists them: "gpu[007-012,20],rack[1-2]n[01-04],login"
#pragma once
#include <string>
#include <string_view>
#include <tensorpar/core/error.hpp>

namespace tensorpar::exec::detail {

/// Reads one list. A name is text and any number of brackets, which hold numbers and ranges of numbers;
/// commas part names, and what stands in several brackets is combined, the last one running fastest. A number
/// is as wide as it is written: zeros in front of it count.
class host_list {
  std::string_view list_;
  char const* where_;
  std::size_t at_ = 0;

  [[noreturn]] void refuse(std::string const& what) const {
    throw error(what + " at character " + std::to_string(at_ + 1) + " of \"" + std::string(list_) + "\"",
                where_, "names as n[1-3,5], m[01-03]x[1-2] and login, with commas between them");
  }
  bool ends() const { return at_ == list_.size(); }
  static bool parts(char c) { return c == ',' || c == ' ' || c == '\t' || c == '\n'; }
  /// The digits that stand here.
  std::string_view digits() {
    std::size_t const from = at_;
    while (!ends() && list_[at_] >= '0' && list_[at_] <= '9') ++at_;
    if (at_ == from) refuse("no number");
    return list_.substr(from, at_ - from);
  }
  static bool exceeds(std::string_view a, std::string_view b) {
    while (a.size() > 1 && a[0] == '0') a.remove_prefix(1);
    while (b.size() > 1 && b[0] == '0') b.remove_prefix(1);
    return a.size() != b.size() ? a.size() > b.size() : a > b;
  }
  /// A bracket. Its first number.
  std::string_view bracket() {
    std::string_view first;
    do {
      ++at_;
      std::string_view const from = digits();
      if (first.empty()) first = from;
      if (ends() || list_[at_] != '-') continue;
      ++at_;
      std::size_t const second = at_;
      if (std::string_view const to = digits(); exceeds(from, to)) {
        at_ = second;
        refuse("a range that ends before it begins");
      }
    } while (!ends() && list_[at_] == ',');
    if (ends() || list_[at_] != ']') refuse("no ']'");
    ++at_;
    return first;
  }
  /// A name. The first host that it stands for.
  std::string name() {
    std::string first;
    while (!ends() && !parts(list_[at_])) {
      if (list_[at_] == '[') first += bracket();
      else if (list_[at_] == ']') refuse("a ']' without '['");
      else first += list_[at_++];
    }
    return first;
  }

 public:
  /// `where`: whose value the list is.
  host_list(std::string_view list, char const* where) : list_(list), where_(where) {}
  /// The first host. Throws `error` for what is no list, anywhere in it. O(characters).
  std::string first() {
    std::string r;
    for (at_ = 0; !ends();) {
      if (parts(list_[at_])) ++at_;
      else if (std::string one = name(); r.empty()) r = std::move(one);
    }
    if (r.empty()) refuse("no host");
    return r;
  }
};
/// The first host of a Slurm list.
inline std::string first_host(std::string_view list, char const* where = "SLURM_STEP_NODELIST") {
  return host_list(list, where).first();
}

}  // namespace tensorpar::exec::detail
