// tests/exec/files/safetensors.test.cpp - the format as others write it, round trips, and every kind of damage refused
#include "support/cpu_seconds.hpp"
#include "support/scratch_folder.hpp"
#include <doctest/doctest.h>
#include <random>
#include <tensorpar/exec/files/safetensors_file.hpp>
#include <tensorpar/exec/files/safetensors.hpp>

using namespace tensorpar;

namespace {

/// A whole file with this header and so many bytes of data.
std::string file_of(std::string const& header, std::string const& data) {
  std::string r;
  for (std::size_t i = 0; i < 8; ++i) r += static_cast<char>(header.size() >> 8 * i & 255);
  return r + header + data;
}

/// What read_safetensors says against a header, or "".
std::string refusal(std::string const& header, std::size_t data) {
  try {
    exec::read_safetensors(file_of(header, std::string(data, '\0')), "x.safetensors");
  } catch (error const& e) { return e.what(); }
  return "";
}

std::string_view constexpr data_of_python{
    "\x01\0\0\0\0\0\0\0\xfe\xff\xff\xff\xff\xff\xff\x1f\0\0\0\0\0\0\xf8?\0\0\0\0\0\0\0\xc0\0\0\0\0\0\0\xd0?\0\0\0?"
    "\x03\0\0\0\xfc\xff\xff\xff",
    52};

}  // namespace

TEST_CASE("a file of the reference implementation (Python, safetensors 0.4) is read") {
  std::string const file = file_of(
      R"({"__metadata__":{"by":"python"},"f":{"dtype":"U64","shape":[2],"data_offsets":[0,16]},"w":{"dtype":"F64","shape":[1,3],"data_offsets":[16,40]},)"
      R"("s":{"dtype":"F32","shape":[],"data_offsets":[40,44]},"b":{"dtype":"I32","shape":[2],"data_offsets":[44,52]}}    )",
      std::string(data_of_python));
  REQUIRE(file.size() == 316);
  exec::stored_tensors const h = exec::read_safetensors(file, "python");
  CHECK(h.notes == std::map<std::string, std::string>{{"by", "python"}});
  REQUIRE(h.tensors.size() == 4);
  CHECK(h.tensors[1] == exec::stored_tensor{"w", exec::stored_type::f64, {1, 3}, 16, 40});
  CHECK(h.find("s")->elements() == 1);
  CHECK(h.find("t") == nullptr);
  CHECK(exec::read_tensor<double>(file, h, "w", "python") == std::vector<double>{1.5, -2, 0.25});
  CHECK(exec::read_tensor<float>(file, h, "s", "python") == std::vector<float>{0.5f});
  CHECK(exec::read_tensor<std::int32_t>(file, h, "b", "python") == std::vector<std::int32_t>{3, -4});
  CHECK(exec::read_tensor<prime_field>(file, h, "f", "python") == std::vector<prime_field>{prime_field(1), prime_field(-1)});

  // and written again it is the same file, to the byte
  exec::stored_tensors again = h;
  CHECK(exec::safetensors_header(again, "again") + std::string(data_of_python) == file);
  CHECK(again == h);

  std::string beyond = file;
  beyond[264 + 8] = '\xff';  // 2^61 - 1 and 0 are one field element: the second way to write it is refused
  CHECK_THROWS_WITH_AS(exec::read_tensor<prime_field>(beyond, h, "f", "p"), doctest::Contains("element 1 is 2305843009213693951"), error);
  CHECK(exec::read_tensor<float>(file, h, "w", "python") == std::vector<float>{1.5f, -2, 0.25f});
  CHECK(exec::read_tensor<double>(file, h, "s", "python") == std::vector<double>{0.5});
  CHECK_THROWS_WITH_AS(exec::read_tensor<float>(file, h, "b", "p"),
                       "elements of type I32 (at p: tensor \"b\", dtype); valid: F16, BF16, F32, F64", error);
  CHECK_THROWS_WITH_AS(exec::read_tensor<prime_field>(file, h, "w", "p"), "elements of type F64 (at p: tensor \"w\", dtype); valid: U64",
                       error);
  CHECK_THROWS_WITH_AS(exec::read_tensor<float>(file, h, "W", "p"),
                       "there is no such tensor (at p: tensor \"W\"); valid: one of its 4 tensors",
                       error);
}

