// tests/exec/tokens.test.cpp - the example's token files: written, read again, refused when malformed; batches follow from the step
#include "../../examples/tokens.hpp"
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "support/effort.hpp"
#include "support/scratch_folder.hpp"

using namespace tensorpar;

TEST_CASE("token files come back, and what is no such file is refused with its name") {
  tests::scratch_folder const folder;
  std::string const path = folder.path() + "/t.bin";
  std::vector<std::uint16_t> const some{1, 2, 50256, 65535, 0, 7};
  tokens::write(some, path);
  CHECK(tokens::read(path) == some);
  CHECK_THROWS_AS(tokens::write({}, path), error);
  CHECK_THROWS_WITH_AS(tokens::write(some, folder.path() + "/no/t.bin"), doctest::Contains("cannot write"), error);
  CHECK_THROWS_WITH_AS(tokens::read(folder.path() + "/none.bin"), doctest::Contains("none.bin"), error);

  std::ifstream in(path, std::ios::binary);
  std::string const good((std::istreambuf_iterator<char>(in)), {});
  CHECK(good.size() == 1024 + 2 * some.size());
  auto const refused = [&](std::string const& bytes, char const* why) {
    std::ofstream(path, std::ios::binary) << bytes;
    CHECK_THROWS_WITH_AS(tokens::read(path), doctest::Contains(why), error);
  };
  refused("", "not a token file");
  refused(good.substr(0, 1000), "not a token file");
  refused(good.substr(0, good.size() - 1), "length");
  refused(good + "x", "length");
  std::string other = good;
  other[0] = static_cast<char>(other[0] + 1);
  refused(other, "not a token file");
  other = good;
  other[4] = 2;
  refused(other, "version 2");
  other = good;
  other[8] = 0;
  refused(other, "0 tokens");
  refused(good + good.substr(1024), "a token file of 32-bit tokens");
  other = good;
  std::int32_t const of_32_bits[] = {20240801, 7};
  other.replace(0, 8, reinterpret_cast<char const*>(of_32_bits), 8);
  refused(other, "a token file of 32-bit tokens");

  other = good;                                       // 4 GB of tokens claimed, and there is room for a quarter of that
  other.replace(8, 4, "\xff\xff\xff\x7f");
  ::rlimit before;
  ::getrlimit(RLIMIT_AS, &before);
  ::rlimit now = before;
  now.rlim_cur = 1 << 30;
  if (!test_effort::slow) ::setrlimit(RLIMIT_AS, &now);
  refused(other, "the file's length of 1036 bytes is not that of its 2147483647 tokens");
  ::setrlimit(RLIMIT_AS, &before);
  CHECK(::unlink(path.c_str()) == 0);
  REQUIRE(::mkfifo(path.c_str(), 0666) == 0);
  CHECK_THROWS_WITH_AS(tokens::read(path), doctest::Contains("it is a pipe"), error);
  CHECK_THROWS_WITH_AS(tokens::of_text(path), doctest::Contains("it is a pipe"), error);
}

TEST_CASE("a batch's labels are the tokens that follow, round and round, and consecutive batches join") {
  std::vector<std::uint16_t> all;
  for (int i = 0; i < 11; ++i) all.push_back(static_cast<std::uint16_t>(100 + i));
  std::size_t at = 0;
  for (u64 step = 0; step < 7; ++step) {
    host_batch const b = tokens::batch_of(all, step, 2, 4);
    for (int i = 0; i < 8; ++i, ++at) {
      auto const k = static_cast<std::size_t>(i);
      CHECK(b.at("tokens").index[k] == all[at % 11]);
      CHECK(b.at("labels").index[k] == all[(at + 1) % 11]);
      CHECK(b.at("positions").index[k] == i % 4);
    }
    CHECK(b.at("tokens").shape == shape{2, 4});
  }
}
