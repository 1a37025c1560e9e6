// tests/tool/demo/other_programs.test.cpp - a busy machine is seen, and said in words
#include <tensorpar/tool/demo/other_programs.hpp>

#include <chrono>
#include <csignal>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <thread>

using namespace tensorpar::tools;

TEST_CASE("the first line of /proc/stat is read: busy is all but idle and iowait") {
  auto const t = processor_ticks_in("cpu  10 2 3 100 7 1 2 4 9 9\ncpu0 1 1 1 1\n");
  REQUIRE(t);
  CHECK(t->busy == 10 + 2 + 3 + 1 + 2 + 4);
  CHECK(t->all == t->busy + 100 + 7);
  CHECK(processor_ticks_in("cpu  1 2 3 4\n")->busy == 6);
  for (char const* text : {"", "cpu0 1 2 3 4\n", "cpu  1 2\n", "cpu  a b c d\n", "cpu "}) CHECK_FALSE(processor_ticks_in(text));
}

TEST_CASE("a tenth of the cores is busy, less is not, and nothing is said where nothing is known") {
  CHECK(busy_text(std::nullopt).empty());
  CHECK(busy_text(0.09).empty());
  CHECK(busy_text(0.45) ==
        "this machine is busy: other programs used 45 % of its cores while this ran; measured times are too long");
  CHECK(is_busy(1.0));
}

TEST_CASE("what this program did itself is not taken for another's") {
  machine_look const a{processor_ticks{1000, 5000}, 700};
  CHECK(others_between(a, {processor_ticks{1150, 5200}, 800}) == 0.25);
  CHECK(others_between(a, {processor_ticks{1150, 5200}, 700}) == 0.75);
  CHECK(others_between(a, {processor_ticks{1099, 5200}, 800}) == 0);     // clocks are read one after the other
  CHECK_FALSE(others_between(a, {processor_ticks{1010, 5019}, 700}));
  CHECK_FALSE(others_between(a, {std::nullopt, 800}));
  CHECK_FALSE(others_between({std::nullopt, 0}, a));
}

#ifdef __linux__
TEST_CASE("another program that computes is seen") {
  machine_watch const at_once;
  CHECK_FALSE(at_once.others());                              // ticks are too coarse for a moment
  machine_watch const watch;
  ::pid_t const child = ::fork();
  if (child == 0) for (;;) {}
  REQUIRE(child > 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  std::optional<double> const others = watch.others();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  REQUIRE(others);
  double const cores = std::max(1u, std::thread::hardware_concurrency());
  CHECK(*others >= 0.4 / cores);                              // it had a core for half of the time at least, or others had it
  CHECK(*others <= 1);
}
#endif
