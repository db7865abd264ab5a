// The report for a browser, as a file beside what is printed.
#include "cli/html_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cli/report_file.h"
#include "report/html/page.h"

namespace inquest {
namespace {

namespace fs = std::filesystem;

ReportFile FileOf(const std::string& path) { return {.path = path, .option = "--html", .mark = "content=\"inquest\""}; }

/// The lines round one, in a few KiB: those that reach beyond are not shown. Nothing where the file is not what was
/// read: compressed, a member of an archive, in another encoding, or changed since.
std::vector<NearbyLine> ReadNear(const InputSummary& input, const SourcePos& where, std::string_view text) {
  constexpr std::uint64_t kBytes = 6 << 10, kLines = 6, kTold = 40;
  std::error_code unreadable;
  if (!fs::is_regular_file(input.path, unreadable) || fs::file_size(input.path, unreadable) != input.bytes) return {};
  std::ifstream stream(input.path, std::ios::binary);
  const std::uint64_t begin = where.offset > kBytes ? where.offset - kBytes : 0;
  std::string bytes(2 * kBytes, '\0');
  stream.seekg(static_cast<std::streamoff>(begin));
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(stream.gcount()));
  const bool to_end = bytes.size() < 2 * kBytes;
  std::size_t at = where.offset - begin;
  if (at >= bytes.size()) return {};
  std::uint64_t number = where.InputLine();
  const auto before = [&](std::size_t place) { return place == 0 ? std::string::npos : bytes.rfind('\n', place - 1); };
  std::size_t start = before(at) == std::string::npos ? 0 : before(at) + 1;
  if (start == 0 && begin > 0) return {};
  const std::string_view line = std::string_view(bytes).substr(start, bytes.find('\n', start) - start);
  if (line.find(text.substr(0, std::min<std::size_t>(text.find('\n'), kTold))) == std::string_view::npos) return {};
  for (std::uint64_t i = 0; i < kLines && start > 0; ++i) {
    const std::size_t end = before(start - 1);
    if (end == std::string::npos && begin > 0) break;  // its head is further in front
    start = end == std::string::npos ? 0 : end + 1;
    --number;
  }
  std::vector<NearbyLine> lines;
  while (start < bytes.size() && number <= where.InputLine() + kLines) {
    const std::size_t end = bytes.find('\n', start);
    if (end == std::string::npos && !to_end && number != where.InputLine()) break;
    std::string one = bytes.substr(start, end == std::string::npos ? end : end - start);
    if (one.ends_with('\r')) one.pop_back();
    lines.push_back({number++, std::move(one)});
    if (end == std::string::npos) break;
    start = end + 1;
  }
  return lines;
}

}  // namespace

std::optional<Error> CheckHtmlFile(const std::string& path, const std::vector<std::string>& inputs) {
  return CheckReportFile(FileOf(path), inputs);
}

std::optional<Error> WriteHtmlFile(const std::string& path, const Analysis& analysis, const ReportContext& context) {
  const Timeline& timeline = analysis.timeline;
  const auto near = [&](const SourcePos& where, std::string_view text) {
    return where.input < timeline.inputs.size() ? ReadNear(timeline.inputs[where.input], where, text)
                                                : std::vector<NearbyLine>();
  };
  return WriteReportFile(FileOf(path),
                         [&](const Sink& sink) { RenderHtml(timeline, analysis.verdict, context, near, sink); });
}

}  // namespace inquest