TEST_CASE("every claim of a header is checked") {
  auto const one = [](std::string const& dtype, std::string const& extents, std::string const& offsets) {
    return R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + extents + R"(,"data_offsets":)" + offsets + "}}";
  };
  CHECK(refusal(one("\"F32\"", "[2,3]", "[0,24]"), 24) == "");
  CHECK(refusal(one("\"F32\"", "[]", "[0,4]"), 4) == "");
  CHECK(refusal(one("\"F32\"", "[7,0]", "[0,0]"), 0) == "");
  CHECK(refusal("{}", 0) == "");
  CHECK(refusal("{}      ", 0) == "");

  struct row {
    std::string header;
    std::size_t data;
    char const* says;
  };
  std::string const f = "\"F32\"";
  for (row const& r : std::initializer_list<row>{
           {one("\"F17\"", "[2]", "[0,4]"), 5, "the data have 5 bytes (at x.safetensors); valid: 4 bytes, those of all tensors"},
           {one("\"F17\"", "[2]", "[0,4]"), 3, "bytes 0 to 4 are not in the file"},
           {one("\"\"", "[2]", "[0,4]"), 4, "unknown element type"},
           {one("\"F16\"", "[2]", "[0,8]"), 8, "8 bytes for 4 bytes of elements"},
           {one("7", "[2]", "[0,4]"), 4, "unknown element type"},
           {one(f, "2", "[0,8]"), 8, "not a list (at x.safetensors: tensor \"a\", shape); valid: a list of extents"},
           {one(f, "[-2]", "[0,8]"), 8,
            "not a whole number (at x.safetensors: tensor \"a\", shape); valid: a whole number from 0 to 9223372036854775807"},
           {one(f, "[2.0]", "[0,8]"), 8, "not a whole number"},
           {one(f, "[18446744073709551615]", "[0,8]"), 8, "not a whole number"},
           {one(f, "[4294967296,4294967296]", "[0,0]"), 0,
            "more elements than can be counted (at x.safetensors: tensor \"a\", shape); valid: a tensor below 2^63 bytes"},
           {one(f, "[9223372036854775807]", "[0,0]"), 0, "more elements than can be counted"},
           {one(f, "[2]", "[0]"), 8, "not a pair (at x.safetensors: tensor \"a\", data_offsets); valid: [begin, end]"},
           {one(f, "[2]", "[0,8,8]"), 8, "not a pair"},
           {one(f, "[2]", "[8,0]"), 8, "bytes 8 to 0 are not in the file"},
           {one(f, "[2]", "[0,8]"), 7,
            "bytes 0 to 8 are not in the file (at x.safetensors: tensor \"a\", data_offsets); valid: 0 <= begin <= end <= 7"},
           {one(f, "[2]", "[0,18446744073709551615]"), 8, "not a whole number"},
           {one(f, "[3]", "[0,8]"), 8, "8 bytes for 12 bytes of elements"},
           {one(f, "[1]", "[4,8]"), 8, "a gap in the data (at x.safetensors: tensor \"a\", data_offsets); valid: begin = 0"},
           {one(f, "[1]", "[0,4]"), 8, "the data have 8 bytes (at x.safetensors); valid: 4 bytes, those of all tensors"},
           {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12,
            "the data of two tensors overlap (at x.safetensors: tensor \"b\", data_offsets); valid: begin = 8"},
           {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8,
            "JSON key \"a\" stands twice in one object (at x.safetensors); valid: each key once"},
           {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "a key is missing (at x.safetensors: tensor \"a\", data_offsets)"},
           {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1}})", 4, "unknown keys"},
           {R"({"a":[]})", 0, "not a tensor's entry"},
           {R"({"__metadata__":{"n":1}})", 0, "not a text"},
           {R"({"__metadata__":"n"})", 0, "not an object (at x.safetensors: __metadata__)"},
           {R"([])", 0, "the header is not a JSON object"},
           {R"( {})", 0, "the header is not a JSON object"},
           {R"({"a")", 0, "malformed JSON"}}) {
    CAPTURE(r.header);
    CHECK(refusal(r.header, r.data).find(r.says) == 0);
  }
}

