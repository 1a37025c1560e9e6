// tensorpar/core/whole_file.hpp - files that are written whole or not at all, whatever crashes, fills up or
// writes beside us
#pragma once
#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <sys/random.h>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/descriptor.hpp>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/core/index.hpp>

namespace tensorpar::core {

namespace detail {

/// 64 bits that no other thread, process or container draws: the system's, or what comes near where it has
/// none to give.
inline u64 random_bits() {
  u64 r = 0;
  if (::getentropy(&r, sizeof r) == 0) return r;
  static std::atomic<u64> calls{0};
  r = static_cast<u64>(std::chrono::system_clock::now().time_since_epoch().count());
  return mix(r ^ static_cast<u64>(::getpid()) << 40) + ++calls;
}

/// A file of a name that nobody else has, made for this object and removed with it unless it was kept.
class temporary_file {
  descriptor folder_, fd_;
  std::string name_;                     // empty: there is none to remove
  ::pid_t maker_ = ::getpid();           // who forks has a copy of this object, not the file

 public:
  temporary_file() = default;
  temporary_file(temporary_file&& o) noexcept
      : folder_(std::move(o.folder_)),
        fd_(std::move(o.fd_)),
        name_(std::exchange(o.name_, {})),
        maker_(o.maker_) {}
  temporary_file& operator=(temporary_file&& o) noexcept {
    std::swap(folder_, o.folder_);
    std::swap(fd_, o.fd_);
    std::swap(name_, o.name_);
    std::swap(maker_, o.maker_);
    return *this;
  }
  ~temporary_file() { remove(); }

  /// False and errno where the system refuses.
  bool make(descriptor folder, unsigned mode) {
    folder_ = std::move(folder);
    for (int tries = 0; tries < 1000; ++tries) {
      std::string name = ".tensorpar-" + hex_of(random_bits()) + ".part";
      descriptor made(repeated([&] {
        return ::openat(folder_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
      }));
      if (!made && errno == EEXIST) continue;
      if (!made) return false;
      name_ = std::move(name);
      fd_ = beyond_standard(std::move(made));
      return static_cast<bool>(fd_);
    }
    return false;
  }
  int fd() const { return fd_.get(); }
  /// Gives it the name in its folder. False and errno where the system refuses.
  bool keep(std::string const& name) {
    if (!fd_.close()) return false;
    if (repeated([&] { return ::renameat(folder_.get(), name_.c_str(), folder_.get(), name.c_str()); }) != 0)
      return false;
    name_.clear();
    return true;
  }
  bool folder_synced() const { return synced(folder_.get()); }
  void remove() {
    int const reason = errno;
    fd_.close();
    if (!name_.empty() && maker_ == ::getpid()) ::unlinkat(folder_.get(), name_.c_str(), 0);
    name_.clear();
    errno = reason;
  }
};

/// A path once its symbolic links have been followed: a name in a folder, and what stands there.
struct file_place {
  descriptor folder;
  std::string name;
  bool there = false;                    // with `is`
  struct ::stat is {};
  bool open_elsewhere = false;           // a name of an open file, as /dev/stdout: it stands in no folder
};

/// Is it the folder of a process's open files? What its links say is no path.
inline bool lists_open_files(int folder) {
  struct ::stat own, that;
  return ::stat("/proc/self/fd", &own) == 0 && ::fstat(folder, &that) == 0 && own.st_dev == that.st_dev;
}
/// Throws `error` where the system refuses, and for names that only folders have.
inline file_place place_of_file(std::string const& path) {
  file_place r;
  std::string rest = path;
  constexpr char const* valid = "a path in a folder that may be written";
  for (int links = 0;; ++links) {
    std::size_t const slash = rest.rfind('/');
    std::string const folder = slash == rest.npos ? "." : rest.substr(0, slash + 1);
    r.name = slash == rest.npos ? rest : rest.substr(slash + 1);
    if (r.name.empty() || r.name == "." || r.name == "..")
      throw error(
          rest.empty() ? "cannot write a file without a name" : "cannot write the file: it is a folder", path,
          "the path of a file");
    descriptor next = open_folder(links ? r.folder.get() : AT_FDCWD, folder.c_str());
    if (!next) refuse("cannot write the file", path, valid);
    r.folder = std::move(next);
    r.there = ::fstatat(r.folder.get(), r.name.c_str(), &r.is, AT_SYMLINK_NOFOLLOW) == 0;
    if (!r.there && errno != ENOENT) refuse("cannot write the file", path, valid);
    if (!r.there || !S_ISLNK(r.is.st_mode)) return r;
    r.open_elsewhere = lists_open_files(r.folder.get());
    if (r.open_elsewhere) return r;
    rest.assign(1 << 16, '\0');
    auto const n = ::readlinkat(r.folder.get(), r.name.c_str(), rest.data(), rest.size());
    if (n < 0 || links == 40) {
      if (n >= 0) errno = ELOOP;
      refuse("cannot write the file", path, valid);
    }
    rest.resize(idx(n));
  }
}

}  // namespace detail

/// A file that is written from front to back and appears at `finish`: whoever looks, now or after a crash,
/// finds what was there before or all of the new. It is written beside its place under a name that nobody
/// else has (".tensorpar-<16 hex digits>.part", which only a process that is killed leaves behind), synced,
/// renamed, and the folder synced where that is possible. So of two writers one has the last word. Symbolic
/// links are followed: the file that they lead to is replaced. A file that is replaced keeps its permissions,
/// and its owner if the system lets it; a new one has those that the process's mask gives. Character devices,
/// pipes that are read and names of open files (/dev/stdout) are written in place, without that promise.
/// Throws `error` for folders, block devices, sockets and pipes that nobody reads, and where the system
/// refuses: then nothing of it stays.
class whole_file {
  std::string path_, name_;
  detail::temporary_file part_;
  detail::descriptor in_place_;

