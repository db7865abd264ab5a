// Exceptions that a program caught and lived on.
#include "timeline/logged.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/ascii.h"
#include "timeline/shape.h"

namespace inquest {
namespace {

constexpr std::uint64_t kRecordLines = 3;  ///< a record of several lines, in front of its traceback
constexpr std::uint64_t kChainLines = 4;   ///< between two tracebacks of one chain
constexpr std::size_t kRecordsThatShow = 4;

/// How a program's loggers begin their records.
struct LoggerLine {
  std::string head;  ///< without its numbers, names and level, up to the message
  bool complains = false;
  bool tells_of_failure = false;  ///< at whatever level: `INFO ... Retry attempt failed:`
};

bool TellsOfFailure(std::string_view text) {
  constexpr std::array<std::string_view, 6> kWords = {"fail", "Fail", "error", "Error", "xception", "retry"};
  return std::ranges::any_of(kWords, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

/// nullopt: no record, or one without a time, as anybody may print.
std::optional<LoggerLine> LoggerLineOf(const Event& event) {
  constexpr std::size_t kHead = 64, kBehind = 28;
  constexpr std::array<std::pair<std::string_view, bool>, 7> kLevels = {{{"DEBUG", false},
                                                                         {"INFO", false},
                                                                         {"SUCCESS", false},
                                                                         {"WARNING", true},
                                                                         {"ERROR", true},
                                                                         {"CRITICAL", true},
                                                                         {"EXCEPTION", true}}};
  const std::string_view text = event.text, front = text.substr(0, kHead);
  for (const auto& [level, complains] : kLevels) {
    const std::size_t at = front.find(level);
    if (at == std::string_view::npos) continue;
    std::string_view behind = text.substr(at + level.size(), kBehind);
    if ((at > 0 && IsLetter(front[at - 1])) || (!behind.empty() && IsLetter(behind.front()))) continue;
    behind = behind.substr(0, static_cast<std::size_t>(std::ranges::find_if(behind, IsLetter) - behind.begin()));
    std::string head = ShapeOf(front.substr(0, at)) + '|' + ShapeOf(behind);
    if (!event.at && head.find("0:0:0") == std::string::npos) return std::nullopt;
    // Each module of one program has a logger of its own.
    std::erase_if(head, [](char c) { return IsLetter(c) || c == '.' || c == '_'; });
    return LoggerLine{std::move(head), complains, complains || TellsOfFailure(text)};
  }
  return std::nullopt;
}

}  // namespace

std::vector<LineSpan> LoggedAndOutlived(const Timeline& timeline, const Chatter& chatter) {
  std::vector<LineSpan> out;
  if (timeline.KnownRanks() > 1) return out;
  struct Seen {
    std::uint64_t line = 0;
    LoggerLine record;
  };
  struct Logged {
    LineSpan span;
    std::string head;
  };
  std::vector<Logged> logged;
  std::map<std::pair<std::uint32_t, std::string>, std::vector<std::uint64_t>> went_on;  // lines of records, by logger
  std::map<std::string, Seen> last;  // by head: what other programs log may stand in between
  std::uint32_t input = 0;
  bool chained = false;  // the traceback before goes on in the next
  for (const Event& event : timeline.events) {
    if (event.where.input != input) last.clear();
    input = event.where.input;
    if (const auto* raised = std::get_if<ExceptionRaised>(&event.what)) {
      const std::uint64_t begin = raised->begin.line;
      const bool of_chain = chained && !logged.empty() && logged.back().span.input == input &&
                            logged.back().span.end < begin &&
                            chatter.Apart(input, logged.back().span.end, begin) <= kChainLines;
      chained = raised->chained_first;
      const Seen* teller = nullptr;
      for (const auto& [head, seen] : last)
        if (seen.record.tells_of_failure && seen.line < begin &&
            chatter.Apart(input, seen.line, begin) <= kRecordLines && (teller == nullptr || teller->line < seen.line))
          teller = &seen;
      if (teller != nullptr)
        logged.push_back({{input, teller->line, event.where.line}, teller->record.head});
      else if (of_chain)
        logged.back().span.end = event.where.line;
      continue;
    }
    std::optional<LoggerLine> record = LoggerLineOf(event);
    if (!record) continue;
    if (!record->complains) went_on[{input, record->head}].push_back(event.where.line);
    std::string head = record->head;
    last.insert_or_assign(std::move(head), Seen{event.where.line, *std::move(record)});
  }
  for (const Logged& one : logged) {
    const auto lines = went_on.find({one.span.input, one.head});
    if (lines == went_on.end()) continue;
    const auto behind = std::ranges::upper_bound(lines->second, one.span.end);
    if (lines->second.end() - behind >= static_cast<std::ptrdiff_t>(kRecordsThatShow)) out.push_back(one.span);
  }
  return out;
}

}  // namespace inquest
