// tests/support/faults.hpp - what goes wrong with files: full disks, folders that may not be written, processes that die
#pragma once
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <grp.h>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace tests {

/// Names in a folder, sorted; those in its folders by their paths.
inline std::vector<std::string> entries(std::string const& folder) {
  std::vector<std::string> r;
  for (auto const& e : std::filesystem::recursive_directory_iterator(folder)) r.push_back(e.path().lexically_relative(folder).string());
  std::sort(r.begin(), r.end());
  return r;
}

/// While it lives no file of this process grows beyond so many bytes: what a disk is when it is full.
class small_files {
  ::rlimit before_{};
  void (*handler_)(int);

 public:
  explicit small_files(::rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    ::rlimit now = before_;
    now.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  small_files(small_files const&) = delete;
  small_files& operator=(small_files const&) = delete;
  ~small_files() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
};

/// A disk of 200 kB mounted at a folder, where this process may.
class small_disk {
  std::string at_;
  bool mounted_ = false;

 public:
  explicit small_disk(std::string at) : at_(std::move(at)) {
    std::filesystem::create_directory(at_);
    mounted_ = ::mount("tmpfs", at_.c_str(), "tmpfs", 0, "size=200k") == 0;
  }
  small_disk(small_disk const&) = delete;
  small_disk& operator=(small_disk const&) = delete;
  ~small_disk() {
    if (mounted_) ::umount2(at_.c_str(), MNT_DETACH);
  }
  explicit operator bool() const { return mounted_; }
  /// Nothing more has room on it.
  void fill() const {
    std::ofstream filler(at_ + "/filler");
    for (std::string const page(4096, 'x'); filler.write(page.data(), 4096).flush();) {}
  }
  /// Nobody writes to it from now on.
  bool make_read_only() const { return ::mount("tmpfs", at_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "") == 0; }
};

/// New files of this process lack these permissions as long as it lives, whatever is thrown.
class file_mask {
  ::mode_t before_;

 public:
  explicit file_mask(::mode_t lacking) : before_(::umask(lacking)) {}
  file_mask(file_mask const&) = delete;
  file_mask& operator=(file_mask const&) = delete;
  ~file_mask() { ::umask(before_); }
};

/// What `test` returns in a process of its own; false where it throws or dies. What is buffered is not printed twice.
template <class Test> bool in_child(Test const& test) {
  pid_t const child = ::fork();
  if (child < 0) throw std::runtime_error("no process can be started");
  if (child == 0) {
    bool good = false;
    try {
      good = test();
    } catch (...) {}
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
/// From here on this process is an ordinary user's, where the superuser may write whatever permissions say. False: it may not become that.
inline bool become_user() {
  return ::geteuid() != 0 || (::setgroups(0, nullptr) == 0 && ::setgid(65534) == 0 && ::setuid(65534) == 0 && ::geteuid() != 0);
}
/// May tests be run as an ordinary user here, in this folder? Not where users are not mapped, or may not enter it.
inline bool has_users(std::string const& folder) {
  return in_child([&] { return become_user() && ::access(folder.c_str(), X_OK) == 0; });
}
/// What a process of an ordinary user finds. Precondition: has_users.
template <class Test> bool as_user(Test const& test) {
  return in_child([&] { return become_user() && test(); });
}
/// Does this system let a process trace another? Containers and hardened kernels may not.
inline bool may_trace() {
  return in_child([] {
    return ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0;
  });
}

/// Does `work` in a process that is killed when it enters its n-th system call from here. True: it came to its end before. Throws where the
/// work failed. Precondition: may_trace.
template <class Work> bool done_despite_kill(Work const& work, int n) {
  pid_t const child = ::fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(3);
    ::raise(SIGSTOP);
    try {
      work();
    } catch (...) { ::_exit(2); }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) throw std::runtime_error("this system lets no process trace another");
  for (int stops = 0; stops < 2 * n + 1; ++stops) {  // stops at entries and at exits
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
    if (!WIFEXITED(status)) continue;
    if (WEXITSTATUS(status) != 0) throw std::runtime_error("the work failed");
    return true;
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return false;
}

}  // namespace tests
