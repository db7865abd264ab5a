// A worker tests the copies between its GPUs, never says that it is through, and the others give up on it.
//
// What holds: the line that begins the test of peer-to-peer copies, none that reads its result behind it, and a failure
// later. Why that implies the cause: the test copies a few bytes from each GPU to each and takes seconds, so one that
// is not over when a wait gives up hangs in the copy. What looks like it: a log that was cut in the test, which no
// failure follows; a job that died of something else meanwhile, which other findings tell.
#include "rules/detectors.h"

namespace inquest {
namespace p2p_test {

constexpr FindingRow kFindings[] = {
    {"p2p-test-not-over", "others-gave-up", "who"},
};
using Found = FoundIn<kFindings>;

/// The last line that begins a test, unless a result was read behind it.
std::optional<EventIndex> OpenTest(const Evidence& evidence) {
  std::optional<EventIndex> open;
  for (const LineMatch& match : evidence.matches) {
    const std::string& id = evidence.book.rules[match.rule].id;
    if (id == "loading-p2p-test") open = match.event;
    if (id == "done-p2p-test") open.reset();
  }
  return open;
}

std::optional<EventIndex> GaveUpAfter(const Evidence& evidence, EventIndex begin) {
  for (const LineMatch& match : evidence.matches)
    if (match.event > begin && evidence.book.rules[match.rule].id == "collective-timeout") return match.event;
  const auto first = evidence.course.first_time_out();
  return first && *first > begin ? first : std::nullopt;
}

std::vector<Relation> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  const auto test = OpenTest(evidence);
  const auto gave_up = test ? GaveUpAfter(evidence, *test) : std::nullopt;
  if (!gave_up || evidence.course.WentOn(*test)) return {};
  Found found({"p2p-test-not-over", "others-gave-up"});
  // Only the first worker of a host tests; where there is one host, or none has a name, that is rank 0.
  auto rank = timeline.RankOf(timeline.events[*test]);
  if (!rank && timeline.hosts.size() < 2)
    rank = Known<GlobalRank>{GlobalRank{0}, Basis::kDerived, "the first worker of the only host tests"};
  found.Say("who", rank ? RanksInWords({rank->value.value}) : "A worker");
  if (rank) found.culprits.push_back(BlameRank(timeline, rank->value, "its last line begins the test"));
  found.citations = {Cite(timeline, *test, LineRole::kCause), Cite(timeline, *gave_up, LineRole::kCause)};
  return {std::move(found)};
}

}  // namespace p2p_test

extern const Detector kP2pTest{
    "p2p-test",
    "A worker tests the copies between its GPUs, never says that it is through, and the others give up on it.",
    p2p_test::kFindings, &p2p_test::Run};

}  // namespace inquest
