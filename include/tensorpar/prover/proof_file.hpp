// tensorpar/prover/proof_file.hpp - verdicts of proofs in a file, a line each: what was interrupted goes on
#pragma once
#include <map>
#include <mutex>
#include <tensorpar/core/descriptor.hpp>
#include <tensorpar/core/json.hpp>
#include <tensorpar/prover/proof_store.hpp>
#include <tensorpar/rewrite/rule_parser.hpp>

namespace tensorpar::prover {

/// Lines {"key", "rule", "status", "cases", "axioms", "proved", "open"}, appended as they come: a crash
/// leaves whole lines, and maybe part of one more. What a line says is believed only for the rule that it
/// names. A last line that was cut off is tried again; any other that cannot be read is an error.
class proof_file final : public proof_store {
  struct entry { std::string asked; stored_proof proof; };
  std::map<u64, entry> all_;
  mutable std::mutex mutex_;
  std::string path_;
  core::detail::descriptor out_;
  ::off_t bytes_ = 0;

  static std::string text(rewrite::rule r) {
    r.name.clear();
    return rewrite::spell(r);
  }
  static constexpr char const* statuses[] = {"proved", "unproved", "impossible"};

 public:
  /// Throws `error` where the file cannot be written, is no regular file, holds something else, or another
  /// process has it.
  explicit proof_file(std::string const& path, rewrite::vocabulary const& words =
      rewrite::standard_vocabulary())
      : path_(path), out_(core::detail::open_at(AT_FDCWD, path.c_str(),
                                                     O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK)) {
    struct ::stat s;
    if (!out_ || ::fstat(out_.get(), &s) != 0)
      core::detail::refuse("the file cannot be written", path, "a file in a folder that is there");
    if (!S_ISREG(s.st_mode))
      throw error("the file cannot be written: it is " +
                      std::string(core::detail::kind_of_file(s.st_mode)), path, "a file");
    if (!core::detail::taken(out_.get()))
      throw error("another process keeps its verdicts here", path, "a file for every process");
    std::string const whole = core::read_file(path);
    std::size_t good = 0;
    for (int line = 1; good < whole.size(); ++line) {
      std::size_t const end = whole.find('\n', good);
      if (end == std::string::npos) break;                       // cut off
      std::string const where = path + ":" + std::to_string(line);
      core::json const j = core::parse_json(whole.substr(good, end - good), where);
      good = end + 1;
      auto bad = [&] {
        return error("not a verdict", where, "the keys key, rule, status, cases, axioms, proved and open");
      };
      for (char const* k : {"key", "rule", "status", "proved", "open"})
        if (!j.is_object() || !j.contains(k) || !j[k].is_string()) throw bad();
      if (!j.contains("cases") || !j["cases"].is_number_integer() || !j.contains("axioms") ||
          !j["axioms"].is_array())
        throw bad();
      entry e{j["rule"], {}};
      int status = 0;
      while (status < 3 && j["status"] != statuses[status]) ++status;
      if (status == 3) throw bad();
      e.proof.verdict.status = static_cast<proof_status>(status);
      e.proof.verdict.cases = j["cases"];
      e.proof.verdict.open = j["open"];
      for (core::json const& a : j["axioms"]) {
        std::size_t i = 0;
        while (i < std::size(axioms) && !(a.is_string() && a == axioms[i].name)) ++i;
        if (i == std::size(axioms)) throw bad();
        e.proof.verdict.used.insert(static_cast<int>(i));
      }
      e.proof.what = rewrite::parse_rule(j["proved"].get<std::string>(), words, where);
      all_.insert_or_assign(std::strtoull(j["key"].get<std::string>().c_str(), nullptr, 16), std::move(e));
    }
    bytes_ = static_cast<::off_t>(good);
    if (good < whole.size() &&
        core::detail::repeated([&] { return ::ftruncate(out_.get(), bytes_); }) != 0)
      core::detail::refuse("the file cannot be written", path, "a disk that works");
  }
  std::size_t size() const { return all_.size(); }
  std::optional<stored_proof> find(u64 key, rewrite::rule const& asked) const override {
    std::lock_guard const lock(mutex_);
    auto const it = all_.find(key);
    if (it == all_.end() || it->second.asked != text(asked)) return std::nullopt;
    stored_proof p = it->second.proof;
    p.what.name = asked.name;
    return p;
  }
  /// Throws `error` where the disk is full; the verdicts before stay.
  void add(u64 key, rewrite::rule const& asked, stored_proof const& p) override {
    char hex[17];
    *std::to_chars(hex, hex + 16, key, 16).ptr = '\0';
    core::json used = core::json::array();
    for (int a : p.verdict.used) used.push_back(std::string(axioms[a].name));
    std::string const mine = text(asked);
    core::json const j{{"key", hex},
                 {"rule", mine},
                 {"status", statuses[static_cast<int>(p.verdict.status)]},
                 {"cases", p.verdict.cases},
                 {"axioms", used},
                 {"proved", text(p.what)},
                 {"open", p.verdict.open}};
    std::lock_guard const lock(mutex_);
    all_.insert_or_assign(key, entry{mine, p});
    std::string const line = j.dump() + "\n";
    if (!core::detail::write_all(out_.get(), line.data(), line.size())) {
      int const reason = errno;
      bool const cut = ::ftruncate(out_.get(), bytes_) == 0;
      errno = reason;
      core::detail::refuse(
          std::string("the file cannot be written") + (cut ? "" : ", and ends in part of a line"), path_,
          "a disk with room");
    }
    bytes_ += static_cast<::off_t>(line.size());
  }
};

}  // namespace tensorpar::prover