TEST_CASE("a header with every type of the format is read and written again, and one tensor's type is in no other's way") {
  exec::stored_tensors h;
  u64 bytes = 0;
  for (int k = 0; k < exec::stored_types; ++k) {
    h.tensors.push_back({exec::name_of(static_cast<exec::stored_type>(k)), static_cast<exec::stored_type>(k), {3, 1}, 0, 0});
    bytes += static_cast<u64>(3 * exec::bytes_of(static_cast<exec::stored_type>(k)));
  }
  std::string const file = exec::safetensors_header(h, "x") + std::string(static_cast<std::size_t>(bytes), '\0');
  CHECK(exec::read_safetensors(file, "x") == h);
  int real = 0;
  for (exec::stored_tensor const& t : h.tensors) {
    CAPTURE(t.name);
    if (exec::is_real(t.type)) {
      ++real;
      CHECK(exec::read_tensor<float>(file, h, t.name, "x") == std::vector<float>(3));
      CHECK(exec::read_tensor<double>(file, h, t.name, "x") == std::vector<double>(3));
      continue;
    }
    std::string const says = "elements of type " + t.name + " (at x: tensor \"" + t.name + "\", dtype); valid: F16, BF16, F32, F64";
    CHECK_THROWS_WITH_AS(exec::read_tensor<float>(file, h, t.name, "x"), says.c_str(), error);
    CHECK_THROWS_WITH_AS(exec::read_tensor<double>(file, h, t.name, "x"), says.c_str(), error);
  }
  CHECK(real == 4);
  CHECK(exec::read_tensor<std::int32_t>(file, h, "I32", "x") == std::vector<std::int32_t>(3));
  CHECK_THROWS_WITH_AS(exec::read_tensor<std::int32_t>(file, h, "U32", "x"), doctest::Contains("valid: I32"), error);
}

TEST_CASE("half precision beside what is no real number, as Python wrote it (safetensors 0.8, numpy, ml_dtypes)") {
  std::string const file = file_of(
      R"({"n":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},"w":{"dtype":"F64","shape":[1],"data_offsets":[16,24]},)"
      R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[24,28]},"h":{"dtype":"F16","shape":[2,2],"data_offsets":[28,36]},)"
      R"("ok":{"dtype":"BOOL","shape":[3],"data_offsets":[36,39]}})",
      std::string("\xf9\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\1\0\0\x9a\x99\x99\x99\x99\x99\xb9?\xc0?\0\xc2\0<\0\xc0U5\1\0\1\0\1", 39));
  REQUIRE(file.size() == 327);
  exec::stored_tensors const h = exec::read_safetensors(file, "x");
  CHECK(exec::read_tensor<double>(file, h, "h", "x") == std::vector<double>{1, -2, 0.333251953125, 0x1p-24});
  CHECK(exec::read_tensor<float>(file, h, "b", "x") == std::vector<float>{1.5f, -32});
  CHECK(exec::read_tensor<float>(file, h, "w", "x") == std::vector<float>{0.1f});
  CHECK_THROWS_WITH_AS(exec::read_tensor<float>(file, h, "ok", "x"),
                       doctest::Contains("elements of type BOOL (at x: tensor \"ok\", dtype)"), error);
}

