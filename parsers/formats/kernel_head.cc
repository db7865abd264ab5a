// The head of a kernel message: stamps, priorities, callers and hosts, as dmesg, journalctl and syslog put them there.
// Format:  any of these, in any order, as often as they come
//            [12345.678901]   [    3.104501 <    0.000012>]   [  +0.000012]     dmesg, dmesg -d
//            [Sat Apr  5 06:07:08 2031]   2031-04-05T06:07:08,123456+00:00      dmesg -T, --time-format iso
//            [2031-04-05T06:07:08.123456Z]:   [六 4月  5 06:07:08 2031]             Talos, fabric manager, dmesg -T in
//            Chinese <6>   4,1234,12345678901,-;   kern  :warn  :                       dmesg -r, /dev/kmsg, dmesg -x
//            [    T41234]   [    C3]                                            CONFIG_PRINTK_CALLER
//            node017 kernel:   1932904028.123456                                journalctl -o short-monotonic,
//            short-unix "msg": "   MESSAGE=   /var/log/syslog:   >                         JSON, export, grep, mail
// Clock:   since boot in the bracket; local time or UTC where a date is printed.
// Not read: dmesg's relative times (`[Apr 5 06:07]`), which have no second.
#include "core/ascii.h"
#include "parsers/formats/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/pattern.h"
#include "parsers/formats/nccl.h"

namespace inquest {
namespace {

using std::chrono::microseconds;

/// `12345` and `678901` of a stamp, digits missing at the end counting as 0.
std::optional<microseconds> Uptime(std::optional<std::int64_t> seconds, std::string_view fraction) {
  constexpr std::int64_t kCenturies = 10'000'000'000;
  if (!seconds || *seconds > kCenturies) return std::nullopt;
  std::int64_t micros = 0;
  for (std::size_t i = 0; i < 6; ++i) micros = micros * 10 + (i < fraction.size() ? fraction[i] - '0' : 0);
  return microseconds(*seconds * 1'000'000 + micros);
}

/// How many digits stand at `at`.
std::size_t DigitsAt(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && IsDigit(text[end])) ++end;
  return end - at;
}

std::size_t SkipBlanks(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] == ' ') ++at;
  return at;
}

/// `[   12.345678] `, `[    3.104501 <    0.000012>] `. By hand: it stands in front of nearly every line.
std::size_t EatUptime(std::string_view text, KernelHead& head) {
  const std::size_t begin = SkipBlanks(text, 1), digits = DigitsAt(text, begin), point = begin + digits;
  const std::size_t fraction =
      digits >= 1 && digits <= 10 && text.substr(point, 1) == "." ? DigitsAt(text, point + 1) : 0;
  if (fraction < 1 || fraction > 6) return 0;
  std::size_t end = point + 1 + fraction;
  if (const std::size_t delta = SkipBlanks(text, end); text.substr(delta, 1) == "<") {
    const std::size_t close = text.find('>', delta);
    if (close == std::string_view::npos) return 0;
    end = close + 1;
  }
  if (text.substr(end, 1) != "]") return 0;
  std::int64_t seconds = 0;
  std::from_chars(text.data() + begin, text.data() + point, seconds);
  if (!head.uptime) head.uptime = Uptime(seconds, text.substr(point + 1, fraction));
  return end + (text.substr(end + 1, 1) == " " ? 2 : 1);
}

std::size_t EatStamp(std::string_view text, KernelHead& head) {
  static const Pattern kDelta(R"(^\[(?: *<?\+? *\d+\.\d+>?|[A-Z][a-z]{2} +\d+ \d\d:\d\d)\] ?)");
  static const Pattern kCaller(R"(^\[ *[TC]\d+\] ?)");
  static const Pattern kChinese(R"(^\[[^\]\d]{0,24}(\d{1,2})月 +(\d{1,2}) (\d\d:\d\d:\d\d) (\d{4})\] ?)");
  if (const std::size_t size = EatUptime(text, head)) return size;
  if (const auto delta = kDelta.Search(text)) return delta->text(0).size();
  if (const auto caller = kCaller.Search(text)) return caller->text(0).size();
  if (const auto chinese = kChinese.Search(text)) {  // dmesg -T translates weekday and month
    const auto date = ParseTime(
        fmt::format("{}-{:0>2}-{:0>2} {}", chinese->text(4), chinese->text(1), chinese->text(2), chinese->text(3)));
    if (date && !head.at) head.at = date->time;
    return chinese->text(0).size();
  }
  const auto date = ParseTime(text.substr(1));
  if (!date || text.substr(1 + date->size, 1) != "]") return 0;
  if (!head.at) head.at = date->time;
  std::size_t size = date->size + 2;
  if (text.substr(size, 1) == ":") ++size;
  return std::min(size + 1, text.size());
}

std::size_t EatKmsg(std::string_view text, KernelHead& head) {
  static const Pattern kKmsg(R"(^\d{1,4},\d+,(\d{1,16}),[-c+][^;]{0,40};)");
  if (!IsDigit(text[0])) return 0;
  const auto match = kKmsg.Search(text);
  if (!match) return 0;
  if (const auto micros = match->number(1); micros && !head.uptime) head.uptime = microseconds(*micros);
  return match->text(0).size();
}

