// What PyTorch's messages say wherever they stand: on a log line of their own, or as the text of a Python exception.
// An exception's line belongs to the traceback, so its parser asks the readers below what the text tells besides.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "core/event.h"
#include "core/pattern.h"

namespace inquest {

/// The watchdog's words, by watchdog.cc. Empty: none of them.
std::vector<What> ReadWatchdogMessage(std::string_view text);
/// Errors of process groups, by c10d_errors.cc.
std::vector<What> ReadC10dMessage(std::string_view text);
/// Signals and exits that launchers raise as exceptions, by torchelastic.cc.
std::vector<What> ReadElasticMessage(std::string_view text);

/// `pkg.mod.SomeError: text`, or the bare type, at the start of a line. Views into the text.
struct ExceptionLine {
  std::string_view type, message;
};
std::optional<ExceptionLine> ReadExceptionLine(std::string_view text);

/// A rank that a pattern captured. nullopt where it did not, or for a number that no job has.
template <class Rank>
std::optional<Rank> RankOf(const Pattern::Match& match, std::size_t group) {
  const auto rank = match.number(group);
  if (!rank || !IsRank(*rank)) return std::nullopt;
  return Rank{static_cast<std::int32_t>(*rank)};
}

/// The numbers of `1, 5, 7`; those that do not fit are left out.
template <class Int>
std::vector<Int> ReadNumbers(std::string_view list) {
  constexpr std::string_view kDigits = "0123456789";
  std::vector<Int> numbers;
  for (std::size_t at = list.find_first_of(kDigits); at < list.size(); at = list.find_first_of(kDigits, at)) {
    const std::size_t end = std::min(list.find_first_not_of(kDigits, at), list.size());
    Int number{};
    if (std::from_chars(list.data() + at, list.data() + end, number).ec == std::errc()) numbers.push_back(number);
    at = end;
  }
  return numbers;
}

/// An event of c10's C++ log. The line's own `[rank3]:[E219 04:05:06...]` counts where other text, such as a progress
/// bar without its line end, hid it from the envelope.
Event C10EventFrom(const Record& record, What what);

}  // namespace inquest
