// Reads and prints moments. By hand, not by expression: it runs on every line that is kept.
#include "core/time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/ascii.h"

namespace inquest {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

/// Keeps sys_time<nanoseconds>, whose 64 bits end in 2262, from overflowing.
constexpr int kFirstYear = 1970, kLastYear = 2199;

/// Reads from the front of a text; every step that fails leaves it where it was.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  std::size_t position() const { return position_; }
  char peek(std::size_t ahead = 0) const { return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0'; }

  bool Take(char expected) {
    if (peek() != expected || position_ == text_.size()) return false;
    ++position_;
    return true;
  }
  bool TakeWord(std::string_view word) {
    if (text_.substr(position_, word.size()) != word) return false;
    position_ += word.size();
    return true;
  }
  std::optional<int> Digits(std::size_t count) {
    int value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (!IsDigit(peek(i))) return std::nullopt;
      value = value * 10 + (peek(i) - '0');
    }
    position_ += count;
    return value;
  }

 private:
  std::string_view text_;
  std::size_t position_ = 0;
};

struct Day {
  int year = kYearless, month = 1, day = 1;
};
struct Clock {
  nanoseconds since_midnight{};
  nanoseconds resolution = seconds(1);
};

/// The clock with its fraction, `.123456` or `,123`; digits past the ninth are read and dropped.
Clock ReadFraction(Reader& in, Clock clock) {
  if ((in.peek() != '.' && in.peek() != ',') || !IsDigit(in.peek(1))) return clock;
  in.Take(in.peek());
  while (const auto digit = in.Digits(1)) {
    if (clock.resolution == nanoseconds(1)) continue;
    clock.resolution /= 10;
    clock.since_midnight += *digit * clock.resolution;
  }
  return clock;
}

std::optional<Clock> ReadClock(Reader& in) {
  const auto hour = in.Digits(2);
  if (!hour || !in.Take(':')) return std::nullopt;
  const auto minute = in.Digits(2);
  if (!minute || !in.Take(':')) return std::nullopt;
  const auto second = in.Digits(2);
  // Second 60 is a leap second's. A third colon or a third digit: an address or a count, not a time.
  if (!second || *hour > 23 || *minute > 59 || *second > 60 || in.peek() == ':' || IsDigit(in.peek()))
    return std::nullopt;
  Clock clock;
  clock.since_midnight = std::chrono::hours(*hour) + std::chrono::minutes(*minute) + seconds(*second);
  return ReadFraction(in, clock);
}

/// `Z`, ` UTC`, `+08:00`, `+0800`, ` +08:00`: how far local time is ahead of UTC.
std::optional<std::chrono::minutes> ReadZone(Reader& in) {
  if (in.Take('Z') || in.TakeWord(" UTC")) return std::chrono::minutes(0);
  Reader ahead = in;
  ahead.Take(' ');
  const bool east = ahead.peek() == '+';
  if (!ahead.Take('+') && !ahead.Take('-')) return std::nullopt;
  const auto hours = ahead.Digits(2);
  ahead.Take(':');
  const auto minutes = ahead.Digits(2);
  if (!hours || !minutes || *hours > 14 || *minutes > 59 || IsDigit(ahead.peek())) return std::nullopt;
  in = ahead;
  const std::chrono::minutes offset = std::chrono::hours(*hours) + std::chrono::minutes(*minutes);
  return east ? offset : -offset;
}

std::optional<Timestamp> Assemble(const Day& day, const Clock& clock, Timestamp::Date date) {
  using namespace std::chrono;
  const year_month_day civil(year(day.year), month(static_cast<unsigned>(day.month)),
                             std::chrono::day(static_cast<unsigned>(day.day)));
  if (!civil.ok() || day.year < kFirstYear || day.year > kLastYear) return std::nullopt;
  return Timestamp{.at = sys_days(civil) + clock.since_midnight, .date = date, .resolution = clock.resolution};
}

/// `2031-04-05T06:07:08.123Z`, `2031/04/05 06:07:08`.
std::optional<ParsedTime> ParseIso(std::string_view text) {
  Reader in(text);
  const auto year = in.Digits(4);
  const char separator = in.peek();
  if (!year || (separator != '-' && separator != '/') || !in.Take(separator)) return std::nullopt;
  const auto month = in.Digits(2);
  if (!month || !in.Take(separator)) return std::nullopt;
  const auto day = in.Digits(2);
  if (!day || (!in.Take('T') && !in.Take(' '))) return std::nullopt;
  const auto clock = ReadClock(in);
  if (!clock) return std::nullopt;
  auto time = Assemble({*year, *month, *day}, *clock, Timestamp::Date::kFull);
  if (!time) return std::nullopt;
  if (const auto offset = ReadZone(in)) {
    time->at -= *offset;
    time->zone_known = true;
  }
  return ParsedTime{*time, in.position()};
}

/// `04-05 06:07:08`, as vLLM prints it.
std::optional<ParsedTime> ParseMonthDay(std::string_view text) {
  Reader in(text);
  const auto month = in.Digits(2);
  if (!month || !in.Take('-')) return std::nullopt;
  const auto day = in.Digits(2);
  if (!day || !in.Take(' ')) return std::nullopt;
  const auto clock = ReadClock(in);
  if (!clock) return std::nullopt;
  const auto time = Assemble({kYearless, *month, *day}, *clock, Timestamp::Date::kNoYear);
  return time ? std::optional(ParsedTime{*time, in.position()}) : std::nullopt;
}