TEST_CASE("the header's length is checked before anything is read") {
  auto const says = [](std::string const& file) -> std::string {
    try {
      exec::read_safetensors(file, "x");
    } catch (error const& e) { return e.what(); }
    return "";
  };
  CHECK(says("") == "the file ends within the header's length (at x); valid: a safetensors file, of at least 10 bytes");
  CHECK(says(std::string(7, '\0')).find("the file ends within") == 0);
  CHECK(says(std::string(8, '\0')) == "a header of 0 bytes (at x); valid: a file of at least 10 bytes");
  CHECK(says(std::string(8, '\xff')).find("a header of 18446744073709551615 bytes") == 0);
  CHECK(says(std::string("\x03\0\0\0\0\0\0\0{}", 10)) == "a header of 3 bytes (at x); valid: from 2 to 2 here");
  CHECK(says(std::string("\0\0\0\0\0\0\0\x80{}", 10)).find("a header of 9223372036854775808 bytes") == 0);
}

TEST_CASE("what is written is read back, in memory and on disk") {
  tests::scratch_folder const folder;
  std::mt19937_64 draw(5);
  for (int trial = 0; trial < 60; ++trial) {
    exec::stored_tensors h;
    std::vector<std::vector<double>> reals;
    std::vector<std::vector<prime_field>> fields;
    int const n = static_cast<int>(draw() % 6);
    for (int i = 0; i < n; ++i) {
      exec::stored_tensor t;
      t.name = "layer \"" + std::to_string(i) + "\"\n\xc3\xa4." + std::to_string(draw() % 100);
      t.type = draw() % 2 ? exec::stored_type::f64 : exec::stored_type::field;
      for (u64 r = draw() % 4; r > 0; --r) t.extents.push_back(static_cast<i64>(draw() % 5));
      reals.emplace_back();
      fields.emplace_back();
      for (i64 k = 0; k < t.elements(); ++k) {
        if (t.type == exec::stored_type::f64)
          reals.back().push_back(static_cast<double>(draw()) / 7);
        else
          fields.back().push_back(prime_field(static_cast<i64>(draw() >> 1)));
      }
      h.tensors.push_back(std::move(t));
    }
    if (draw() % 2) h.notes["what"] = "a \"note\"";
    std::string const path = folder / "t.safetensors";
    exec::safetensors_writer out(path, h);
    for (std::size_t i = 0; i < h.tensors.size(); ++i) {
      if (h.tensors[i].type == exec::stored_type::f64)
        out.write(reals[i]);
      else
        out.write(fields[i]);
    }
    out.finish();
    std::string const bytes = tests::bytes_of_file(path);
    CHECK(out.bytes() == bytes.size());
    CHECK(out.hash() == exec::content_hash().add(bytes.data(), bytes.size()).value());
    exec::safetensors_file const in(path);
    CHECK(in.header() == exec::read_safetensors(bytes, path));
    CHECK(in.header().header_bytes % 8 == 0);
    CHECK(in.header().notes == h.notes);
    REQUIRE(in.header().tensors.size() == h.tensors.size());
    for (std::size_t i = 0; i < h.tensors.size(); ++i) {
      std::string const& name = h.tensors[i].name;
      CHECK(in.header().find(name)->extents == h.tensors[i].extents);
      if (h.tensors[i].type == exec::stored_type::f64) {
        CHECK(in.read<double>(name) == reals[i]);
        CHECK(exec::read_tensor<double>(bytes, in.header(), name, path) == reals[i]);
      } else {
        CHECK(in.read<prime_field>(name) == fields[i]);
      }
    }
    for (std::size_t cut = 0; cut < bytes.size(); cut += 1 + bytes.size() / 40)
      CHECK_THROWS_AS(exec::read_safetensors(std::string_view(bytes).substr(0, cut), "cut"), error);
    CHECK_THROWS_AS(exec::read_safetensors(bytes + "x", "long"), error);
  }
}

