// tensorpar/tool/command_line.hpp - a command line read into settings; what is wrong with it, and what was
// meant
#pragma once
#include <optional>
#include <string>
#include <tensorpar/tool/cli_door.hpp>
#include <tensorpar/tool/console.hpp>
#include <tensorpar/tool/nearest.hpp>
#include <tensorpar/tool/settings.hpp>
#include <tensorpar/tool/words.hpp>
#include <vector>

namespace tensorpar::tools {

inline constexpr char const* exit_codes_text =
    "Exit codes: 0 fine, 1 error, 2 wrong command line, 3 no plan fits, 4 check found something.";

namespace detail {

/// An argument as one types it in a shell.
inline std::string as_typed(std::string const& s) {
  if (!s.empty() && s.find_first_of(" \t\n\"'\\$`!*?[](){}<>|&;~#") == s.npos) return s;
  std::string r = "'";
  for (char c : s) r += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return r + "'";
}
/// The flags of every subcommand. `own`: the model is the caller's, so that there is no --model.
class command_line {
  CLI::App app_{"Plans the training of neural networks on a cluster"};
  settings s_;
  bool own_;

  CLI::App& sub(subcommand const& c) {
    CLI::App& a = *app_.add_subcommand(c.name, c.does);
    std::string example = c.example;
    std::string const model = "--model mlp_unify ";
    std::size_t const at = example.find(model);
    if (own_ && at != example.npos) example.erase(at, model.size());
    a.footer("Example: tensorpar " + example + "\n" + exit_codes_text);
    a.add_flag("--json", s_.json, "print one JSON object per line");
    return a;
  }
  void model(CLI::App& a, bool required) {
    if (own_) return;
    CLI::Option* const o = a.add_option("--model", s_.model,
                                        "NAME or NAME:key=value,... of the zoo; any other name lists them");
    if (required) o->required();
  }
  void page(CLI::App& a) {
    a.add_option("--html", s_.html, "write a page about it here");
    a.add_option("--date", s_.date, "what the page says about when it was made; pages ask no clock");
  }
  void problem(CLI::App& a) {
    model(a, true);
    a.add_option("--cluster", s_.cluster, "a preset such as dgx_h100:8, or a file that ends in .json")
        ->required();
    a.add_flag("--lane-per-link", s_.lane_per_link,
               "links of different levels are used at the same time, as by a stream for each");
    a.add_option("--batch", s_.batch, "samples of a step; else the model's usual number on every device")
        ->check(CLI::Range(i64{1}, i64{1} << 40));
    a.add_option("--precision", s_.precision,
                 "f32, tf32, bf16 or fp8; without it the format that the cluster's FLOP/s are of");
    a.add_option("--optimizer", s_.optimizer, "sgd, momentum or adamw")->capture_default_str();
    a.add_option("--moments", s_.moments, "f32 or bf16: what the optimizer's moments are kept in")
        ->capture_default_str();
    a.add_option("--gradients", s_.gradients, "f32 or bf16: what gradients of bf16 weights are added up in")
        ->capture_default_str();
    a.add_option("--masters", s_.masters,
                 "f32 or bf16: what bf16 weights are kept in beside; bf16: without copies")
        ->capture_default_str();
    a.add_option("--effort", s_.effort, "quick, normal or thorough: how hard to look")->capture_default_str();
    a.add_option("--micro-batches", s_.micro_batches, "numbers of micro-batches to try, as 1,2,4")
        ->delimiter(',')
        ->allow_extra_args(false);
    a.add_option("--threads", s_.threads, "threads of the search; 0: one per processor")
        ->check(CLI::Range(0, 1024))
        ->capture_default_str();
    a.add_flag("--quiet", s_.quiet, "no progress on standard error");
    page(a);
  }
  void stored(CLI::App& a, int files) {
    a.add_option("file", s_.files, files == 1 ? "a plan file" : "two plan files")
        ->required()
        ->expected(files);
    model(a, false);
    a.add_option("--batch", s_.batch, "samples of a step, where the file does not say")
        ->check(CLI::Range(i64{1}, i64{1} << 40));
  }
  void define() {
    app_.require_subcommand(1);
    app_.footer(exit_codes_text);
    for (subcommand const& c : subcommands) {
      CLI::App& a = sub(c);
      std::string const name = c.name;
      if (name == "plan" || name == "compare") problem(a);
      if (name == "plan") {
        a.add_option("--out", s_.out_file, "write the plan here");
        a.add_option("--what-if", s_.what_if,
                     "changes such as 'gpus=128,batch=512,link:NDR*2,memory*0.5,precision=fp8'; may stand "
                     "several times. Changes of links, memory and rates alone are answered for the same plan")
            ->allow_extra_args(false);
        a.add_option("--what-if-effort", s_.what_if_effort,
                     "search anew for every --what-if, so hard; else quick, where a search is needed");
      }
      if (name == "compare") a.add_flag("--planners", s_.planners, "Alpa's, Unity's and experts' kinds, too");
      if (name == "show" || name == "check" || name == "simulate") stored(a, 1);
      if (name == "diff") stored(a, 2);
      if (name == "simulate") {
        a.add_option("--trace", s_.trace, "write a trace for Perfetto here");
        page(a);
      }
      if (name == "run-demo") {
        a.add_option("--devices", s_.devices, "threads that train; else as many as this machine has cores")
            ->check(CLI::Range(1, 64));
        a.add_option("--rounds", s_.rounds, "rounds in which every plan is measured")
            ->check(CLI::Range(1, 10000))
            ->capture_default_str();
      }
      if (name == "rules") a.add_option("word", s_.word, "list the rules whose names contain it");
    }
  }
  /// What a misspelt subcommand or flag may have meant: CLI11 knows no such words.
  void require_known(std::vector<std::string> const& args) const {
    std::vector<std::string> const names = subcommand_names();
    CLI::App const* active = &app_;
    for (std::string const& a : args) {
      if (a == "--") return;
      if (a.size() > 1 && a[0] == '-') {
        std::string const flag = a.substr(0, a.find('='));
        std::vector<std::string> known;
        for (CLI::Option const* o : active->get_options()) {
          for (std::string const& l : o->get_lnames()) known.push_back("--" + l);
          for (std::string const& l : o->get_snames()) known.push_back("-" + l);
        }
        bool found = flag[1] >= '0' && flag[1] <= '9';  // a number
        for (std::string const& k : known) found = found || k == flag;
        if (!found)
          throw usage_error("no flag " + flag + did_you_mean(flag, known), "tensorpar " + active->get_name(),
                            listed(known));
      } else if (active == &app_) {
        one_of("tensorpar", a, names);
        active = app_.get_subcommand(a);
      }
    }
  }

