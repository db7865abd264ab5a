// One name for failures that are the same, whichever rank, host and run they were on.
#include "rules/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/ascii.h"

namespace inquest {
namespace {

/// FNV-1a: the same on every machine, and in every version.
class Hash {
 public:
  void Add(std::string_view text) {
    for (const char c : text) value_ = (value_ ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    value_ = (value_ ^ 0xffU) * 0x100000001b3U;
  }
  std::string InWords() const { return fmt::format("{:016x}", value_); }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325U;
};

/// `train.py:84 in main` of `/home/u/run-42/train.py:84 in main`.
std::string_view WithoutFolders(std::string_view frame) {
  const std::size_t end = frame.find(" in ");
  const std::size_t slash = frame.substr(0, end).rfind('/');
  return slash == std::string_view::npos ? frame : frame.substr(slash + 1);
}

/// Its words that hold letters alone: names with digits, numbers, addresses and paths differ from run to run.
std::string WordsOf(std::string_view line) {
  constexpr std::size_t kMost = 12;
  std::string out;
  std::size_t words = 0;
  while (!line.empty() && words < kMost) {
    const std::size_t end = std::min(line.find(' '), line.size());
    std::string_view word = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    while (!word.empty() && std::string_view(",.:;()[]'\"").find(word.back()) != std::string_view::npos)
      word.remove_suffix(1);
    const auto is_letter = [](char c) { return IsLetter(c) || c == '_'; };
    if (word.size() < 2 || !std::ranges::all_of(word, is_letter)) continue;
    out += word;
    out += ' ';
    ++words;
  }
  return out;
}

}  // namespace

std::string FingerprintOf(const Timeline& timeline, const Verdict& verdict) {
  if (verdict.outcome == Outcome::kHealthy) return {};
  Hash hash;
  hash.Add(verdict.cause);
  hash.Add(verdict.rule);
  const ExceptionRaised* raised = nullptr;
  for (const Citation& citation : verdict.evidence)
    if (raised == nullptr && citation.role == LineRole::kCause && citation.event < timeline.events.size())
      raised = std::get_if<ExceptionRaised>(&timeline.events[citation.event].what);
  if (raised != nullptr) {
    hash.Add(raised->type);
    hash.Add(WithoutFolders(raised->frame));
  }
  if (verdict.collective) hash.Add(verdict.collective->op);
  if (verdict.rule.empty() && !verdict.evidence.empty()) hash.Add(WordsOf(verdict.evidence.front().text));
  return hash.InWords();
}

}  // namespace inquest
