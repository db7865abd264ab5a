// Some processes of a job announced themselves, the others did not, and nothing followed.
//
// What holds: ranks say who they are and how many they shall be, fewer of them than that, and neither a meeting nor
// work nor an error comes after. Why that implies the cause: each waits in the rendezvous until the last has come. What
// looks like it: the log of one node of several, which says as much; hence a hint that names nobody.
#include <charconv>
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/thresholds.h"

namespace inquest {
namespace members_missing {

constexpr FindingRow kFindings[] = {
    {"members-missing", "some same-one", "named members themselves"},
};
using Found = FoundIn<kFindings>;

std::optional<int> NumberOf(std::string_view digits) {
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && number >= 0 ? std::optional(number) : std::nullopt;
}

std::vector<Relation> Run(const Evidence& evidence) {
  std::map<int, int> announced;
  int members = 0;
  std::vector<EventIndex> lines;
  for (const LineMatch& match : evidence.matches) {
    const Rule& rule = evidence.book.rules[match.rule];
    if (rule.kind != Rule::Kind::kPhase) {
      if (!lines.empty()) return {};  // it was not silent: what it said stands for itself
      continue;
    }
    if (rule.at != Activity::kJoining) {
      if (!lines.empty()) return {};  // they met, or are at work
      continue;
    }
    lines.push_back(match.event);
    for (const auto& [name, value] : match.groups) {
      const auto number = NumberOf(value);
      if (!number) continue;
      if (name == "rank") ++announced[*number];
      if (name == "members") members = *number;
    }
  }
  const auto missing = members - static_cast<int>(announced.size());
  if (announced.empty() || missing <= 0) return {};
  const SourcePos last = evidence.timeline.events[lines.back()].where;
  if (evidence.timeline.inputs[last.input].lines > last.line + thresholds::kFewLines) return {};
  RankSet ranks;
  bool all_twice = true;
  for (const auto& [rank, times] : announced) {
    ranks.Add(rank);
    all_twice = all_twice && times > 1;
  }
  Found found(all_twice ? Found::Held{"members-missing", "same-one"} : Found::Held{"members-missing", "some"});
  found.Say("named", RanksWithin(ranks));
  found.Say("members", std::to_string(members));
  found.Say("themselves", ranks.size() > 1 ? "themselves" : "itself");
  // As many as there should be announced themselves, under the numbers of others: theirs are those that nobody has.
  constexpr int kMostNamed = 64;
  if (all_twice && missing <= kMostNamed)
    for (const int rank : RankSet::Below(members).Without(ranks))
      found.culprits.push_back(
          BlameRank(evidence.timeline, GlobalRank{rank}, "announced itself by the number of another, or not at all"));
  for (const EventIndex line : lines)
    if (found.citations.size() < 4) found.citations.push_back(Cite(evidence.timeline, line, LineRole::kCause));
  return {found};
}

}  // namespace members_missing

const Detector kMembersMissing{
    "members-missing", "Some processes of a job announced themselves, the others did not, and nothing followed.",
    members_missing::kFindings, &members_missing::Run};

}  // namespace inquest
