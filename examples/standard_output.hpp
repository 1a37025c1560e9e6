// examples/standard_output.hpp - a program that could not print all that it had to say ends with an error. Including it is enough.
#pragma once
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <unistd.h>

/// Lives as long as the program.
struct standard_output {
  /// Where standard input, output or error is closed, the next file that is opened would stand there and be printed into.
  standard_output() {
    for (int fd : {0, 1, 2})
      if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd) std::_Exit(1);
  }
  standard_output(standard_output const&) = delete;
  standard_output& operator=(standard_output const&) = delete;
  /// Prints what waits. What the disk or the pipe did not take is an error of the program, whatever it returned.
  ~standard_output() {
    errno = 0;
    std::cout.flush();
    bool const printed = std::fflush(stdout) == 0 && !std::ferror(stdout) && std::cout;
    if (printed) return;
    std::fprintf(stderr, "standard output cannot be written%s%s\n", errno ? ": " : "", errno ? std::strerror(errno) : "");
    std::_Exit(1);
  }
};
inline standard_output const checked_standard_output;
