// tensorpar/tool/nearest.hpp - "did you mean ...?": the known word that is nearest to one that is not known
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace tensorpar::tools {

namespace detail {

inline std::string lower_case(std::string_view s) {
  std::string r(s);
  for (char& c : r) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '_') c = '-';
  }
  return r;
}

}  // namespace detail

/// How many edits make one word of the other: a letter put in, left out, changed, or exchanged with its
/// neighbour (Damerau 1964). No letter is touched twice. Upper and lower case are the same, and so are '_'
/// and '-'. O(a * b).
inline std::size_t edits_between(std::string_view a, std::string_view b) {
  std::string const x = detail::lower_case(a), y = detail::lower_case(b);
  std::vector<std::vector<std::size_t>> d(x.size() + 1, std::vector<std::size_t>(y.size() + 1));
  for (std::size_t i = 0; i <= x.size(); ++i)
    for (std::size_t j = 0; j <= y.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (x[i - 1] != y[j - 1])});
      if (i > 1 && j > 1 && x[i - 1] == y[j - 2] && x[i - 2] == y[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d.back().back();
}

/// The known word with fewest edits, the first of several; of words that begin with this one, the shortest.
/// "": none is within a third of the word's letters. O(known * letters^2).
inline std::string nearest(std::string_view word, std::vector<std::string> const& known) {
  std::string best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (std::string const& k : known)
    if (std::size_t const n = edits_between(word, k); n < least) {
      least = n;
      best = k;
    }
  if (!best.empty() || word.size() < 2) return best;
  for (std::string const& k : known)
    if (detail::lower_case(k).starts_with(detail::lower_case(word)) &&
        (best.empty() || k.size() < best.size()))
      best = k;
  return best;
}

/// ", did you mean \"plan\"?", or "" where nothing is near.
inline std::string did_you_mean(std::string_view word, std::vector<std::string> const& known) {
  std::string const n = nearest(word, known);
  return n.empty() ? "" : ", did you mean \"" + n + "\"?";
}
/// "plan, compare, show": what an error says would be valid.
inline std::string listed(std::vector<std::string> const& known) {
  std::string r;
  for (std::string const& k : known) r += (r.empty() ? "" : ", ") + k;
  return r;
}

}  // namespace tensorpar::tools
