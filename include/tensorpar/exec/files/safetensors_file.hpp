// tensorpar/exec/files/safetensors_file.hpp - safetensors on disk, one tensor in memory at a time
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/files/files.hpp>
#include <tensorpar/exec/files/safetensors.hpp>

namespace tensorpar::exec {

/// Reads tensors by name; only the header is kept in memory. Throws `error` as parse_safetensors_header does.
class safetensors_file {
  input_file file_;
  stored_tensors header_;

 public:
  explicit safetensors_file(std::string path) : file_(std::move(path)) {
    unsigned char first[8]{};
    u64 const available = std::min<u64>(8, file_.bytes());
    file_.read_at(0, first, available);
    std::string text(
        idx(detail::checked_header(first, available, file_.bytes(), file_.path())),
        '\0');
    file_.read_at(8, text.data(), text.size());
    header_ = parse_safetensors_header(text, file_.bytes() - 8 - text.size(), file_.path());
  }
  stored_tensors const& header() const { return header_; }
  std::string const& path() const { return file_.path(); }

  /// Throws `error` as stored_elements does.
  template <class Element> std::vector<Element> read(std::string const& name) const {
    return stored_elements<Element>(header_, name, path(), [&](u64 at, void* to, u64 n) {
      file_.read_at(header_.header_bytes + at, to, n);
    });
  }
};

/// Writes tensors in the order of the header, which is settled first.
class safetensors_writer {
  stored_tensors header_;
  std::string text_;
  output_file file_;
  std::size_t next_ = 0;

 public:
  /// Throws `error` as safetensors_header does, before there is a file.
  safetensors_writer(std::string const& path, stored_tensors header)
      : header_(std::move(header)), text_(safetensors_header(header_, path)), file_(path) {
    file_.write(text_);
  }
  /// Precondition: the next tensor of the header has this type and so many elements.
  template <class Element> void write(std::vector<Element> const& all) {
    static_assert(std::endian::native == std::endian::little,
                  "tensorpar: safetensors are written on little-endian machines only");
    stored_tensor const& t = header_.tensors.at(next_++);
    if (t.type != stored_as<Element>::type || t.end - t.begin != all.size() * sizeof(Element))
      throw error("not the elements that the header promised", detail::tensor_place(file_.path(), t.name),
                  std::to_string(t.elements()) + " of " + name_of(t.type));
    file_.write(all.data(), all.size() * sizeof(Element));
  }
  /// Returns once the file is on the disk. Throws `error` if tensors are missing.
  void finish() {
    if (next_ != header_.tensors.size())
      throw error("tensors are missing", file_.path(), std::to_string(header_.tensors.size()) + " tensors");
    file_.finish();
  }
  u64 bytes() const { return file_.bytes(); }
  u64 hash() const { return file_.hash(); }
};

}  // namespace tensorpar::exec
