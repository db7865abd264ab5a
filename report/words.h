// What the reports for people say in the same words: sizes, whom the verdict blames, what followed, what to do, what
// was read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rules/picture.h"
#include "rules/verdict.h"

namespace inquest {

/// `95 %`.
std::string Percent(double confidence);
/// What a claim says before it explains itself: up to its first semicolon.
std::string FirstClause(const std::string& claim);
/// `FAILED`, `HEALTHY`, `UNDECIDED`.
std::string_view Badge(Outcome outcome);
/// `job.log:31`.
std::string PlaceOf(const Timeline& timeline, const SourcePos& where);
/// `4.2 MiB`.
std::string Size(std::uint64_t bytes);

/// Which start of the job the verdict is of.
struct AttemptNumber {
  std::size_t number = 1, of = 1;
};
AttemptNumber JudgedAttempt(const Verdict& verdict);
/// `slurm 88123 (train), attempt 2 of 3`; empty: nothing tells.
std::string JobInWords(const Verdict& verdict);
/// The same, and when and where that start ran: `slurm 88123, attempt 2 of 3, 2031-04-05T11:12:40Z to
/// 2031-04-05T12:11:07Z, on node00, node07`; empty: nothing tells.
std::string RunInWords(const Timeline& timeline, const Verdict& verdict);

/// Culprits that share a line: ranks of one host, or processes on one device, for one reason.
struct Suspects {
  const Culprit* first = nullptr;
  std::vector<int> ranks;
  std::vector<std::int64_t> pids;
  std::vector<std::string> hosts;  ///< more than one: of hosts alone
  std::size_t count = 0;
};
std::vector<Suspects> FoldCulprits(const std::vector<Culprit>& culprits);
/// `rank 28 on node07 (pid 2113, GPU 4, 0000:4e:00.0)`, `ranks 0-7 on node07`, `pids 41, 42, GPU 0`,
/// `hosts node07, node08`.
std::string Who(const Suspects& suspects);
/// The same, and why: `rank 28 on node07: its GPU fell off the bus`.
std::string WhoAndWhy(const Suspects& suspects);
/// That of all of them, a line each.
std::vector<std::string> CulpritsInWords(const Verdict& verdict);
/// The culprits' hosts, each once, in their order.
std::vector<std::string> HostsOfCulprits(const Verdict& verdict);

/// Whether to start the job again; empty: there is nothing to say.
std::string_view RetryInWords(const Verdict& verdict);

/// What stands in front of a command: where it is typed, and as whom; or what it is, if nothing to type.
std::string PromptOf(const Remedy& remedy);

/// The same as a clause: `on node07, as root`; empty: where the job is started.
std::string WhereInWords(const Remedy& remedy);
inline constexpr std::string_view kDestructive = "takes away what others may still use: look first";

/// What to do about the cause, if one was found; with `replay_command`, where it can say something, behind the two
/// first things. What to do about an unknown cause is to collect.
std::vector<Remedy> RemediesOf(const Verdict& verdict, const std::string& replay_command);

/// A symptom and how often it was said, `63 x A rank waited in a collective until its timeout`, and `, first 12:11:05`.
struct Symptom {
  std::string what, when;  ///< when: empty: no line says it
};
std::vector<Symptom> SymptomsOf(const Verdict& verdict);
/// The same, each as one text.
std::vector<std::string> SymptomsInWords(const Verdict& verdict);

/// `cuda-oom (95 %)`, `this verdict`, `not looked at`.
std::string JudgedAs(const AttemptTold& attempt);

/// `Read 2 files, 4.9 KiB, 49 lines; 10 B damaged`.
std::string ReadInWords(const Timeline& timeline);
/// `Left out, more than is held in memory: 3 call`; empty: nothing was.
std::string LeftOutInWords(const Timeline& timeline);
/// What `inquest collect` could not get, of each host by reason: `Not collected on node07: a.txt, b.txt (it is not
/// installed)`.
std::vector<std::string> NotCollectedInWords(const Timeline& timeline);

/// `a.log, b.log, c.log and 4 more`: in which of the picture's inputs no line has a time; empty: in none.
std::string WithoutClockInWords(const Timeline& timeline, const Picture& picture);

}  // namespace inquest
