// One immutable picture of the job: its queries.
#include "timeline/timeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/pattern.h"

namespace inquest {

const std::shared_ptr<const Recorded>& NoRecords() {
  static const auto kNone = std::make_shared<const Recorded>();
  return kNone;
}

namespace {

/// `[Rank 1]`, `[PG ID 0 PG GUID 0(default_pg) Rank 1]`: how PyTorch and DeepSpeed name the rank that prints. Another
/// group's number is not the job's.
std::optional<Known<GlobalRank>> RankInBrackets(std::string_view text) {
  constexpr std::size_t kHead = 256;
  text = text.substr(0, kHead);
  if (text.find("Rank ") == std::string_view::npos) return std::nullopt;
  static const Pattern kBracket(R"(\[(?:PG (?:ID 0 PG GUID )?0 ?(?:\([^)\]]*\))? )?Rank (\d{1,7})\])");
  const auto match = kBracket.Search(text);
  if (!match || !match->number(1)) return std::nullopt;
  return Known<GlobalRank>{GlobalRank{static_cast<std::int32_t>(*match->number(1))}, Basis::kDerived, kBracketRule};
}

}  // namespace

void ByLocalRank::Add(const ProcessRow& row) {
  if (!row.rank || !row.local_rank) return;
  differ_ = differ_ || row.rank->value.value != row.local_rank->value;
  for (Ranks* ranks : {&by_place_[{*row.local_rank, row.host.value_or(std::string())}], &anywhere_[*row.local_rank]}) {
    ranks->several = ranks->several || (ranks->first && *ranks->first != row.rank->value);
    if (!ranks->first) ranks->first = row.rank->value;
  }
}

ByLocalRank::Ranks ByLocalRank::Of(LocalRank local, const std::optional<std::string>& host) const {
  if (!host) {
    const auto known = anywhere_.find(local);
    return known == anywhere_.end() ? Ranks() : known->second;
  }
  Ranks out;
  for (const std::string& place : {*host, std::string()}) {
    const auto known = by_place_.find({local, place});
    if (known == by_place_.end()) continue;
    out.several = out.several || known->second.several || (out.first && *out.first != *known->second.first);
    out.first = known->second.first;
  }
  return out;
}

std::optional<std::uint32_t> Timeline::ProcessOf(const Event& event) const {
  if (const auto line = process_by_kernel_line.find(event.where); line != process_by_kernel_line.end())
    return line->second;
  if (!event.origin.pid) return std::nullopt;
  const auto it = process_by_pid->find(std::pair<std::string_view, std::int64_t>(
      event.origin.host ? std::string_view(event.origin.host->value) : std::string_view(), *event.origin.pid));
  return it == process_by_pid->end() ? std::nullopt : std::optional(it->second);
}

std::optional<Known<GlobalRank>> Timeline::RankOf(const Event& event) const {
  if (event.origin.rank) return event.origin.rank;
  if (const auto process = ProcessOf(event); process && processes[*process].rank) return processes[*process].rank;
  if (!event.origin.local_rank) return RankInBrackets(event.text);
  // A local rank names a rank only where some process says so: same host, or a job of one host.
  const std::optional<std::string> host = event.origin.host ? std::optional(event.origin.host->value) : std::nullopt;
  const ByLocalRank::Ranks known = by_local_rank.Of(*event.origin.local_rank, host);
  if (known.several) return std::nullopt;
  if (known.first)
    return Known<GlobalRank>{*known.first, Basis::kDerived, "local rank of the only process that has it"};
  // In a job of one host the local rank is the rank, unless some process shows otherwise.
  const bool larger = world_size && world_size->value <= event.origin.local_rank->value;
  if (job_hosts <= 1 && !by_local_rank.differ() && !larger)
    return Known<GlobalRank>{GlobalRank{event.origin.local_rank->value}, Basis::kDerived,
                             "local rank in a job of one host"};
  return std::nullopt;
}

std::pair<EventIndex, EventIndex> Timeline::EventsOf(std::uint32_t input) const {
  const auto input_of = [](const Event& event) { return event.where.input; };
  const auto begin = std::ranges::lower_bound(events, input, {}, input_of),
             end = std::ranges::upper_bound(events, input, {}, input_of);
  return {static_cast<EventIndex>(begin - events.begin()), static_cast<EventIndex>(end - events.begin())};
}

std::optional<std::string> Timeline::HostOf(const Event& event) const {
  if (event.origin.host) return event.origin.host->value;
  if (const auto rank = RankOf(event); rank)
    if (const RankRow* row = FindRank(rank->value); row != nullptr && row->process && processes[*row->process].host)
      return processes[*row->process].host;
  if (hosts.size() == 1 && logs == 1) return hosts.front();  // the only host that the only log names
  return std::nullopt;
}

bool Timeline::Holds(const SourcePos& where) const {
  return held.empty() ||
         (where.input < held.size() && held[where.input].first <= where && where < held[where.input].second);
}

std::size_t Timeline::KnownRanks() const {
  return std::max(ranks.size(), static_cast<std::size_t>(world_size ? std::max(world_size->value, 0) : 0));
}

const RankRow* Timeline::FindRank(GlobalRank rank) const {
  const auto it =
      std::lower_bound(ranks.begin(), ranks.end(), rank, [](const RankRow& row, GlobalRank r) { return row.rank < r; });
  return it != ranks.end() && it->rank == rank ? &*it : nullptr;
}

std::partial_ordering Timeline::Order(EventIndex a, EventIndex b) const {
  const Event &x = events[a], &y = events[b];
  if (x.at && y.at && x.at->date == y.at->date) {
    const auto fuzz = std::max(x.at->resolution, y.at->resolution);
    if (x.at->at + fuzz <= y.at->at) return std::partial_ordering::less;
    if (y.at->at + fuzz <= x.at->at) return std::partial_ordering::greater;
  }
  if (x.where.input != y.where.input)
    return x.at && y.at ? std::partial_ordering::equivalent : std::partial_ordering::unordered;
  if (x.where == y.where) return std::partial_ordering::equivalent;
  return x.where < y.where ? std::partial_ordering::less : std::partial_ordering::greater;
}

std::string WithoutFunction(const std::string& bus_id) { return bus_id.substr(0, bus_id.rfind('.')); }

bool SameDevice(const std::string& a, const std::string& b) {
  return !a.empty() && WithoutFunction(a) == WithoutFunction(b);
}

std::string FoldRanks(const RankSet& ranks) {
  std::string out;
  for (const auto& [first, last] : ranks.stretches()) {
    if (!out.empty()) out += ", ";
    out += first == last       ? fmt::format("{}", first)
           : first + 1 == last ? fmt::format("{}, {}", first, last)
                               : fmt::format("{}-{}", first, last);
  }
  return out;
}

std::string FoldRanks(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());  // in order, none moves another
  return FoldRanks(RankSet::Of(ranks));
}

}  // namespace inquest
