// tensorpar/plan/plan_file.hpp - plans on disk: a crash leaves the old file or the new one, never half of one
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <tensorpar/plan/codec.hpp>

namespace tensorpar {

/// Replaces the file so that whoever looks, now or after a crash, finds the old content or all of the new: temporary file beside it, fsync,
/// rename, fsync of the folder. Throws `error` if the system refuses.
inline void write_whole_file(std::string const& path, std::string_view text) {
  std::string const part = path + ".part." + std::to_string(::getpid());
  std::size_t const slash = path.rfind('/');
  std::string const folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  int const fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  bool good = fd >= 0;
  for (std::size_t done = 0; good && done < text.size();) {
    ssize_t const n = ::write(fd, text.data() + done, text.size() - done);
    good = n > 0;
    if (good) done += static_cast<std::size_t>(n);
  }
  good = good && ::fsync(fd) == 0;
  if (fd >= 0) good = ::close(fd) == 0 && good;
  good = good && std::rename(part.c_str(), path.c_str()) == 0;
  if (!good) {
    if (fd >= 0) ::unlink(part.c_str());
    throw error("cannot write the file", path, "a path in a folder that can be written, on a disk with room");
  }
  if (int const d = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); d >= 0) { ::fsync(d); ::close(d); }
}

/// The plan in the file. Throws `error` if it cannot be read, and as `decode` does.
inline plan read_plan(std::string const& path) { return decode(read_json(path), path); }
/// Indented by one space per level, so that versions of a plan compare well line by line. Throws `error` as `decode` does where `read_plan`
/// would refuse the file; then nothing is written.
inline void write_plan(plan const& p, std::string const& path) {
  json const j = encode(p);
  decode(j, path);
  write_whole_file(path, j.dump(1) + "\n");
}

}  // namespace tensorpar
