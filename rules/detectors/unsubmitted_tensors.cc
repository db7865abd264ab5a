// Horovod lists tensors that some ranks submitted and others did not, and each side waits for the other's.
//
// What holds: of one stall report, two tensors of which each lacks a rank that submitted the other. Why that implies
// the cause: ranks of one program submit the same tensors, so two that wait crosswise took different branches or
// orders, and no time would end it. What looks like it: a rank that is late with all of them, which the others do not
// lack; lists that Horovod cut after six names; a stall that passed.
#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "rules/detectors.h"

namespace inquest {
namespace unsubmitted_tensors {

constexpr FindingRow kFindings[] = {
    {"tensors-wait-crosswise", "listed", "tensor ranks other-tensor other-ranks"},
    {"tensors-lack-ranks", "complement", "ranks"},
};
using Found = FoundIn<kFindings>;

constexpr std::size_t kMostTensors = 256;

std::vector<int> Numbers(std::string_view text) {
  std::vector<int> out;
  for (const char *at = text.data(), *end = at + text.size(); at < end;) {
    int number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error == std::errc() && number >= 0) out.push_back(number);
    at = error == std::errc() ? next : at + 1;
  }
  return out;
}

/// Which ranks each tensor lacks, of the last report; its lines come together.
struct Report {
  std::map<std::string, std::set<int>> lacks;
  std::map<std::string, EventIndex> line;
  std::set<int> ready;
  std::map<std::set<int>, std::pair<std::string, EventIndex>>
      ready_for;  ///< by who came: a tensor for which only they did
  std::vector<EventIndex> of_ready;
  std::set<int> cut;  ///< ranks of which not all was listed

  void Add(std::string_view tensor, int rank, EventIndex event) {
    if (lacks.size() >= kMostTensors && !lacks.contains(std::string(tensor))) return;
    lacks[std::string(tensor)].insert(rank);
    line.emplace(std::string(tensor), event);
  }
};

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

void ReadLine(std::string_view text, EventIndex event, Report& report) {
  static const Pattern kByTensor(R"(([^\s\[\]]+) \[(missing|ready) ranks: ?(\d+(?:, ?\d+)*)\])");
  static const Pattern kByRank(R"(^(\d+)!?: ?\[([^\[\]]*)\])");
  bool is_by_tensor = false;
  for (std::string_view rest = text; const auto by_tensor = kByTensor.Search(rest);) {
    is_by_tensor = true;
    std::string_view tensor = by_tensor->text(1);
    if (tensor.starts_with("ops:")) tensor.remove_prefix(4);
    const std::vector<int> ranks = Numbers(by_tensor->text(3));
    const bool ready = by_tensor->text(2) == "ready";
    for (const int rank : ranks)
      if (!ready) report.Add(tensor, rank, event);
    if (ready) {
      report.ready.insert(ranks.begin(), ranks.end());
      if (report.ready_for.size() < kMostTensors)
        report.ready_for.try_emplace({ranks.begin(), ranks.end()}, std::string(tensor), event);
      if (report.of_ready.empty() || report.of_ready.back() != event) report.of_ready.push_back(event);
    }
    const std::string_view last = by_tensor->text(3);
    rest.remove_prefix(static_cast<std::size_t>(last.data() + last.size() - rest.data()));
  }
  if (is_by_tensor) return;
  const auto by_rank = kByRank.Search(text);
  const auto rank = by_rank ? by_rank->number(1) : std::nullopt;
  if (!rank || *rank > 1 << 24) return;
  std::string_view names = by_rank->text(2);
  if (names.ends_with("...")) report.cut.insert(static_cast<int>(*rank));
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(", "), names.size());
    if (const std::string_view name = Trimmed(names.substr(0, end)); !name.empty())
      report.Add(name, static_cast<int>(*rank), event);
    names.remove_prefix(std::min(end + 2, names.size()));
  }
}

bool Lacks(const std::set<int>& lacking, const std::set<int>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(), [&](int rank) { return lacking.contains(rank); });
}

std::string RanksOf(const std::set<int>& ranks) { return RanksWithin({ranks.begin(), ranks.end()}); }

/// One of two tensors that wait for one another.
struct Waiting {
  const std::string& tensor;
  const std::set<int>& lacks;
  EventIndex line;
};

