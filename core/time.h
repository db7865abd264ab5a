// Moments as logs print them: with or without a date, a year, or a zone.
#ifndef INQUEST_CORE_TIME_H  // no pragma: compilers know files by their times, and this one may come precompiled out of
                             // a cache
#define INQUEST_CORE_TIME_H

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace inquest {

/// A moment. UTC where the log gives a zone, else the log's own local time.
struct Timestamp {
  /// How much of the date the log printed.
  enum class Date : std::uint8_t { kNone, kNoYear, kFull };

  std::chrono::sys_time<std::chrono::nanoseconds> at{};
  Date date = Date::kFull;
  bool zone_known = false;
  /// The unit of the last digit printed: 1 s or finer; of a derived moment, how far off it may be. Order below it means
  /// nothing.
  std::chrono::nanoseconds resolution = std::chrono::seconds(1);
};

/// Year that stands in where a log prints none; a leap year, so that 29 February exists.
inline constexpr int kYearless = 2000;

/// A timestamp at the start of `text`, and how many bytes it took. Accepts ISO 8601 in its usual spellings
/// (`2031-04-05T06:07:08.123456Z`, `2031-04-05 06:07:08,123`, `+08:00`), `2031/04/05 06:07:08`,
/// `04-05 06:07:08`, `Apr  5 06:07:08`, `Sat Apr  5 06:07:08 2031`, and a bare `06:07:08[.frac]`. No brackets.
struct ParsedTime {
  Timestamp time;
  std::size_t size = 0;
};
std::optional<ParsedTime> ParseTime(std::string_view text);

inline std::optional<Timestamp> TimeOf(const std::optional<ParsedTime>& parsed) {
  return parsed ? std::optional(parsed->time) : std::nullopt;
}

/// c10's `E219 04:05:06.123456789`: month * 100 + day, no year; the text after the severity letter. The nine
/// digits are CLOCK_MONOTONIC's and are dropped: resolution is 1 s.
std::optional<ParsedTime> ParseC10Time(std::string_view text);

/// Python elastic's `0405 06:07:08.123000`: zero-padded month and day, no year.
std::optional<ParsedTime> ParseGlogTime(std::string_view text);

/// `2031-04-05T06:07:08.123Z`; without year `04-05T06:07:08`; without date `06:07:08`. Fraction only where printed.
std::string FormatTime(const Timestamp& time);
/// The time of day alone, `06:07:08`.
std::string FormatClock(const Timestamp& time);

}  // namespace inquest

#endif  // INQUEST_CORE_TIME_H