/// Index of a three-letter name at the front, or nothing.
std::optional<int> ReadName(Reader& in, std::string_view names) {
  for (std::size_t i = 0; i < names.size(); i += 3) {
    if (in.TakeWord(names.substr(i, 3))) return static_cast<int>(i / 3);
  }
  return std::nullopt;
}

/// `Apr  5 06:07:08`, `Sat Apr  5 06:07:08 2031`, `Sat Apr  5 06:07:08 UTC 2031`.
std::optional<ParsedTime> ParseNamed(std::string_view text) {
  Reader in(text);
  const bool weekday = ReadName(in, "MonTueWedThuFriSatSun").has_value();
  if (weekday && !in.Take(' ')) return std::nullopt;
  const auto month = ReadName(in, "JanFebMarAprMayJunJulAugSepOctNovDec");
  if (!month || !in.Take(' ')) return std::nullopt;
  in.Take(' ');
  auto day = in.Digits(2);
  if (!day) day = in.Digits(1);
  if (!day || !in.Take(' ')) return std::nullopt;
  const auto clock = ReadClock(in);
  if (!clock) return std::nullopt;

  // Behind a time without weekday a number may be anything, such as syslog's host.
  Reader ahead = in;
  const bool utc = weekday && ahead.TakeWord(" UTC");
  const auto year = weekday && ahead.Take(' ') ? ahead.Digits(4) : std::nullopt;
  const bool has_year = year && !IsDigit(ahead.peek());
  if (has_year) in = ahead;
  auto time = Assemble({has_year ? *year : kYearless, *month + 1, *day}, *clock,
                       has_year ? Timestamp::Date::kFull : Timestamp::Date::kNoYear);
  if (!time) return std::nullopt;
  time->zone_known = has_year && utc;
  return ParsedTime{*time, in.position()};
}

std::optional<ParsedTime> ParseBareClock(std::string_view text) {
  Reader in(text);
  const auto clock = ReadClock(in);
  if (!clock) return std::nullopt;
  return ParsedTime{Timestamp{.at = std::chrono::sys_days() + clock->since_midnight,
                              .date = Timestamp::Date::kNone,
                              .resolution = clock->resolution},
                    in.position()};
}

/// month * 100 + day in `digits` digits, a blank, a clock.
std::optional<ParsedTime> ParsePacked(std::string_view text, std::size_t digits) {
  Reader in(text);
  const auto packed = in.Digits(digits);
  if (!packed || !in.Take(' ')) return std::nullopt;
  const auto clock = ReadClock(in);
  if (!clock) return std::nullopt;
  const auto time = Assemble({kYearless, *packed / 100, *packed % 100}, *clock, Timestamp::Date::kNoYear);
  return time ? std::optional(ParsedTime{*time, in.position()}) : std::nullopt;
}

}  // namespace

std::optional<ParsedTime> ParseTime(std::string_view text) {
  if (text.size() < 8) return std::nullopt;
  if (!IsDigit(text[0])) return text[0] >= 'A' && text[0] <= 'W' && text[3] == ' ' ? ParseNamed(text) : std::nullopt;
  if (text[2] == ':') return ParseBareClock(text);
  if (text[2] == '-') return ParseMonthDay(text);
  return ParseIso(text);
}

std::optional<ParsedTime> ParseC10Time(std::string_view text) {
  auto parsed = ParsePacked(text, text.size() > 3 && text[3] == ' ' ? 3 : 4);
  if (!parsed) return std::nullopt;
  parsed->time.at = std::chrono::floor<seconds>(parsed->time.at);
  parsed->time.resolution = seconds(1);
  return parsed;
}

std::optional<ParsedTime> ParseGlogTime(std::string_view text) {
  auto parsed = ParsePacked(text, 4);
  if (!parsed) return std::nullopt;
  // Python's logging counts milliseconds; the last three of its six digits are always 000.
  const bool whole_ms = parsed->time.at == std::chrono::floor<std::chrono::milliseconds>(parsed->time.at);
  if (whole_ms) parsed->time.resolution = std::max<nanoseconds>(parsed->time.resolution, std::chrono::milliseconds(1));
  return parsed;
}

std::string FormatClock(const Timestamp& time) {
  const auto whole = std::chrono::floor<seconds>(time.at);
  const std::chrono::hh_mm_ss clock(whole - std::chrono::floor<std::chrono::days>(whole));
  return fmt::format("{:02}:{:02}:{:02}", clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

std::string FormatTime(const Timestamp& time) {
  using namespace std::chrono;
  const year_month_day civil(floor<days>(time.at));
  std::string text;
  if (time.date == Timestamp::Date::kFull) text = fmt::format("{:04}-", static_cast<int>(civil.year()));
  if (time.date != Timestamp::Date::kNone) {
    text += fmt::format("{:02}-{:02}T", static_cast<unsigned>(civil.month()), static_cast<unsigned>(civil.day()));
  }
  text += FormatClock(time);

  std::size_t digits = 0;
  for (nanoseconds unit = seconds(1); unit > time.resolution && digits < 9; unit /= 10) ++digits;
  if (digits > 0) {
    text += '.';
    text += fmt::format("{:09}", (time.at - floor<seconds>(time.at)).count()).substr(0, digits);
  }
  if (time.zone_known) text += 'Z';
  return text;
}

}  // namespace inquest
