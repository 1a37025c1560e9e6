// tensorpar/core/descriptor.hpp - the system's file descriptors: closed by themselves, interrupted calls
// repeated
#pragma once
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/index.hpp>
#include <unistd.h>
#include <utility>

namespace tensorpar::core::detail {

/// The system's last complaint, as an error about `path`.
[[noreturn]] inline void refuse(std::string const& what, std::string const& path, std::string const& valid) {
  throw error(what + ": " + std::strerror(errno), path, valid);
}

/// call(), again for as long as a signal interrupts it.
template <class Call> auto repeated(Call const& call) {
  for (;;)
    if (auto const r = call(); r >= 0 || errno != EINTR) return r;
}

/// A file descriptor that closes itself.
class descriptor {
  int fd_ = -1;

 public:
  explicit descriptor(int fd = -1) : fd_(fd) {}
  descriptor(descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  descriptor& operator=(descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~descriptor() { close(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  /// False where the system has a complaint. An interrupted close has closed.
  bool close() {
    int const fd = std::exchange(fd_, -1);
    return fd < 0 || ::close(fd) == 0 || errno == EINTR;
  }
};

/// The same file as a descriptor beyond standard input, output and error: whoever prints must not print into
/// it, though one of them is closed.
inline descriptor beyond_standard(descriptor d) {
  if (!d || d.get() > 2) return d;
  descriptor r(::fcntl(d.get(), F_DUPFD_CLOEXEC, 3));
  int const reason = errno;
  d.close();
  errno = reason;
  return r;
}
/// The path below an open folder (AT_FDCWD: the current one). None and errno where the system refuses.
inline descriptor open_at(int folder, char const* path, int flags, unsigned mode = 0666) {
  return beyond_standard(
      descriptor(repeated([&] { return ::openat(folder, path, flags | O_CLOEXEC | O_NOCTTY, mode); })));
}

/// Writes all of it; false and errno where the system refuses, maybe after a part.
inline bool write_all(int fd, void const* data, std::size_t n) {
  for (auto const* p = static_cast<char const*>(data); n;) {
    // what every system takes in one call
    std::size_t const most = n < std::size_t{1} << 30 ? n : std::size_t{1} << 30;
    auto const put = repeated([&] { return ::write(fd, p, most); });
    if (put == 0) errno = ENOSPC;
    if (put <= 0) return false;
    p += put;
    n -= idx(put);
  }
  return true;
}

/// What stands at a path, in a sentence: "a folder".
inline char const* kind_of_file(::mode_t mode) {
  return S_ISREG(mode)    ? "a regular file"
         : S_ISDIR(mode)  ? "a folder"
         : S_ISFIFO(mode) ? "a pipe"
         : S_ISSOCK(mode) ? "a socket"
         : S_ISLNK(mode)  ? "a symbolic link"
                          : "a device";
}

/// Returns once what was written is on the disk; false where the disk has a complaint. What cannot be synced
/// at all, as pipes and the folders of several network file systems, is none.
inline bool synced(int fd) {
  if (repeated([&] { return ::fsync(fd); }) == 0) return true;
  return errno != EIO && errno != ENOSPC && errno != EDQUOT;
}
/// The same for a regular file, whose disk must say that it has it all, unless it knows no such request.
inline bool file_synced(int fd) {
  if (repeated([&] { return ::fsync(fd); }) == 0) return true;
  return errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP || errno == ENOTSUP;
}

/// Takes an open file or folder until it is closed or the process dies; false if another has it. Where the
/// file system knows no locks nobody is told.
inline bool taken(int fd) {
  return repeated([&] { return ::flock(fd, LOCK_EX | LOCK_NB); }) == 0 || errno != EWOULDBLOCK;
}

/// The folder, to make, rename and sync names in it. One that may be used but not read does for all but
/// syncing.
inline descriptor open_folder(int at, char const* path) {
  descriptor d = open_at(at, path, O_RDONLY | O_DIRECTORY);
#ifdef O_PATH
  if (!d && errno == EACCES) d = open_at(at, path, O_PATH | O_DIRECTORY);
#endif
  return d;
}

}  // namespace tensorpar::core::detail
