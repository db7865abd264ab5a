// Who is in which operation: a table a process group, as recorders and watchdogs tell it, and a communicator, as NCCL
// counts.
#include <algorithm>
#include <map>
#include <tuple>

#include "report/html/parts.h"
#include "report/recorded.h"
#include "rules/relation.h"

namespace inquest {
namespace {

constexpr std::size_t kMostTables = 48, kMostTableRows = 32;

struct Table {
  std::string title, note;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

Html Render(const Table& table) {
  std::string head, body;
  for (const std::string& column : table.columns) head += Markup("<th scope=\"col\">{}</th>", column).markup;
  for (std::size_t i = 0; i < std::min(table.rows.size(), kMostTableRows); ++i) {
    body += "<tr>";
    for (std::size_t cell = 0; cell < table.rows[i].size(); ++cell)
      body += cell == 0 ? Markup("<th scope=\"row\">{}</th>", table.rows[i][cell]).markup
                        : Markup("<td>{}</td>", table.rows[i][cell]).markup;
    body += "</tr>";
  }
  if (table.rows.size() > kMostTableRows)
    body += Markup("<tr><td colspan=\"{}\">and {} more rows in --format json</td></tr>", table.columns.size(),
                   table.rows.size() - kMostTableRows)
                .markup;
  const Html note = table.note.empty() ? Html{} : Markup("<p class=\"note\">{}</p>", table.note);
  return Markup(
      "<div class=\"scroll\" tabindex=\"0\"><table><caption>{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody>"
      "</table></div>{}",
      table.title, Html{head}, Html{body}, note);
}

std::string Ranks(std::size_t count) { return fmt::format("{} rank{}", count, count == 1 ? "" : "s"); }
std::string NumberCell(const std::optional<std::int64_t>& number) { return number ? fmt::format("#{}", *number) : "–"; }

void AddRecorded(const Timeline& timeline, std::vector<Table>& tables) {
  const Recorded& recorded = *timeline.recorded;
  if (recorded.empty()) return;
  const WaitGraph waits = WaitsOf(recorded);
  for (std::uint32_t i = 0; i < recorded.groups.size(); ++i) {
    const RecordedGroup& group = recorded.groups[i];
    if (group.members.empty() || CountedAlike(group)) continue;
    Table table{.title = HeadOf(group), .note = {}, .columns = {"Ranks", "Ended", "Called", "State", "In"}, .rows = {}};
    for (const RecordedRow& row : RowsOf(recorded, waits, i))
      table.rows.push_back({FoldRanks(row.ranks), NumberCell(row.ended), NumberCell(row.made), StateInWords(row),
                            InWords(recorded, waits, row)});
    if (group.divergence) {
      table.note = fmt::format("#{} was not the same for all:", group.divergence->seq);
      for (const auto& side : group.divergence->sides)
        table.note += fmt::format(" {} on {}{};", InWords(recorded.forms[side.form]), RanksWithin(side.ranks),
                                  side.site.empty() ? "" : ", " + side.site);
      table.note.back() = '.';
    }
    tables.push_back(std::move(table));
  }
}

/// What the watchdogs say of a group, and who waited in it.
void AddGroups(const Timeline& timeline, std::vector<Table>& tables) {
  for (std::uint32_t i = 0; i < timeline.groups.size(); ++i) {
    const GroupRow& group = timeline.groups[i];
    std::map<int, std::string> waits;
    RankSet known = group.declared;
    for (const CollectiveRow& row : timeline.collectives) {
      if (row.group != i || row.recorded) continue;
      const std::string what = (row.work.op.empty() ? "an operation" : row.work.op) +
                               (row.work.seq ? fmt::format(" #{}", row.work.seq->value) : "");
      for (const auto& waiter : row.waiters) waits.try_emplace(waiter.rank.value, what), known.Add(waiter.rank.value);
    }
    for (const auto& [rank, member] : group.members) known.Add(rank.value);
    if (waits.empty() && group.members.empty()) continue;
    using Key = std::tuple<std::optional<std::int64_t>, std::optional<std::int64_t>, std::string>;
    std::map<Key, RankSet> rows;
    for (const int rank : known) {
      const auto member = group.members.find(GlobalRank{rank});
      const bool told = member != group.members.end();
      const auto wait = waits.find(rank);
      rows[{told ? member->second.last_completed : std::nullopt, told ? member->second.last_enqueued : std::nullopt,
            wait != waits.end() ? "gave up on " + wait->second : "nothing that is told"}]
          .Add(rank);
    }
    Table table{.title = fmt::format("Group {}: {}, by their watchdogs",
                                     group.desc.empty() ? (group.name.empty() ? "of all" : group.name)
                                                        : fmt::format("{} ({})", group.name, group.desc),
                                     Ranks(known.size())),
                .note = {},
                .columns = {"Ranks", "Ended", "Called", "In"},
                .rows = {}};
    std::vector<std::pair<Key, RankSet>> rare_first(rows.begin(), rows.end());
    std::ranges::stable_sort(rare_first, {}, [](const auto& row) { return row.second.size(); });
    for (const auto& [key, ranks] : rare_first)
      table.rows.push_back(
          {FoldRanks(ranks), NumberCell(std::get<0>(key)), NumberCell(std::get<1>(key)), std::get<2>(key)});
    tables.push_back(std::move(table));
  }
}

void AddCommunicators(const Timeline& timeline, std::vector<Table>& tables) {
  for (const CommunicatorRow& row : timeline.communicators) {
    using Key = std::tuple<std::uint64_t, std::string, std::string>;
    std::map<Key, RankSet> rows;
    for (const CommunicatorRow::Member& member : row.members) {
      if (!member.rank) continue;
      const CallDescriptor& call = member.last_call;
      rows[{member.calls, member.calls > 0 ? fmt::format("{} of {}", call.op, call.count) : "–",
            member.aborted     ? "aborted"
            : member.ended     ? "destroyed"
            : member.completed ? "set up"
                               : "set-up never ended"}]
          .Add(member.rank->value);
    }
    if (rows.size() < 2 && (rows.empty() || std::get<0>(rows.begin()->first) == 0)) continue;
    Table table{.title = fmt::format("Communicator{} of {} ranks, as NCCL prints",
                                     row.comm_id ? fmt::format(" {:#x}", row.comm_id->value) : "", row.nranks),
                .note = row.whole_history ? "" : "Not every set-up was seen, so that counts do not compare.",
                .columns = {"Its ranks", "Calls", "Last call", "State"},
                .rows = {}};
    for (const auto& [key, ranks] : rows)
      table.rows.push_back({FoldRanks(ranks), fmt::format("{}", std::get<0>(key)), std::get<1>(key), std::get<2>(key)});
    tables.push_back(std::move(table));
  }
}

}  // namespace

Html GroupTables(const Timeline& timeline) {
  std::vector<Table> tables;
  AddRecorded(timeline, tables);
  AddGroups(timeline, tables);
  AddCommunicators(timeline, tables);
  std::string out;
  for (std::size_t i = 0; i < std::min(tables.size(), kMostTables); ++i) out += Render(tables[i]).markup;
  if (tables.size() > kMostTables)
    out += Markup("<p class=\"note\">and {} more tables in --format json</p>", tables.size() - kMostTables).markup;
  return {out};
}

}  // namespace inquest
