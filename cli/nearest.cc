// Edit distance over short words.
#include "cli/nearest.h"

#include <algorithm>
#include <numeric>

namespace inquest {
namespace {

std::size_t Edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string_view> Nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  constexpr std::size_t kLongest = 64;
  if (word.empty() || word.size() > kLongest) return std::nullopt;
  std::optional<std::string_view> nearest;
  std::size_t fewest = std::max<std::size_t>(2, word.size() / 2);
  for (const std::string_view candidate : candidates) {
    const bool part = word.size() >= 3 && candidate.find(word) != std::string_view::npos;
    const std::size_t edits = part ? 1 : Edits(word, candidate);
    if (edits < fewest || (edits == fewest && !nearest)) {
      fewest = edits;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace inquest
