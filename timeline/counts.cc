// What NCCL's RAS and Inspector counted of the ranks' calls, beside what the ranks' own recorders kept.
#include "timeline/counts.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace inquest {
namespace {

using Source = RankProgress::Source;

/// Of one operation on one communicator.
struct Counts {
  struct One {
    std::int64_t count = 0;
    bool moved = false;  ///< since an earlier report
    SourcePos where;
  };
  std::map<int, One> by_rank;  ///< of the job
  RankSet named;               ///< of the communicator
  /// `15 ranks have launched up to operation 4711`, by that count.
  struct Many {
    int ranks = 0;
    bool named = false;  ///< one by one, too
    RankSet in_job;
    SourcePos where;
  };
  std::map<std::int64_t, Many> many;
  int report = 0;
  bool placed = true;  ///< it is known who is who in the job

  int size() const {
    std::uint64_t size = named.size();
    for (const auto& [count, one] : many) size += one.named ? 0U : static_cast<std::uint64_t>(one.ranks);
    return static_cast<int>(size);
  }
};
using Key = std::tuple<Source, std::string, std::string>;
using Earlier = std::map<int, Counts::One>;

void Read(const RankProgress& progress, const SourcePos& where, const Earlier& earlier, Counts& counts) {
  Counts::Many& many = counts.many[*progress.count];
  if (!progress.rank) {
    many = {progress.ranks, many.named, progress.in_job, where};
    return;
  }
  many.named = true;
  counts.named.Add(progress.rank->value);
  if (progress.in_job.size() != 1) {
    counts.placed = false;
    return;
  }
  const int rank = progress.in_job.front();
  const auto before = earlier.find(rank);
  Counts::One& one = counts.by_rank[rank];
  one.count = std::max(one.count, *progress.count);
  one.moved = before != earlier.end() && before->second.count < one.count;
  one.where = where;
}

/// Who is only numbered is whom the source says; else, of the job's communicator, whoever is not named.
void PlaceMany(Counts& counts, int job_size) {
  for (auto& [count, many] : counts.many) {
    if (many.named) continue;
    const bool all_others = counts.size() == job_size &&
                            std::ranges::count_if(counts.many, [](const auto& one) { return !one.second.named; }) == 1;
    if (many.in_job.empty() && all_others) many.in_job = RankSet::Below(job_size).Without(counts.named);
    counts.placed = counts.placed && many.in_job.size() == static_cast<std::uint64_t>(many.ranks);
    if (!counts.placed) return;
    for (const int rank : many.in_job) counts.by_rank.try_emplace(rank, Counts::One{count, false, many.where});
  }
}

std::map<Key, Counts> CountsOf(const Timeline& timeline) {
  std::map<Key, Counts> out;
  std::map<Key, Earlier> earlier;
  int reports = 0;
  for (const Event& event : timeline.events) {
    const auto* progress = std::get_if<RankProgress>(&event.what);
    if (progress == nullptr) continue;
    if (progress->ranks == 0) ++reports;
    const bool calls =
        progress->state == RankProgress::State::kLaunched || progress->state == RankProgress::State::kCompleted;
    if (!calls || !progress->count || progress->comm.empty()) continue;
    const Key key(progress->source, progress->comm, progress->op);
    Counts& counts = out[key];
    if (progress->source == Source::kRas && counts.report != reports) {
      earlier[key] = std::move(counts.by_rank);
      counts = {};
      counts.report = reports;
    }
    Read(*progress, event.where, earlier[key], counts);
  }
  // What an earlier report alone says was of a moment.
  std::erase_if(out, [&](const auto& entry) {
    return std::get<Source>(entry.first) == Source::kRas && entry.second.report != reports;
  });
  int job_size = timeline.world_size ? timeline.world_size->value : 0;
  if (!timeline.world_size)
    for (const auto& [key, counts] : out) job_size = std::max(job_size, counts.size());
  for (auto& [key, counts] : out) PlaceMany(counts, job_size);
  std::erase_if(out, [](const auto& entry) { return !entry.second.placed || entry.second.by_rank.empty(); });
  return out;
}

RecordedRank& RowOf(Recorded& recorded, GlobalRank rank, const SourcePos& where) {
  const auto at = std::ranges::lower_bound(recorded.ranks, rank, {}, &RecordedRank::rank);
  if (at != recorded.ranks.end() && at->rank == rank) return *at;
  RecordedRank row;
  row.rank = rank;
  row.input = where.input;
  row.counted = true;
  return *recorded.ranks.insert(at, std::move(row));
}

}  // namespace

void AddCounts(const Timeline& timeline, Recorded& recorded) {
  for (const auto& [key, counts] : CountsOf(timeline)) {
    const auto& [source, comm, op] = key;
    const auto number = static_cast<std::uint32_t>(recorded.groups.size()),
               form = static_cast<std::uint32_t>(recorded.forms.size());
    RecordedGroup& group = recorded.groups.emplace_back();
    group.source = source == Source::kRas ? RecordedGroup::Source::kRas : RecordedGroup::Source::kInspector;
    group.name = comm;
    group.desc = op;
    recorded.forms.push_back({op.empty() ? "collective" : op, {}, {}, {}});
    const std::int64_t fewest = std::ranges::min_element(counts.by_rank, {}, [](const auto& entry) {
                                  return entry.second.count;
                                })->second.count;
    for (const auto& [rank, one] : counts.by_rank) {
      RecordedMember& member = group.members.emplace_back();
      member.rank = GlobalRank{rank};
      member.calls = one.count > 0;
      member.first = std::min<std::int64_t>(one.count, 1);
      member.last = one.count;
      if (source == Source::kInspector) member.last_completed = one.count;
      RecordedRank& row = RowOf(recorded, member.rank, one.where);
      if (!row.counted) continue;
      row.torn = row.torn || one.moved;
      if (source != Source::kRas || one.count == fewest) continue;
      RecordedCall& call = row.open.emplace_back();
      call.group = number;
      call.form = form;
      call.seq = fewest + 1;
      call.where = one.where;
    }
  }
}

}  // namespace inquest
