// tensorpar/exec/files/files.hpp - files with their hashes, and folders that survive a crash
#pragma once
#include <algorithm>
#include <cstdio>
#include <dirent.h>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/read_file.hpp>
#include <tensorpar/core/whole_file.hpp>
#include <tensorpar/exec/device/content_hash.hpp>
#include <vector>

namespace tensorpar::exec {

/// A regular file to read by position, with a hash of it all. Throws `error` as readable_file does.
class input_file : public core::readable_file {
 public:
  explicit input_file(std::string path) : core::readable_file(std::move(path)) {}
  /// Of the whole content, read in pieces.
  u64 hash() const {
    content_hash h;
    std::vector<char> piece(idx(std::min<u64>(bytes(), u64{1} << 20)));
    for (u64 at = 0; at < bytes(); at += piece.size()) {
      u64 const n = std::min<u64>(piece.size(), bytes() - at);
      read_at(at, piece.data(), n);
      h.add(piece.data(), idx(n));
    }
    return h.value();
  }
};

/// A file that is written whole or not at all (core/whole_file.hpp), with the size and a hash of what was
/// written. Throws `error` as that does.
class output_file {
  core::whole_file file_;
  content_hash hash_;
  u64 bytes_ = 0;

 public:
  explicit output_file(std::string path) : file_(std::move(path)) {}
  void write(void const* data, std::size_t n) {
    hash_.add(data, n);
    bytes_ += n;
    file_.write(data, n);
  }
  void write(std::string_view text) { write(text.data(), text.size()); }
  std::string const& path() const { return file_.path(); }
  u64 bytes() const { return bytes_; }
  u64 hash() const { return hash_.value(); }
  /// Returns once the file is in its place and on the disk. Without it there is none.
  void finish() { file_.finish(); }
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
  core::detail::descriptor const d = core::detail::open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY);
  if (!d && errno != ENOENT)
    core::detail::refuse("cannot read the folder", path,
                         "a folder that may be read, or a path where there is nothing");
}
/// Returns once the folder's list of names is on the disk, where folders can be synced.
inline void sync_folder(std::string const& path) {
  core::detail::descriptor const d = core::detail::open_folder(AT_FDCWD, path.c_str());
  if (!d || !core::detail::synced(d.get()))
    core::detail::refuse("cannot write the folder", path, "a folder on a disk that works");
}
/// Makes the folder and those above it that are missing.
inline void make_folders(std::string const& path) {
  if (path.empty() || is_folder(path)) return;
  std::size_t const slash = path.find_last_of('/', path.size() - 2);
  std::string const above = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  make_folders(above);
  if (core::detail::repeated([&] { return ::mkdir(path.c_str(), 0777); }) != 0 && errno != EEXIST)
    core::detail::refuse("cannot make the folder", path, "a path that may be written");
  if (!is_folder(path)) throw error("not a folder", path, "a folder, or a path where one can be made");
  sync_folder(above);
}
/// Makes a folder of a name that nobody else has, and returns its path: `start` and 16 digits.
inline std::string make_new_folder(std::string const& start) {
  for (int tries = 0; tries < 1000; ++tries) {
    std::string const path = start + core::detail::hex_of(core::detail::random_bits());
    if (core::detail::repeated([&] { return ::mkdir(path.c_str(), 0777); }) == 0) return path;
    if (errno != EEXIST) break;
  }
  core::detail::refuse("cannot make a folder " + start + "...", start, "a path that may be written");
}
inline void rename_path(std::string const& from, std::string const& to) {
  if (core::detail::repeated([&] { return std::rename(from.c_str(), to.c_str()); }) != 0)
    core::detail::refuse("cannot rename " + from, to, "a folder that may be written");
}
/// Removes a folder of plain files; what cannot be removed stays.
inline void remove_folder(std::string const& path) {
  for (std::string const& n : names_in(path)) ::unlink((path + "/" + n).c_str());
  ::rmdir(path.c_str());
}

/// One process at a time: held until the object goes, or the process dies.
class folder_lock {
  core::detail::descriptor fd_;

 public:
  explicit folder_lock(std::string const& path)
      : fd_(core::detail::open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY)) {
    if (!fd_) core::detail::refuse("cannot open the folder", path, "a folder that may be read");
    if (!core::detail::taken(fd_.get()))
      throw error("another process is saving here", path, "a folder of its own for every training run");
  }
};

}  // namespace detail

}  // namespace tensorpar::exec
