// What the ranks' own recorders hold, as a table for each process group: ranks that stand alike share a row.
#include "report/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "report/page.h"
#include "report/terminal.h"
#include "rules/relation.h"

namespace inquest {
namespace {

using Where = RecordedRow::Where;

std::string Number(const std::optional<std::int64_t>& number) { return number ? fmt::format("#{}", *number) : "-"; }

std::string StateOf(const RecordedCall& call) { return call.gave_up ? "given up" : std::string(Name(call.state)); }

/// Columns as wide as what stands in them; the last takes what is left.
void Table(Page& page, const std::vector<std::array<std::string, 5>>& rows) {
  std::array<int, 5> widths{};
  constexpr std::array kMost = {28, 9, 9, 12, 200};
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::min(std::max(widths[i], Columns(Sanitize(row[i]))), kMost[i]);
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string cell = i + 1 == row.size() ? Sanitize(row[i]) : Cut(Sanitize(row[i]), widths[i]);
      line += cell;
      if (i + 1 < row.size()) line.append(static_cast<std::size_t>(widths[i] - Columns(cell) + 2), ' ');
    }
    page.Line("  ", line);
  }
}

void Group(Page& page, const Recorded& recorded, const WaitGraph& waits, std::uint32_t number) {
  const RecordedGroup& group = recorded.groups[number];
  constexpr std::size_t kMostCalls = 24;
  const std::vector<RecordedRow> rows = RowsOf(recorded, waits, number);
  std::vector<std::array<std::string, 5>> cells = {{"ranks", "ended", "made", "state", "at"}};
  for (const RecordedRow& row : rows) {
    if (cells.size() > kMostCalls) break;
    cells.push_back(
        {FoldRanks(row.ranks), Number(row.ended), Number(row.made), StateInWords(row), InWords(recorded, waits, row)});
  }
  page.Heading(HeadOf(group));
  Table(page, cells);
  if (rows.size() > kMostCalls)
    page.Line("  ", fmt::format("and {} more rows in --format json", rows.size() - kMostCalls));
  if (group.mixed) page.Line("  ", "sends counted as collectives here, so that numbers are not compared over ranks");
  if (!group.divergence) return;
  for (const auto& side : group.divergence->sides)
    page.Line("  ", fmt::format("#{} was {} on {}{}", group.divergence->seq, InWords(recorded.forms[side.form]),
                                RanksWithin(side.ranks), side.site.empty() ? "" : "; " + side.site));
}

void Waits(Page& page, const Recorded& recorded, const WaitGraph& waits) {
  constexpr std::size_t kMostNodes = 24;
  if (waits.nodes.empty()) return;
  page.Heading("Who waits for whom");
  for (std::size_t i = 0; i < std::min(waits.nodes.size(), kMostNodes); ++i) {
    const WaitNode& node = waits.nodes[i];
    page.Line("  ", fmt::format("[{}] {} in {}", i, RanksWithin(node.ranks), InWords(recorded, node)));
    if (!node.idle.empty())
      page.Line("      ", fmt::format("for {}: no call of theirs is open", RanksWithin(node.idle)));
    if (!node.unknown.empty()) page.Line("      ", fmt::format("for {}: no dump was given", RanksWithin(node.unknown)));
    for (const WaitNode::Edge& edge : node.edges)
      page.Line("      ", fmt::format("for {}, in [{}]", RanksWithin(edge.ranks), edge.node));
    if (!node.through.empty()) page.Line("      ", fmt::format("ended on {}", RanksWithin(node.through)));
    if (!node.enqueued_only.empty())
      page.Line("      ", fmt::format("not begun on {}", RanksWithin(node.enqueued_only)));
    if (node.all_there() && node.through.empty())
      page.Line("      ", "all are there, and it does not end: devices or network between them, or calls that differ");
  }
  if (waits.nodes.size() > kMostNodes)
    page.Line("  ", fmt::format("and {} more in --format json", waits.nodes.size() - kMostNodes));
  for (const WaitRoot& root : waits.roots) {
    if (root.nodes.size() < 2) continue;
    std::string circle;
    for (const std::uint32_t node : root.nodes) circle += fmt::format("[{}] -> ", node);
    page.Line("  ", fmt::format("circle: {}[{}]", circle, root.nodes.front()));
  }
}

}  // namespace

std::string HeadOf(const RecordedGroup& group) {
  const auto ranks = group.Members().size();
  if (group.source == RecordedGroup::Source::kRecorders)
    return fmt::format("Group {}: {} ranks", group.InWords(), ranks);
  return fmt::format("Communicator {}, {} as NCCL's {} counted {}: {} ranks", group.name,
                     group.desc.empty() ? "collectives" : group.desc,
                     group.source == RecordedGroup::Source::kRas ? "RAS" : "Inspector",
                     group.source == RecordedGroup::Source::kRas ? "what was launched" : "what ended", ranks);
}

bool CountedAlike(const RecordedGroup& group) {
  return group.source != RecordedGroup::Source::kRecorders &&
         std::ranges::all_of(group.members, [&](const auto& member) { return member.last == group.members[0].last; });
}

std::string StateInWords(const RecordedRow& row) { return row.where == Where::kInCall ? StateOf(*row.call) : "-"; }