 public:
  explicit command_line(bool own) : own_(own) {
    app_.name("tensorpar");
    define();
  }

  /// Nothing where help was asked for, which then is printed. Throws `usage_error`.
  std::optional<settings> read(std::vector<std::string> const& args, console const& io) {
    s_.typed = "tensorpar";
    for (std::string const& a : args) s_.typed += " " + as_typed(a);
    if (args.empty()) throw usage_error("no subcommand", "tensorpar", listed(subcommand_names()));
    require_known(args);
    try {
      app_.parse(std::vector<std::string>(args.rbegin(), args.rend()));
    } catch (CLI::ParseError const& e) {
      if (e.get_exit_code() != 0) throw usage_error(e.what(), s_.typed, "see tensorpar --help");
      app_.exit(e, io.out, io.err);  // help was asked for
      return std::nullopt;
    }
    s_.command = app_.get_subcommands().front()->get_name();
    if (!s_.precision.empty()) one_of("--precision", s_.precision, format_names());
    optimizer_named(s_.optimizer);
    state_format_named(s_.moments, "--moments");
    state_format_named(s_.gradients, "--gradients");
    state_format_named(s_.masters, "--masters");
    effort_named(s_.effort);
    if (!s_.what_if_effort.empty()) effort_named(s_.what_if_effort, "--what-if-effort");
    if (!s_.what_if_effort.empty() && s_.what_if.empty())
      throw usage_error("--what-if-effort without --what-if", s_.typed, "both, or neither");
    if (!s_.date.empty() && s_.html.empty())
      throw usage_error("--date without --html", s_.typed, "both, or neither");
    return s_;
  }
};

}  // namespace detail

/// The settings of a command line without the program's name; nothing where help was asked for, which then is
/// printed to `io.out`. `own`: the model is the caller's. Throws `usage_error`. O(arguments * flags).
inline std::optional<settings> read_command_line(std::vector<std::string> const& args, console const& io,
                                                 bool own) {
  return detail::command_line(own).read(args, io);
}

}  // namespace tensorpar::tools
