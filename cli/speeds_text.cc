// A matrix for as many ranks as a screen holds; above that the slow ones alone.
#include "cli/speeds_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "replay/judgement.h"
#include "report/terminal.h"

namespace inquest {
namespace {

constexpr int kMostColumns = 16;
constexpr std::size_t kShown = 24;

std::string Speed(const SpeedSample& sample) { return fmt::format("{:.3g}", GigabytesPerSecond(sample)); }

std::string Matrix(const Speeds& speeds) {
  const auto ranks = static_cast<int>(speeds.hosts.size());
  std::uint64_t largest = 0;
  for (const LinkSpeed& link : speeds.links)
    for (const SpeedSample& sample : link.samples) largest = std::max(largest, sample.bytes);
  if (ranks > kMostColumns || largest == 0) return "";
  std::string text = fmt::format("GB/s at {}, from row to column\n{:>6}", SizeText(largest), "");
  for (int to = 0; to < ranks; ++to) text += fmt::format("{:>8}", to);
  for (int from = 0; from < ranks; ++from) {
    text += fmt::format("\n{:>6}", from);
    for (int to = 0; to < ranks; ++to) {
      const auto link = std::ranges::find_if(
          speeds.links, [&](const LinkSpeed& one) { return one.from == from && one.to == to && one.port.empty(); });
      const bool has = link != speeds.links.end() && !link->samples.empty() && link->samples.back().bytes == largest;
      text += fmt::format("{:>8}", from == to ? "" : has ? Speed(link->samples.back()) : "-");
    }
  }
  return text + "\n\n";
}

std::string Name(const LinkSpeed& link) {
  return fmt::format("{}->{}{}", link.from, link.to, link.port.empty() ? "" : " " + link.port);
}

}  // namespace

std::string SpeedsText(const SpeedReport& report, const TextStyle& style) {
  const SpeedsCompared& compared = report.compared;
  std::string text;
  for (const std::string& row : Wrap(Sanitize((compared.now.interrupted ? "Interrupted. " : "") + compared.finding),
                                     std::max(style.width, 40), 12))
    text += row + "\n";
  text += "\n" + Matrix(compared.now);
  std::size_t shown = 0;
  for (const std::size_t index : compared.slow) {
    const LinkSpeed& link = compared.now.links[index];
    if (shown++ == 0) text += fmt::format("  {:<20} {:>10} {:>10} {:>10}\n", "slower", "size", "GB/s", "before");
    if (shown <= kShown)
      text += fmt::format("  {:<20} {:>10} {:>10} {:>10}\n", Name(link), SizeText(link.again->bytes),
                          Speed(*link.again), Speed(*link.before));
  }
  if (shown > kShown) text += fmt::format("  and {} more in --format json\n", shown - kShown);
  for (const LinkSpeed& link : compared.now.links)
    if (!link.error.empty())
      text += Cut(Sanitize(fmt::format("  {:<20} does not pass: {}", Name(link), link.error)), style.width) + "\n";
  std::string_view last;
  for (const LinkSpeed& link : compared.now.links) {
    if (link.port.empty() || link.samples.empty()) continue;
    if (link.port != last) text += fmt::format("  {:<20}", Sanitize(link.port));
    last = link.port;
    text += fmt::format(" {}->{} {} GB/s", link.from, link.to, Speed(link.samples.back()));
    if (&link == &compared.now.links.back() || (&link + 1)->port != link.port) text += "\n";
  }
  for (const std::string& note : compared.notes) text += Cut(Sanitize("  " + note), style.width) + "\n";
  if (!report.saved.empty()) text += Cut(Sanitize("  written to " + report.saved), style.width) + "\n";
  return text + "\n";
}

}  // namespace inquest
