// Programs that were edited between two of their failures.
#include "timeline/edited.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>

namespace inquest {
namespace {

constexpr std::size_t kMostLines = 256;  ///< from which one function is called; nobody edits a program more often

/// A frame `file:line in function` without its line, and that line.
struct Frame {
  std::string_view file, line, function;
};

std::optional<Frame> Read(std::string_view frame) {
  constexpr std::string_view kIn = " in ";
  const std::size_t in = frame.rfind(kIn);
  if (in == std::string_view::npos) return std::nullopt;
  const std::size_t colon = frame.rfind(':', in);
  if (colon == std::string_view::npos) return std::nullopt;
  return Frame{frame.substr(0, colon), frame.substr(colon + 1, in - colon - 1), frame.substr(in + kIn.size())};
}

/// Who is called by the module that was started, of one rank; and where.
struct Call {
  std::tuple<std::string_view, std::string_view, std::string_view, std::optional<GlobalRank>> what;
  std::string_view line;
};

/// Of a chain the last traceback counts: those in front of it may come from another call of the same function.
std::optional<Call> OutermostCall(const Event& event) {
  const auto* raised = std::get_if<ExceptionRaised>(&event.what);
  if (raised == nullptr || raised->ignored || raised->chained_first || raised->stack.size() < 2) return std::nullopt;
  const auto caller = Read(raised->stack[0]), called = Read(raised->stack[1]);
  if (!caller || !called || caller->function != "<module>") return std::nullopt;
  std::optional<GlobalRank> rank;
  if (event.origin.rank) rank = event.origin.rank->value;
  return Call{{caller->file, called->file, called->function, rank}, caller->line};
}

}  // namespace

std::vector<std::pair<EventIndex, EventIndex>> EditsBetween(const Timeline& timeline, EventIndex begin,
                                                            EventIndex end) {
  struct Line {
    std::string_view line;
    EventIndex first = 0, last = 0;
  };
  std::map<decltype(Call::what), std::vector<Line>> calls;  // each line once, in the order in which they came
  for (EventIndex i = begin; i < end; ++i) {
    const std::optional<Call> call = OutermostCall(timeline.events[i]);
    if (!call) continue;
    std::vector<Line>& lines = calls[call->what];
    const auto known = std::ranges::find(lines, call->line, &Line::line);
    if (known != lines.end())
      known->last = i;
    else if (lines.size() < kMostLines)
      lines.push_back({call->line, i, i});
  }
  std::vector<std::pair<EventIndex, EventIndex>> out;
  for (const auto& [what, lines] : calls) {
    EventIndex last = lines.front().last;
    for (std::size_t i = 1; i < lines.size(); ++i) {
      if (last < lines[i].first) out.emplace_back(last, lines[i].first);
      last = std::max(last, lines[i].last);
    }
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace inquest