std::size_t EatTime(std::string_view text, KernelHead& head) {
  static const Pattern kUnix(R"(^(\d{9,10})\.(\d{6}) )");
  const bool digits = IsDigit(text[0]);
  if (const auto match = digits ? kUnix.Search(text) : std::nullopt) {
    const auto since = Uptime(match->number(1), match->text(2));
    if (since && !head.at)
      head.at = Timestamp{.at = std::chrono::sys_time<std::chrono::nanoseconds>(*since),
                          .zone_known = true,
                          .resolution = microseconds(1)};
    return match->text(0).size();
  }
  const auto date = ParseTime(text);
  if (!date || date->time.date == Timestamp::Date::kNone || text.substr(date->size, 1) != " ") return 0;
  if (!head.at) head.at = date->time;
  return date->size + 1;
}

/// `kernel: `, `node017 kernel: `.
std::size_t EatKernel(std::string_view text, KernelHead& head) {
  constexpr std::string_view kTag = "kernel: ";
  if (text.starts_with(kTag)) return kTag.size();
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos || blank == 0 || !text.substr(blank + 1).starts_with(kTag)) return 0;
  const auto is_letter = [](char c) { return IsDigit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
  const auto in_name = [&](char c) { return is_letter(c) || c == '_' || c == '.' || c == '-'; };
  const std::string_view name = text.substr(0, blank);
  if (!is_letter(name[0]) || !std::all_of(name.begin(), name.end(), in_name)) return 0;
  if (head.host.empty()) head.host = name;
  return blank + 1 + kTag.size();
}

std::size_t EatName(std::string_view text, KernelHead& head) {
  static const Pattern kDecoded(R"(^(?:kern|user|daemon|syslog|auth|local\d) *: *[a-z]+ *: )");
  static const Pattern kGrep(R"(^(?:/[\w./-]+|[\w-]+\.(?:log|txt)|dmesg|syslog|messages)(?:\.\d)?:(?:\d+:)?)");
  if (const std::size_t size = EatKernel(text, head)) return size;
  if (const auto decoded = kDecoded.Search(text)) return decoded->text(0).size();
  if (const auto grep = kGrep.Search(text)) return grep->text(0).size();
  return 0;
}

std::size_t EatField(std::string_view text, KernelHead& head) {
  static const Pattern kJson(R"re(^[ \t]*"(?:msg|MESSAGE)" ?: ?")re");
  const bool quoted = text[0] == '"' || text[0] == ' ' || text[0] == '\t';
  if (const auto json = quoted ? kJson.Search(text) : std::nullopt) return json->text(0).size();
  if (!text.starts_with("MESSAGE=")) return 0;
  head.exported = true;
  return 8;
}

/// `<6>`, `> `, blanks.
std::size_t EatPriority(std::string_view text) {
  if (text[0] == ' ' || text[0] == '\t') return std::min(text.find_first_not_of(" \t"), text.size());
  if (text.starts_with("> ")) return 2;
  const std::size_t digits = text[0] == '<' ? DigitsAt(text, 1) : 0;
  return digits >= 1 && digits <= 3 && text.substr(1 + digits, 1) == ">" ? digits + 2 : 0;
}

std::size_t EatOne(std::string_view text, KernelHead& head) {
  if (const std::size_t field = EatField(text, head)) return field;
  if (const std::size_t size = EatPriority(text)) return size;
  if (text[0] == '[') return EatStamp(text, head);
  for (const auto eat : {&EatKmsg, &EatTime, &EatName})
    if (const std::size_t size = eat(text, head)) return size;
  return 0;
}

}  // namespace

KernelHead ReadKernelHead(std::string_view text) {
  constexpr int kMostParts = 10;
  KernelHead head;
  head.message = text;
  for (int part = 0; part < kMostParts && !head.message.empty(); ++part) {
    const std::size_t size = EatOne(head.message, head);
    if (size == 0) break;
    head.message.remove_prefix(std::min(size, head.message.size()));
  }
  // A console's login prompt, or a collector's own words, stand before the stamp.
  static const Pattern kInside(R"(\[ *(\d{1,10})\.(\d{6})\] )");
  if (!head.uptime)
    if (const auto stamp = kInside.Search(text.substr(0, 256))) head.uptime = Uptime(stamp->number(1), stamp->text(2));
  return head;
}

std::string KernelBusId(std::string_view text) {
  std::string address(text);
  if (address.find('.') == std::string::npos) address += ".0";
  return ParseBusId(address).value_or(std::string());
}

Event KernelEvent(const Record& record, const KernelHead& head, What what) {
  Event event = EventFrom(record, std::move(what));
  if (head.at && (!event.at || event.at->date != Timestamp::Date::kFull)) event.at = head.at;
  if (!event.origin.host && !head.host.empty())
    event.origin.host = Known<std::string>{std::string(head.host), Basis::kEnvelope, {}};
  event.origin.pid.reset();  // the kernel wrote it
  event.origin.rank.reset();
  event.origin.local_rank.reset();
  return event;
}

}  // namespace inquest
