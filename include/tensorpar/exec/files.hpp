// tensorpar/exec/files.hpp - files and folders that survive a crash: read by position, written through to the disk
#pragma once
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <tensorpar/core/error.hpp>
#include <tensorpar/exec/content_hash.hpp>
#include <unistd.h>
#include <vector>

namespace tensorpar {

namespace detail {

/// The system's last complaint, as an error about `path`.
[[noreturn]] inline void refuse(std::string const& what, std::string const& path, std::string const& valid) {
  throw error(what + ": " + std::strerror(errno), path, valid);
}

/// A file descriptor that closes itself.
class descriptor {
  int fd_ = -1;

 public:
  explicit descriptor(int fd = -1) : fd_(fd) {}
  descriptor(descriptor&& o) noexcept : fd_(o.fd_) { o.fd_ = -1; }
  descriptor& operator=(descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool close() {
    int const fd = fd_;
    fd_ = -1;
    return ::close(fd) == 0;
  }
};

}  // namespace detail

/// A file to read by position. Throws `error` if it is no plain file or cannot be read.
class input_file {
  std::string path_;
  detail::descriptor fd_;
  u64 bytes_ = 0;

 public:
  explicit input_file(std::string path) : path_(std::move(path)), fd_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct ::stat s;
    if (fd_.get() < 0 || ::fstat(fd_.get(), &s) != 0) detail::refuse("cannot read the file", path_, "a file that is there and may be read");
    if (!S_ISREG(s.st_mode)) throw error("not a plain file", path_, "a file");
    bytes_ = static_cast<u64>(s.st_size);
  }
  std::string const& path() const { return path_; }
  u64 bytes() const { return bytes_; }
  void read_at(u64 at, void* to, u64 n) const {
    for (auto* p = static_cast<char*>(to); n;) {
      ssize_t const got = ::pread(fd_.get(), p, static_cast<std::size_t>(n), static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) detail::refuse("cannot read the file", path_, "a readable disk");
      if (got == 0) throw error("the file ends at byte " + std::to_string(at), path_, "a file that nobody changes meanwhile");
      p += got;
      at += static_cast<u64>(got);
      n -= static_cast<u64>(got);
    }
  }
  std::string text() const {
    std::string r(static_cast<std::size_t>(bytes_), '\0');
    read_at(0, r.data(), bytes_);
    return r;
  }
  /// Of the whole content, read in pieces.
  u64 hash() const {
    content_hash h;
    std::vector<char> piece(static_cast<std::size_t>(std::min<u64>(bytes_, u64{1} << 20)));
    for (u64 at = 0; at < bytes_; at += piece.size()) {
      u64 const n = std::min<u64>(piece.size(), bytes_ - at);
      read_at(at, piece.data(), n);
      h.add(piece.data(), static_cast<std::size_t>(n));
    }
    return h.value();
  }
};

/// A new file, written from front to back. Throws `error` where the system refuses. Without `finish` nothing is promised about its content.
class output_file {
  std::string path_;
  detail::descriptor fd_;
  content_hash hash_;
  u64 bytes_ = 0;

 public:
  explicit output_file(std::string path)
      : path_(std::move(path)), fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (fd_.get() < 0) detail::refuse("cannot write the file", path_, "a path in a folder that may be written");
  }
  void write(void const* data, std::size_t n) {
    hash_.add(data, n);
    bytes_ += n;
    for (auto const* p = static_cast<char const*>(data); n;) {
      ssize_t const put = ::write(fd_.get(), p, n);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) detail::refuse("cannot write the file", path_, "a disk with room");
      p += put;
      n -= static_cast<std::size_t>(put);
    }
  }
  void write(std::string_view text) { write(text.data(), text.size()); }
  std::string const& path() const { return path_; }
  u64 bytes() const { return bytes_; }
  u64 hash() const { return hash_.value(); }
  /// Returns once the content is on the disk.
  void finish() {
    bool const synced = ::fsync(fd_.get()) == 0;
    if (!fd_.close() || !synced) detail::refuse("cannot write the file", path_, "a disk with room");
  }
};

namespace detail {

inline bool exists(std::string const& path) {
  struct ::stat s;
  return ::lstat(path.c_str(), &s) == 0;
}
inline bool is_folder(std::string const& path) {
  struct ::stat s;
  return ::stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode);
}
/// Names in the folder, sorted, without "." and "..". Empty if it cannot be read.
inline std::vector<std::string> names_in(std::string const& folder) {
  std::vector<std::string> r;
  if (DIR* d = ::opendir(folder.c_str())) {
    while (dirent const* e = ::readdir(d))
      if (std::string_view const n = e->d_name; n != "." && n != "..") r.emplace_back(n);
    ::closedir(d);
  }
  std::sort(r.begin(), r.end());
  return r;
}
/// Throws `error` unless the folder can be read, or there is nothing of this name.
inline void require_folder(std::string const& path) {
  descriptor const d(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (d.get() < 0 && errno != ENOENT) refuse("cannot read the folder", path, "a folder that may be read, or a path where there is nothing");
}
/// Returns once the folder's list of names is on the disk.
inline void sync_folder(std::string const& path) {
  descriptor const d(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (d.get() < 0 || ::fsync(d.get()) != 0) refuse("cannot write the folder", path, "a folder on a disk that works");
}
/// Makes the folder and those above it that are missing.
inline void make_folders(std::string const& path) {
  if (path.empty() || is_folder(path)) return;
  std::size_t const slash = path.find_last_of('/', path.size() - 2);
  std::string const above = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  make_folders(above);
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) refuse("cannot make the folder", path, "a path that may be written");
  if (!is_folder(path)) throw error("not a folder", path, "a folder, or a path where one can be made");
  sync_folder(above);
}
inline void rename_path(std::string const& from, std::string const& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) refuse("cannot rename " + from, to, "a folder that may be written");
}
/// Removes a folder of plain files; what cannot be removed stays.
inline void remove_folder(std::string const& path) {
  for (std::string const& n : names_in(path)) ::unlink((path + "/" + n).c_str());
  ::rmdir(path.c_str());
}

/// One process at a time: held until the object goes, or the process dies.
class folder_lock {
  descriptor fd_;

 public:
  explicit folder_lock(std::string const& path) : fd_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_.get() < 0) refuse("cannot open the folder", path, "a folder that may be read");
    if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      throw error("another process is saving here", path, "a folder of its own for every training run");
  }
};

}  // namespace detail

}  // namespace tensorpar
