// tensorpar/core/read_file.hpp - files to read: by position or whole, and regular files alone
#pragma once
#include <string_view>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/descriptor.hpp>
#include <tensorpar/core/index.hpp>

namespace tensorpar::core {

/// A regular file to read by position. Throws `error` for a folder, a pipe or a device, at once and without
/// waiting for it, and where the system refuses; `valid` is what the error says would do.
class readable_file {
  std::string path_, valid_;
  detail::descriptor fd_;
  u64 bytes_ = 0;

  /// 0 at the end of the file.
  std::size_t some(u64 at, char* to, u64 n) const {
    auto const most = idx(n < u64{1} << 30 ? n : u64{1} << 30);
    auto const got = detail::repeated([&] { return ::pread(fd_.get(), to, most, static_cast<::off_t>(at)); });
    if (got < 0) detail::refuse("cannot read the file", path_, "a readable disk");
    return idx(got);
  }

 public:
  explicit readable_file(std::string path, std::string valid = "a file that is there and may be read")
      : path_(std::move(path)),
        valid_(std::move(valid)),
        fd_(detail::open_at(AT_FDCWD, path_.c_str(), O_RDONLY | O_NONBLOCK)) {
    struct ::stat s;
    if (!fd_ || ::fstat(fd_.get(), &s) != 0) detail::refuse("cannot read the file", path_, valid_);
    if (!S_ISREG(s.st_mode))
      throw error("cannot read the file: it is " + std::string(detail::kind_of_file(s.st_mode)), path_,
                  valid_);
    bytes_ = static_cast<u64>(s.st_size);
  }
  std::string const& path() const { return path_; }
  /// When it was opened.
  u64 bytes() const { return bytes_; }
  /// Throws `error` if the file ends before.
  void read_at(u64 at, void* to, u64 n) const {
    for (auto* p = static_cast<char*>(to); n;) {
      std::size_t const got = some(at, p, n);
      if (got == 0)
        throw error("the file ends at byte " + std::to_string(at), path_,
                    "a file that nobody changes meanwhile");
      p += got;
      at += got;
      n -= got;
    }
  }
  /// All up to its end, also of files that do not know their size.
  std::string text() const {
    std::string r(idx(bytes_), '\0');
    for (std::size_t done = 0;;) {
      if (done == r.size()) {                                            // is there more?
        char more[4096];
        std::size_t const got = some(done, more, sizeof more);
        if (got == 0) return r;
        r.append(more, got);
        done += got;
      } else {
        std::size_t const got = some(done, r.data() + done, r.size() - done);
        if (got == 0) r.resize(done);
        done += got;
      }
    }
  }
};

/// The file's bytes. Throws `error` as readable_file does.
inline std::string read_file(std::string const& path, std::string const& valid = "a readable file") {
  return readable_file(path, valid).text();
}

/// "name:line:column" of the character with this 0-based index. Columns count bytes from 1. O(at).
inline std::string place_in_text(std::string_view text, std::size_t at, std::string const& where) {
  std::size_t line = 1, start = 0;
  for (std::size_t i = 0; i < at && i < text.size(); ++i)
    if (text[i] == '\n') {
      ++line;
      start = i + 1;
    }
  return where + ":" + std::to_string(line) + ":" + std::to_string(at - start + 1);
}
/// Throws `error` with the place of the first zero byte: readers of text stop there or take it for a blank,
/// and what follows stays unseen.
inline void require_text(std::string_view text, std::string const& where) {
  if (std::size_t const at = text.find('\0'); at != text.npos)
    throw error("a zero byte in a text", place_in_text(text, at, where), "a text file");
}
/// The file's text. Throws `error` as read_file and require_text do.
inline std::string read_text(std::string const& path, std::string const& valid = "a readable text file") {
  std::string r = read_file(path, valid);
  require_text(r, path);
  return r;
}

}  // namespace tensorpar::core
