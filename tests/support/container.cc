// A job's lines as a container runtime keeps them: wrapped, cut, two streams in one file.
#include "tests/support/container.h"

#include <fmt/format.h>

#include <array>
#include <deque>

namespace inquest {
namespace {

/// As moby's jsonlog writes a text.
std::string Json(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if ((c >= 0 && c < 0x20) || c == '<' || c == '>' || c == '&')
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out;
}

std::string Entry(Runtime runtime, std::size_t number, int stream, std::string_view text, bool last) {
  const std::string time =
      fmt::format("2031-04-05T{:02}:{:02}:{:02}.5Z", number / 3600 % 24, number / 60 % 60, number % 60);
  const char* name = stream == 0 ? "stdout" : "stderr";
  if (runtime == Runtime::kCri) return fmt::format("{} {} {} {}\n", time, name, last ? 'F' : 'P', text);
  return fmt::format("{{\"log\":\"{}{}\",\"stream\":\"{}\",\"time\":\"{}\"}}\n", Json(text), last ? "\\n" : "", name,
                     time);
}

}  // namespace

Wrapped Wrap(const std::vector<std::string>& lines, Runtime runtime, std::size_t chunk, std::mt19937& random) {
  Wrapped out;
  std::array<std::deque<std::string_view>, 2> streams;
  for (const std::string& line : lines) streams[random() % 2].push_back(line);
  struct Line {
    std::size_t number = 0, at = 0;
    bool open = false;
  };
  std::array<Line, 2> now;
  for (std::uint64_t written = 1; !streams[0].empty() || !streams[1].empty(); ++written) {
    const int stream = streams[0].empty() ? 1 : streams[1].empty() ? 0 : static_cast<int>(random() % 2);
    auto& [number, at, open] = now[static_cast<std::size_t>(stream)];
    auto& waiting = streams[static_cast<std::size_t>(stream)];
    const std::string_view line = waiting.front();
    if (!open) {
      number = out.lines.size();
      at = 0;
      out.lines.push_back(written);
      out.whole += Entry(runtime, number, stream, line, true);
    }
    open = line.size() - at > chunk;
    out.cut += Entry(runtime, number, stream, line.substr(at, chunk), !open);
    at += chunk;
    if (!open) waiting.pop_front();
  }
  return out;
}

}  // namespace inquest