  int fd() const { return in_place_ ? in_place_.get() : part_.fd(); }
  [[noreturn]] void give_up(char const* valid) {
    part_.remove();
    in_place_.close();
    detail::refuse("cannot write the file", path_, valid);
  }
  void open_in_place(::mode_t mode) {
    if (!S_ISREG(mode) && !S_ISCHR(mode) && !S_ISFIFO(mode))
      throw error("cannot write the file: it is " + std::string(detail::kind_of_file(mode)), path_,
                  "the path of a file");
    in_place_ = detail::open_at(AT_FDCWD, path_.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK);
    if (!in_place_ && errno == ENXIO)
      throw error("cannot write the file: it is a pipe that nobody reads", path_, "the path of a file");
    if (!in_place_) detail::refuse("cannot write the file", path_, "a path that may be written");
    int const flags = ::fcntl(in_place_.get(), F_GETFL);
    if (flags < 0 || ::fcntl(in_place_.get(), F_SETFL, flags & ~O_NONBLOCK) != 0)
      give_up("a path that may be written");
  }
  void open_beside(detail::file_place place) {
    constexpr char const* valid = "a path in a folder that may be written, on a disk with room";
    if (place.there && ::faccessat(place.folder.get(), place.name.c_str(), W_OK, AT_EACCESS) != 0)
      give_up("a file that may be written");
    name_ = std::move(place.name);
    if (!part_.make(std::move(place.folder), place.there ? 0600 : 0666)) give_up(valid);
    struct ::stat mine;
    if (!place.there || ::fstat(part_.fd(), &mine) != 0) return;
    bool const owner = mine.st_uid == place.is.st_uid && mine.st_gid == place.is.st_gid;
    [[maybe_unused]] bool const kept = owner || ::fchown(part_.fd(), place.is.st_uid, place.is.st_gid) == 0 ||
                                       // else the writer's own
                                       ::fchown(part_.fd(), static_cast<::uid_t>(-1), place.is.st_gid) == 0;
    if (::fchmod(part_.fd(), place.is.st_mode & 0777) != 0) give_up(valid);
  }

 public:
  explicit whole_file(std::string path) : path_(std::move(path)) {
    struct ::stat s;
    if (path_.find('\0') != path_.npos)
      throw error("a zero byte in the name of a file", path_.c_str(), "a path");
    bool const there = ::stat(path_.c_str(), &s) == 0;
    if (there && !S_ISREG(s.st_mode)) {
      open_in_place(s.st_mode);
      return;
    }
    detail::file_place place = detail::place_of_file(path_);
    if (place.open_elsewhere) open_in_place(S_IFREG);
    else open_beside(std::move(place));
  }
  std::string const& path() const { return path_; }

  /// After an error nothing of the file is left, and it can only be destroyed.
  void write(void const* data, std::size_t n) {
    if (!detail::write_all(fd(), data, n)) give_up("a disk with room");
  }
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Returns once the file is in its place and on the disk. Precondition: not yet called.
  void finish() {
    if (in_place_) {
      if (!detail::synced(in_place_.get()) || !in_place_.close()) give_up("a disk with room");
      return;
    }
    if (!detail::file_synced(part_.fd()) || !part_.keep(name_))
      give_up("a path in a folder that may be written, on a disk with room");
    if (!part_.folder_synced()) give_up("a folder on a disk that works");
  }
};

/// Replaces the file with `text`, as `whole_file` does. Throws `error` as that does.
inline void write_whole_file(std::string const& path, std::string_view text) {
  whole_file out(path);
  out.write(text);
  out.finish();
}

}  // namespace tensorpar::core
