// A line of `journalctl -o json`: one entry of the journal, an object of strings.
#include "parsers/formats/journal_line.h"

#include <simdjson.h>
#include <fmt/format.h>

#include <charconv>

namespace inquest {
namespace {

std::string_view FieldOf(const simdjson::dom::element& entry, const char* key) {
  std::string_view text;
  return entry[key].get(text) == simdjson::SUCCESS ? text : std::string_view();
}

std::optional<std::int64_t> NumberAt(const simdjson::dom::element& entry, const char* key) {
  const std::string_view text = FieldOf(entry, key);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// A message that is not plain text, as one with a colour code or a blank at its end, is an array of bytes; one that is
/// too long is null, and not read.
std::optional<std::string> MessageOf(const simdjson::dom::element& entry) {
  std::string_view text;
  if (entry["MESSAGE"].get(text) == simdjson::SUCCESS) return std::string(text);
  simdjson::dom::array bytes;
  if (entry["MESSAGE"].get(bytes) != simdjson::SUCCESS) return std::nullopt;
  std::string out;
  for (const simdjson::dom::element byte : bytes) {
    std::uint64_t value = 0;
    if (byte.get(value) != simdjson::SUCCESS || value > 255) return std::nullopt;
    if (value != 0) out += static_cast<char>(value);
  }
  return out;
}

}  // namespace

std::optional<JournalLine> ReadJournalLine(std::string_view line) {
  constexpr std::int64_t kLatest = 7'000'000'000'000'000, kLongestDelay = 86'400'000'000;  // microseconds; 2191, a day
  if (!line.starts_with('{') || line.find("\"MESSAGE\"") == std::string_view::npos ||
      line.find("\"__REALTIME_TIMESTAMP\"") == std::string_view::npos)
    return std::nullopt;
  static thread_local simdjson::dom::parser parser;  // keeps its buffers from line to line
  const simdjson::padded_string padded(line);
  simdjson::dom::element entry;
  if (parser.parse(padded).get(entry) != simdjson::SUCCESS) return std::nullopt;
  const auto message = MessageOf(entry);
  if (!message) return std::nullopt;
  JournalLine out;
  out.host = FieldOf(entry, "_HOSTNAME");
  if (const auto micros = NumberAt(entry, "__REALTIME_TIMESTAMP"); micros && *micros > 0 && *micros < kLatest)
    out.at = Timestamp{.at = std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::microseconds(*micros)),
                       .zone_known = true,
                       .resolution = std::chrono::microseconds(1)};
  // The kernel's own stamp, since boot. journald reads late while a host hangs, and by how much its two clocks tell.
  const auto stamped = NumberAt(entry, "_SOURCE_MONOTONIC_TIMESTAMP"), read = NumberAt(entry, "__MONOTONIC_TIMESTAMP");
  const bool from_kernel = FieldOf(entry, "_TRANSPORT") == "kernel" && stamped && *stamped >= 0 && *stamped < kLatest;
  if (from_kernel && out.at && read && *read >= *stamped && *read - *stamped < kLongestDelay)
    out.at->at -= std::chrono::microseconds(*read - *stamped);
  const std::string_view tag = FieldOf(entry, "SYSLOG_IDENTIFIER");
  const auto pid = NumberAt(entry, "_PID");
  if (tag.starts_with("python") || tag.starts_with("torchrun")) {
    out.pid = pid;
  } else if (!tag.empty()) {
    out.text = std::string(tag);
    if (pid && tag != "kernel") out.text.append("[").append(std::to_string(*pid)).append("]");
    out.text += ": ";
  }
  if (from_kernel) out.text += fmt::format("[{:5}.{:06}] ", *stamped / 1'000'000, *stamped % 1'000'000);
  out.text += message->substr(0, message->find('\n'));
  return out;
}

}  // namespace inquest
