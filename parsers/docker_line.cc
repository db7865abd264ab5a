// An entry of docker's json-file logger, one a line.
#include "parsers/docker_line.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "core/ascii.h"

namespace inquest {
namespace {

/// Docker cuts what a process writes into chunks of this size; only the last of a line ends in `\n`. A shorter text
/// without
/// `\n` is the end of a stream (docker 17), or was written by a collector that strips them all.
constexpr std::size_t kChunk = 16 * 1024;

void AppendUtf8(std::string& out, std::uint32_t code) {
  const auto byte = [&](std::uint32_t value) { out += static_cast<char>(static_cast<unsigned char>(value)); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    byte(0xE0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3F));
  } else {
    byte(0xF0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3F));
    byte(0x80 | (code >> 6 & 0x3F));
  }
  byte(0x80 | (code & 0x3F));
}

std::optional<std::uint32_t> FourHex(std::string_view digits) {
  std::uint32_t value = 0;
  if (digits.size() < 4) return std::nullopt;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + 4, value, 16);
  return error == std::errc() && end == digits.data() + 4 ? std::optional(value) : std::nullopt;
}

/// A JSON string from behind its opening quote, into `out`.
struct JsonString {
  std::size_t size = 0;  ///< bytes read, closing quote included if there is one
  bool closed = false;
};
JsonString ReadJsonString(std::string_view in, std::string& out) {
  static constexpr std::string_view kEscapes = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  out.clear();
  std::size_t i = 0, quote = in.find('"');
  while (true) {
    const std::size_t end = std::min(quote, in.size());
    const std::size_t escape = std::min(in.substr(0, end).find('\\', i), end);
    out.append(in, i, escape - i);
    i = escape;
    if (i == end) break;
    if (const auto code = in.substr(i + 1, 1) == "u" ? FourHex(in.substr(i + 2)) : std::nullopt) {
      i += 5;
      const auto low = in.substr(i + 1, 2) == "\\u" ? FourHex(in.substr(i + 3)) : std::nullopt;
      const bool pair = *code >> 10 == 0x36 && low && *low >> 10 == 0x37;
      AppendUtf8(out, pair ? 0x10000 + ((*code & 0x3FF) << 10 | (*low & 0x3FF)) : *code);
      if (pair) i += 6;
    } else if (const std::size_t which = i + 1 < in.size() ? kEscapes.find(in[i + 1]) : kNowhere; which != kNowhere) {
      out += kMeanings[which];
      ++i;
    }
    ++i;
    if (quote < i) quote = in.find('"', i);
  }
  return {std::min(i + 1, in.size()), i < in.size()};
}

/// The value of the last `"key":"value"`.
std::string_view LastValue(std::string_view text, std::string_view key) {
  constexpr std::size_t kBetween = 2;  // most often it is the only one left, behind `",`
  const bool next = text.size() > kBetween && text.substr(kBetween).starts_with(key);
  const std::size_t at = next ? kBetween : text.rfind(key);
  if (at == kNowhere) return {};
  text.remove_prefix(at + key.size());
  const std::size_t end = text.find('"');
  return end == kNowhere ? std::string_view() : text.substr(0, end);
}

}  // namespace

std::optional<DockerLine> ReadDockerLine(std::string_view line, std::string& scratch) {
  static constexpr std::string_view kHead = "{\"log\":\"", kStream = ",\"stream\":\"";
  if (!line.starts_with(kHead)) return std::nullopt;
  const JsonString log = ReadJsonString(line.substr(kHead.size()), scratch);
  DockerLine out;
  out.text = scratch;
  const bool ended = out.text.ends_with('\n');
  out.partial = log.closed && !ended && out.text.size() >= kChunk;
  std::string_view rest = line.substr(kHead.size() + log.size);
  if (rest.starts_with(kStream)) {
    rest.remove_prefix(kStream.size());
    out.stream = rest.substr(0, std::min(rest.find('"'), rest.size()));
    rest.remove_prefix(out.stream.size());
  }
  out.time = LastValue(rest, "\"time\":\"");
  if (ended) out.text.remove_suffix(1);
  while (ended && out.text.ends_with('\r')) out.text.remove_suffix(1);  // of a terminal
  out.whole = log.closed && line.ends_with('}') && out.text.find('\n') == kNowhere;
  return out;
}

}  // namespace inquest