Found WaitCrosswise(const Timeline& timeline, const Waiting& a, const Waiting& b) {
  Found found({"tensors-wait-crosswise", "listed"});
  found.Say("tensor", a.tensor);
  found.Say("ranks", RanksOf(a.lacks));
  found.Say("other-tensor", b.tensor);
  found.Say("other-ranks", RanksOf(b.lacks));
  found.citations = {Cite(timeline, a.line, LineRole::kCause)};
  if (b.line != a.line) found.citations.push_back(Cite(timeline, b.line, LineRole::kCause));
  return found;
}

/// What is not listed may be lacked all the same; of two ranks whoever does not lack a tensor submitted it.
bool IsOfTwo(const Timeline& timeline, const Report& report) {
  if (report.cut.size() > 1 || timeline.KnownRanks() > 2) return false;
  return std::ranges::all_of(
      report.lacks, [](const auto& tensor) { return tensor.second.size() == 1 && *tensor.second.begin() < 2; });
}

std::optional<Found> Crosswise(const Timeline& timeline, const Report& report) {
  if (!report.cut.empty() && !IsOfTwo(timeline, report)) return std::nullopt;
  for (auto a = report.lacks.begin(); a != report.lacks.end(); ++a)
    for (auto b = std::next(a); b != report.lacks.end(); ++b) {
      if (Lacks(a->second, b->second)) continue;
      return WaitCrosswise(timeline, {a->first, a->second, report.line.at(a->first)},
                           {b->first, b->second, report.line.at(b->first)});
    }
  return std::nullopt;
}

/// Of two tensors for which others came each, both sides wait for one another, too. The fewer differ.
std::optional<Found> CrosswiseReady(const Timeline& timeline, const Report& report) {
  for (auto a = report.ready_for.begin(); a != report.ready_for.end(); ++a)
    for (auto b = std::next(a); b != report.ready_for.end(); ++b) {
      if (Lacks(a->first, b->first)) continue;
      Found found = WaitCrosswise(timeline, {a->second.first, b->first, a->second.second},
                                  {b->second.first, a->first, b->second.second});
      if (a->first.size() != b->first.size())
        for (const int rank : a->first.size() < b->first.size() ? a->first : b->first)
          found.culprits.push_back(BlameRank(timeline, GlobalRank{rank}, "submits other tensors than the others"));
      return found;
    }
  return std::nullopt;
}

/// Where only those that came are listed, the others are lacked; how many there are, the job says elsewhere, or not:
/// ranks count from 0, so whoever is between those that came exists.
std::optional<Found> Complement(const Timeline& timeline, const Report& report) {
  constexpr int kMostRanks = 1 << 16;
  if (report.of_ready.empty() || report.ready.empty()) return std::nullopt;
  const int size = timeline.world_size ? timeline.world_size->value : *report.ready.rbegin() + 1;
  if (size > kMostRanks) return std::nullopt;
  const RankSet missing = RankSet::Below(size).Without(RankSet::Of(report.ready));
  if (!timeline.world_size && missing.size() > report.ready.size()) return std::nullopt;
  if (missing.empty()) return std::nullopt;
  Found found({"tensors-lack-ranks", "complement"});
  found.Say("ranks", RanksInWords(missing));
  for (const int rank : missing) found.culprits.push_back(BlameRank(timeline, GlobalRank{rank}, ""));
  for (const EventIndex event : report.of_ready)
    if (found.citations.size() < 4) found.citations.push_back(Cite(timeline, event, LineRole::kCause));
  return found;
}

std::vector<Relation> Run(const Evidence& evidence) {
  Report report;
  std::vector<EventIndex> lines;
  for (const LineMatch& match : evidence.matches)
    if (evidence.book.rules[match.rule].id == "horovod-missing-rank") lines.push_back(match.event);
  if (lines.empty() || evidence.course.WentOn(lines.back())) return {};
  for (const EventIndex line : lines) {
    ReadLine(MessageOf(evidence.timeline.events[line]), line, report);
  }
  std::vector<Relation> out;
  if (auto found = Crosswise(evidence.timeline, report)) out.push_back(*std::move(found));
  if (auto found = CrosswiseReady(evidence.timeline, report)) out.push_back(*std::move(found));
  if (auto found = Complement(evidence.timeline, report)) out.push_back(*std::move(found));
  return out;
}

}  // namespace unsubmitted_tensors

extern const Detector kUnsubmittedTensors{
    "unsubmitted-tensors", "Horovod's ranks wait for one another's tensors, or its list names those that came.",
    unsubmitted_tensors::kFindings, &unsubmitted_tensors::Run};

}  // namespace inquest
