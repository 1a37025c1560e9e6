// tensorpar/exec/comm/launch_variables.hpp - numbers and places in the environment that a launcher has made
#pragma once
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/error.hpp>

namespace tensorpar::exec::detail {

/// A host, and a port there; 0: none is said.
struct host_and_port {
  std::string host;
  int port = 0;
};
/// "host", "host:port", an address of IPv6, in brackets where a port follows. Throws `error` for anything
/// else. `name`: whose value it is.
inline host_and_port read_place(std::string_view text, char const* name) {
  auto const refuse = [&] {
    throw error(std::string(name) + " is '" + std::string(text) + "'", "the environment",
                "a host, host:port, or [address of IPv6]:port, with a port from 1 to 65535");
  };
  std::string_view host = text, port;
  bool bracketed = false;
  if (text.starts_with('[')) {
    std::size_t const close = text.find(']');
    if (close == text.npos) refuse();
    bracketed = true;
    host = text.substr(1, close - 1);
    port = text.substr(close + 1);
  } else if (std::size_t const colon = text.find(':');
             colon != text.npos && text.find(':', colon + 1) == text.npos) {
    host = text.substr(0, colon);
    port = text.substr(colon);
  }
  bool const v6 = host.find(':') != host.npos;
  if (host.empty() || host.find_first_of(" \t\n/[]") != host.npos || (bracketed && !v6)) refuse();
  if (v6 && host.substr(0, host.find('%')).find_first_not_of("0123456789abcdefABCDEF:.") != host.npos)
    refuse();
  host_and_port r{std::string(host), 0};
  if (port.empty()) return r;
  auto const [end, wrong] = std::from_chars(port.data() + 1, port.data() + port.size(), r.port);
  if (port[0] != ':' || wrong != std::errc() || end != port.data() + port.size() || r.port < 1 ||
      r.port > 65535)
    refuse();
  return r;
}

/// Reads numbers from an environment: `get(name)` is a string, or nullptr.
template <class Get> struct launch_reader {
  Get const& get;
  bool has(char const* name) const { return get(name) != nullptr; }
  u64 whole(char const* name, char const* by, u64 least, u64 most) const {
    char const* const text = get(name);
    std::string const valid = "a number from " + std::to_string(least) + " to " + std::to_string(most);
    if (!text)
      throw error(std::string(name) + " is missing", std::string("the environment that ") + by + " made",
                  valid);
    u64 n = 0;
    auto const [end, wrong] = std::from_chars(text, text + std::strlen(text), n);
    if (wrong != std::errc() || *end || n < least || n > most)
      throw error(std::string(name) + " is '" + text + "'",
                  std::string("the environment that ") + by + " made", valid);
    return n;
  }
  int number(char const* name, char const* by, int least, int most) const {
    return static_cast<int>(whole(name, by, static_cast<u64>(least), static_cast<u64>(most)));
  }
  /// The first of these that is there; if none is, the first.
  template <std::size_t n> char const* any_of(char const* const (&names)[n]) const {
    for (char const* name : names) if (name && has(name)) return name;
    return names[0];
  }
  /// Two variables that are to say the same number.
  void agree(char const* name, int n, char const* by, char const* other_name, int other,
             std::string const& other_by) const {
    if (n == other) return;
    throw error(std::string(name) + " is " + std::to_string(n) + ", but " + other_name + " of " + other_by +
                    " is " + std::to_string(other),
                std::string("the environment that ") + by + " made", "one launcher, or two that agree");
  }
};

}  // namespace tensorpar::exec::detail
