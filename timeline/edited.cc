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
/// `of_any`: the calls of a module whoever is called.
std::optional<Call> OutermostCall(const Event& event, bool of_any) {
  const auto* raised = std::get_if<ExceptionRaised>(&event.what);
  if (raised == nullptr || raised->ignored || raised->chained_first || raised->stack.empty()) return std::nullopt;
  const auto caller = Read(raised->stack[0]);
  if (!caller || caller->function != "<module>") return std::nullopt;
  if (of_any) return Call{{caller->file, {}, {}, std::nullopt}, caller->line};
  const auto called = raised->stack.size() > 1 ? Read(raised->stack[1]) : std::nullopt;
  if (!called) return std::nullopt;
  std::optional<GlobalRank> rank;
  if (event.origin.rank) rank = event.origin.rank->value;
  return Call{{caller->file, called->file, called->function, rank}, caller->line};
}

/// Something was printed between two exceptions.
bool StandsBetween(const Timeline& timeline, EventIndex before, EventIndex raised) {
  constexpr std::uint64_t kFewest = 4;  ///< lines
  return timeline.events[before].where.line + kFewest <
         std::get<ExceptionRaised>(timeline.events[raised].what).begin.line;
}

using Pairs = std::vector<std::pair<EventIndex, EventIndex>>;

/// Adds the calls of one module that come from another line than the one before, which never comes again.
void AddMoved(const Timeline& timeline, EventIndex begin, EventIndex end, bool of_any, Pairs& out) {
  struct Line {
    std::string_view line;
    EventIndex first = 0, last = 0;
  };
  std::map<decltype(Call::what), std::vector<Line>> calls;  // each line once, in the order in which they came
  for (EventIndex i = begin; i < end; ++i) {
    const std::optional<Call> call = OutermostCall(timeline.events[i], of_any);
    if (!call) continue;
    std::vector<Line>& lines = calls[call->what];
    const auto known = std::ranges::find(lines, call->line, &Line::line);
    if (known != lines.end())
      known->last = i;
    else if (lines.size() < kMostLines)
      lines.push_back({call->line, i, i});
  }
  for (const auto& [what, lines] : calls) {
    EventIndex last = lines.front().last;
    for (std::size_t i = 1; i < lines.size(); ++i) {
      if (last < lines[i].first && (!of_any || StandsBetween(timeline, last, lines[i].first)))
        out.emplace_back(last, lines[i].first);
      last = std::max(last, lines[i].last);
    }
  }
}

}  // namespace

std::vector<std::pair<EventIndex, EventIndex>> EditsBetween(const Timeline& timeline, EventIndex begin,
                                                            EventIndex end) {
  Pairs out;
  AddMoved(timeline, begin, end, false, out);
  if (timeline.KnownRanks() <= 1) AddMoved(timeline, begin, end, true, out);
  std::ranges::sort(out);
  return out;
}

}  // namespace inquest
