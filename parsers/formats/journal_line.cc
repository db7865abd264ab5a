// A line of `journalctl -o json`: one entry of the journal, an object of strings.
#include "parsers/formats/journal_line.h"

#include <simdjson.h>

#include <charconv>

namespace inquest {
namespace {

std::string_view TextAt(const simdjson::dom::element& entry, const char* key) {
  std::string_view text;
  return entry[key].get(text) == simdjson::SUCCESS ? text : std::string_view();
}

std::optional<std::int64_t> NumberAt(const simdjson::dom::element& entry, const char* key) {
  const std::string_view text = TextAt(entry, key);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<JournalLine> ReadJournalLine(std::string_view line) {
  constexpr std::int64_t kLatest = 7'000'000'000'000'000;  // microseconds; 2191
  if (!line.starts_with('{') || line.find("\"MESSAGE\"") == std::string_view::npos || line.find("\"__REALTIME_TIMESTAMP\"") == std::string_view::npos)
    return std::nullopt;
  simdjson::dom::parser parser;
  const simdjson::padded_string padded(line);
  simdjson::dom::element entry;
  std::string_view message;
  // A message that is not UTF-8 is an array of bytes, one that is too long is null: neither is read.
  if (parser.parse(padded).get(entry) != simdjson::SUCCESS || entry["MESSAGE"].get(message) != simdjson::SUCCESS) return std::nullopt;
  JournalLine out;
  out.host = TextAt(entry, "_HOSTNAME");
  if (const auto micros = NumberAt(entry, "__REALTIME_TIMESTAMP"); micros && *micros > 0 && *micros < kLatest)
    out.at = Timestamp{.at = std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::microseconds(*micros)),
                       .zone_known = true, .resolution = std::chrono::microseconds(1)};
  const std::string_view tag = TextAt(entry, "SYSLOG_IDENTIFIER");
  const auto pid = NumberAt(entry, "_PID");
  if (tag.starts_with("python") || tag.starts_with("torchrun")) {
    out.pid = pid;
  } else if (!tag.empty()) {
    out.text = std::string(tag);
    if (pid && tag != "kernel") out.text.append("[").append(std::to_string(*pid)).append("]");
    out.text += ": ";
  }
  out.text += message.substr(0, message.find('\n'));
  return out;
}

}  // namespace inquest