TEST_CASE("any damaged byte gives an error or another valid file, never more") {
  exec::stored_tensors h;
  h.tensors = {{"w", exec::stored_type::f32, {2, 3}, 0, 0}, {"v", exec::stored_type::i32, {1}, 0, 0},
               {"u", exec::stored_type::f16, {2}, 0, 0}};
  std::string const file = exec::safetensors_header(h, "x") + std::string(32, '\1');
  std::mt19937 draw(3);
  int refused = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    std::string bad = file;
    for (int k = static_cast<int>(draw() % 3); k >= 0; --k) bad[draw() % bad.size()] = static_cast<char>(draw());
    try {
      exec::stored_tensors const r = exec::read_safetensors(bad, "x");
      u64 all = 0;
      for (exec::stored_tensor const& t : r.tensors) all += t.end - t.begin;
      CHECK(r.header_bytes + all == bad.size());
    } catch (error const&) { ++refused; }
  }
  CHECK(refused > 2000);
}

TEST_CASE("headers that cannot be written are refused before there is a file") {
  tests::scratch_folder const folder;
  auto const says = [&](std::vector<exec::stored_tensor> t) -> std::string {
    exec::stored_tensors h;
    h.tensors = std::move(t);
    try {
      exec::safetensors_writer(folder / "never", h);
    } catch (error const& e) { return e.problem(); }
    return "";
  };
  CHECK(says({{"a", exec::stored_type::f32, {1}, 0, 0}, {"a", exec::stored_type::f32, {1}, 0, 0}}) == "a name that stands twice");
  CHECK(says({{"__metadata__", exec::stored_type::f32, {1}, 0, 0}}) == "a name that stands twice");
  CHECK(says({{"\xff", exec::stored_type::f32, {1}, 0, 0}}) == "a name or a note that is not UTF-8");
  CHECK(says({{"a", exec::stored_type::f32, {-1}, 0, 0}}) == "no such size: -1");
  CHECK(says({{"a", exec::stored_type::f32, {i64{1} << 32, i64{1} << 32}, 0, 0}}) == "no such size: 4294967296");
  CHECK(!exec::detail::exists(folder / "never"));
  exec::stored_tensors h;
  h.tensors = {{"a", exec::stored_type::f32, {2}, 0, 0}};
  exec::safetensors_writer out(folder / "t", h);
  CHECK_THROWS_WITH_AS(out.write(std::vector<float>{1}), doctest::Contains("2 of F32"), error);
  CHECK_THROWS_AS(exec::safetensors_writer(folder / "t", h).finish(), error);
  CHECK_THROWS_WITH_AS(exec::safetensors_writer(folder / "no/such/folder", h), doctest::Contains("cannot write the file"), error);
  CHECK_THROWS_WITH_AS(exec::safetensors_file(folder / "none"), doctest::Contains("cannot read the file"), error);
  CHECK_THROWS_WITH_AS(exec::safetensors_file(folder.path()), doctest::Contains("it is a folder"), error);
}

TEST_CASE("a type that is not known matters only to who asks for that tensor") {
  std::string const header =
      R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"q":{"dtype":"F4","shape":[3,2],"data_offsets":[8,11]},)"
      R"("c":{"dtype":"C256_\u00e9","shape":[9223372036854775807],"data_offsets":[11,14]},"v":{"dtype":"F32","shape":[1],"data_offsets":[14,18]}})";
  exec::stored_tensors const h = exec::parse_safetensors_header(header, 18, "x");
  std::string const file = std::string(8, '\0') + header + std::string("\0\0\x80\x3f\0\0\0\x40" "qqqccc" "\0\0\x40\x40", 18);
  CHECK(exec::read_tensor<float>(file, h, "w", "x") == std::vector<float>{1, 2});
  CHECK(exec::read_tensor<float>(file, h, "v", "x") == std::vector<float>{3});
  CHECK_THROWS_WITH_AS(exec::read_tensor<float>(file, h, "q", "x"),
                       "elements of type F4 (at x: tensor \"q\", dtype); valid: F16, BF16, F32, F64", error);
  CHECK_THROWS_WITH_AS(exec::read_tensor<std::int32_t>(file, h, "q", "x"), doctest::Contains("elements of type F4"), error);
  CHECK_THROWS_WITH_AS(exec::read_tensor<prime_field>(file, h, "c", "x"), doctest::Contains("elements of type C256_\xc3\xa9"), error);
  exec::stored_tensors again = h;
  CHECK_THROWS_WITH_AS(exec::safetensors_header(again, "y"),
                       "elements of type F4 (at y: tensor \"q\", dtype); valid: a type that can be written", error);
}

