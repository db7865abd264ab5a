// Cited lines as they stand in their files, with what stands round them.
#include "report/html/parts.h"
#include "report/terminal.h"
#include "report/words.h"

namespace inquest {
namespace {

// A screen each, and together far less than a page may hold.
constexpr std::size_t kMostExcerpts = 96;
constexpr int kCitedColumns = 320;

}  // namespace

std::string CitedLines::Near(const SourcePos& where, std::string_view text) {
  if (!near_ || excerpts_ >= kMostExcerpts) return {};
  const std::vector<NearbyLine> lines = near_(where, text);
  if (lines.size() < 2) return {};
  ++excerpts_;
  std::string out = "<ol class=\"near\">";
  for (const NearbyLine& line : lines)
    out += Markup("<li value=\"{}\"{}><code>{}</code></li>", line.line,
                  Html{line.line == where.InputLine() ? " class=\"this\"" : ""}, Cut(Reveal(line.text), kCitedColumns))
               .markup;
  return out + "</ol>";
}

bool CitedLines::IsShown(EventIndex event) const {
  const SourcePos& where = timeline_.events[event].where;
  return shown_.contains({where.input, where.InputLine()});
}

Html CitedLines::Show(EventIndex index) {
  const Event& event = timeline_.events[index];
  const auto rank = timeline_.RankOf(event);
  return Show(Citation{.event = index,
                       .role = LineRole::kContext,
                       .where = event.where,
                       .at = event.at,
                       .rank = rank ? std::optional(rank->value) : std::nullopt,
                       .text = event.text});
}

Html CitedLines::Show(const Citation& citation) {
  const SourcePos& where = citation.where;
  const bool first = shown_.insert({where.input, where.InputLine()}).second;
  Html head = Markup("<span class=\"place\">{}</span>", PlaceOf(timeline_, where));
  if (citation.at) head.markup += Markup(" <time>{}</time>", FormatClock(*citation.at)).markup;
  if (citation.rank) head.markup += Markup(" <span class=\"rank\">rank {}</span>", citation.rank->value).markup;
  if (citation.role == LineRole::kCause) head.markup += " <span class=\"first\">first cause</span>";
  head.markup += Markup("<code>{}</code>", citation.text).markup;
  const Html id = first ? Markup(" id=\"l{}-{}\"", where.input, where.InputLine()) : Html{};
  const std::string near = first ? Near(where, citation.text) : "";
  const Html kind{std::string(Name(citation.role))};
  if (near.empty()) return Markup("<div class=\"line {}\"{} tabindex=\"-1\">{}</div>", kind, id, head);
  return Markup("<details class=\"line {}\"{}><summary>{}</summary>{}</details>", kind, id, head, Html{near});
}

}  // namespace inquest