std::string InWords(const Recorded& recorded, const WaitGraph& waits, const RecordedRow& row) {
  switch (row.where) {
    case Where::kNoDump:
      return "no dump was given";
    case Where::kElsewhere:
      return "in " + InWords(recorded, waits.nodes[*row.node]);
    case Where::kNowhere:
      if (row.call == nullptr) return "nothing known to be open";
      return fmt::format("nothing; last {} #{} of group {}{}", InWords(recorded.forms[row.call->form]), row.call->seq,
                         recorded.groups[row.call->group].InWords(),
                         row.call->site.empty() ? "" : "; " + row.call->site);
    case Where::kInCall:
      break;
  }
  std::string out = InWords(recorded.forms[row.call->form]);
  if (row.call->peer)
    out += fmt::format(" {} rank {}", row.call->to == CallTrace::Peer::kTo ? "to" : "from", row.call->peer->value);
  return row.call->site.empty() ? out : out + "; " + row.call->site;
}

std::vector<RecordedRow> RowsOf(const Recorded& recorded, const WaitGraph& waits, std::uint32_t number) {
  const RecordedGroup& group = recorded.groups[number];
  // Call sites tell ranks apart, and so do the states.
  using Key = std::tuple<Where, std::optional<std::int64_t>, std::optional<std::int64_t>, std::int64_t, std::uint32_t,
                         std::string, std::string>;
  std::map<Key, RecordedRow> rows;
  for (const int rank : group.Members()) {
    RecordedRow row;
    const RecordedRank* recorder = recorded.Find(GlobalRank{rank});
    if (const RecordedMember* member = group.Find(GlobalRank{rank}); member != nullptr && member->calls) {
      row.ended = member->last_completed;
      row.made = member->last;
    }
    if (recorder == nullptr) {
      row.where = Where::kNoDump;
    } else if (const auto own = std::ranges::find(recorder->open, number, &RecordedCall::group);
               own != recorder->open.end()) {
      row.where = Where::kInCall;
      row.call = &*own;
    } else if (const auto node = waits.node_of.find(rank); node != waits.node_of.end()) {
      row.where = Where::kElsewhere;
      row.node = node->second;
    } else if (recorder->last) {
      row.call = &*recorder->last;
    }
    const bool shown = row.call != nullptr;
    const Key key(row.where, row.made, row.ended, shown && row.call->peer ? row.call->peer->value : -1,
                  shown ? row.call->form : row.node.value_or(0), shown ? row.call->site : std::string(),
                  shown ? StateOf(*row.call) : std::string());
    rows.try_emplace(key, row).first->second.ranks.Add(rank);
  }
  std::vector<RecordedRow> out;
  for (auto& [key, row] : rows) out.push_back(std::move(row));
  std::ranges::sort(out, [](const RecordedRow& a, const RecordedRow& b) {
    return std::tuple(a.made.value_or(-1), a.ended.value_or(-1), a.ranks.front()) <
           std::tuple(b.made.value_or(-1), b.ended.value_or(-1), b.ranks.front());
  });
  return out;
}

void RenderRecorded(const Timeline& timeline, const Verdict& verdict, const ReportContext& context, const Sink& sink) {
  const Recorded& recorded = *timeline.recorded;
  const WaitGraph waits = WaitsOf(recorded);
  Page page(context.text);
  page.Line("",
            verdict.outcome == Outcome::kFailed
                ? fmt::format("{}: {} (confidence {:.0f} %)", verdict.cause, verdict.title, verdict.confidence * 100)
                : verdict.title,
            style::kBold);
  constexpr int kSummaryRows = 6;
  page.Paragraph("", verdict.summary, kSummaryRows);
  std::uint64_t entries = 0;
  for (const RecordedRank& rank : recorded.ranks) entries += rank.entries;
  if (const RankSet given = recorded.Given(); !given.empty()) {
    page.Blank();
    page.Line("", fmt::format("Recorders of {}, {} entries{}", RanksWithin(given), entries,
                              recorded.version.empty() ? "" : ", schema " + recorded.version));
  }
  if (recorded.nameless > 0)
    page.Line("", fmt::format("{} more of which neither content nor name says the rank", recorded.nameless));
  for (const InputSummary& input : timeline.inputs)
    if (!input.problem.empty()) page.Line("", fmt::format("{}: {}", input.path, input.problem));
  constexpr std::uint32_t kMostGroups = 64;
  std::uint32_t shown = 0, alike = 0;
  for (std::uint32_t i = 0; i < recorded.groups.size(); ++i) {
    if (recorded.groups[i].members.empty()) continue;
    if (CountedAlike(recorded.groups[i]))
      ++alike;
    else if (shown++ < kMostGroups)
      Group(page, recorded, waits, i);
  }
  if (shown > kMostGroups) page.Line("", fmt::format("and {} more groups in --format json", shown - kMostGroups));
  if (alike > 0) page.Line("", fmt::format("and {} counts that are the same on all ranks", alike));
  const auto silent =
      std::ranges::count_if(recorded.groups, [](const RecordedGroup& group) { return group.members.empty(); });
  if (silent > 0) page.Line("", fmt::format("and {} groups in which no rank recorded anything", silent));
  Waits(page, recorded, waits);
  sink(page.Take());
}

}  // namespace inquest