TEST_CASE("a raw zero byte behind the header's object hides nothing") {
  std::string const header = std::string(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})") + '\0' + R"( {"hidden": )";
  CHECK(refusal(header, 4).find("a zero byte in a text (at x.safetensors:1:") == 0);
}

TEST_CASE("headers of many tensors: reading, writing and looking up take time in proportion") {
  auto const header_of = [](int n) {
    exec::stored_tensors h;
    for (int i = 0; i < n; ++i)
      h.tensors.push_back({"model.layers." + std::to_string(i % 61) + ".experts." + std::to_string(i) + ".weight", exec::stored_type::bf16,
                           {2, 3}, 0, 0});
    return h;
  };
  auto const seconds = [&](int n, int what) {
    exec::stored_tensors h = header_of(n);
    std::string const text = exec::safetensors_header(h, "x");
    exec::stored_tensors const read = exec::parse_safetensors_header(std::string_view(text).substr(8),
                                                                     static_cast<u64>(12) * static_cast<u64>(n), "x");
    REQUIRE(read == h);
    return tests::cpu_seconds([&] {
      if (what == 0) exec::safetensors_header(h, "x");
      if (what == 1) exec::parse_safetensors_header(std::string_view(text).substr(8), h.data_bytes, "x");
      if (what == 2)
        for (exec::stored_tensor const& x : read.tensors) REQUIRE(read.find(x.name) == &x);
    });
  };
  for (int what : {0, 1, 2}) {
    CAPTURE(what);
    CHECK(seconds(8000, what) < 12 * seconds(2000, what) + 0.005);     // four times as many: linear 4 to 5 times, quadratic 16
  }
  exec::stored_tensors renamed = header_of(20);                              // by whoever changes what was read
  renamed.index();
  for (exec::stored_tensor& x : renamed.tensors) x.name = std::to_string(x.name.size() * 7919 % 13) + x.name;
  for (exec::stored_tensor const& x : renamed.tensors) CHECK(renamed.find(x.name) == &x);
  CHECK(renamed.find("none") == nullptr);
}

TEST_CASE("the checksum depends on the bytes and not on their pieces") {
  std::mt19937 draw(1);
  std::string text(1000, '\0');
  for (char& c : text) c = static_cast<char>(draw());
  u64 const whole = exec::content_hash().add(text.data(), text.size()).value();
  for (int trial = 0; trial < 100; ++trial) {
    exec::content_hash h;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t const n = std::min<std::size_t>(draw() % 20, text.size() - at);
      h.add(text.data() + at, n);
      at += n;
    }
    CHECK(h.value() == whole);
    std::string bad = text;
    bad[draw() % bad.size()] ^= static_cast<char>(1 << draw() % 8);
    CHECK(exec::content_hash().add(bad.data(), bad.size()).value() != whole);
  }
  std::set<u64> lengths;  // zeros at the end count
  for (std::size_t n = 0; n <= 40; ++n) lengths.insert(exec::content_hash().add(std::string(n, '\0').data(), n).value());
  CHECK(lengths.size() == 41);
}
