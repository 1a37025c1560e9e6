// tensorpar/tool/standard_output.hpp - a program's standard streams: there from the start, and written to the
// last letter
#pragma once
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <string>
#include <unistd.h>

namespace tensorpar::tools {

/// Opens /dev/null where standard input, output or error is closed, so that printing to it fails. Else the
/// next file that is opened would take the place and be printed into. Returns whether all three are there.
inline bool hold_standard_streams() {
  for (int fd : {0, 1, 2})
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd) return false;
  return true;
}
/// Prints what waits. What the disk or the pipe did not take is told on standard error: false.
inline bool printed_all() {
  errno = 0;
  std::cout.flush();
  if (std::fflush(stdout) == 0 && !std::ferror(stdout) && std::cout) return true;
  std::string const why = errno ? std::string(": ") + std::strerror(errno) : std::string();
  std::fprintf(stderr, "standard output cannot be written%s\n", why.c_str());
  return false;
}
/// Is standard error a terminal, whose line may be written anew?
inline bool on_terminal() { return ::isatty(2) == 1; }

}  // namespace tensorpar::tools
