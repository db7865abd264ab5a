// What the reports for people say in the same words.
#include "report/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace inquest {
namespace {

bool IsHostAlone(const Culprit& culprit) {
  return culprit.host && !culprit.rank && !culprit.pid && !culprit.gpu_index && !culprit.bus_id;
}

bool Together(const Culprit& a, const Culprit& b) {
  if (IsHostAlone(a) && IsHostAlone(b)) return a.why == b.why;
  if (a.host != b.host || a.why != b.why || a.rank.has_value() != b.rank.has_value()) return false;
  return a.rank || (a.pid && b.pid && a.gpu_index == b.gpu_index && a.bus_id == b.bus_id);
}

}  // namespace

std::string Percent(double confidence) { return fmt::format("{:.0f} %", confidence * 100); }

std::string FirstClause(const std::string& claim) { return claim.substr(0, claim.find("; ")); }

std::string_view Badge(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFailed:
      return "FAILED";
    case Outcome::kHealthy:
      return "HEALTHY";
    case Outcome::kUndecided:
      break;
  }
  return "UNDECIDED";
}

std::string PlaceOf(const Timeline& timeline, const SourcePos& where) {
  return fmt::format("{}:{}", where.input < timeline.inputs.size() ? timeline.inputs[where.input].path : "?",
                     where.InputLine());
}

std::string Size(std::uint64_t bytes) {
  double size = static_cast<double>(bytes);
  if (bytes < 1024) return fmt::format("{} B", bytes);
  const char* unit = "KiB";
  size /= 1024;
  for (const char* next : {"MiB", "GiB", "TiB"}) {
    if (size < 1024) break;
    size /= 1024;
    unit = next;
  }
  return fmt::format("{:.1f} {}", size, unit);
}

std::vector<Suspects> FoldCulprits(const std::vector<Culprit>& culprits) {
  std::vector<Suspects> rows;
  for (const Culprit& culprit : culprits) {
    auto row = std::ranges::find_if(rows, [&](const Suspects& other) { return Together(*other.first, culprit); });
    if (row == rows.end()) row = rows.insert(rows.end(), {&culprit, {}, {}, {}, 0});
    if (culprit.rank) row->ranks.push_back(culprit.rank->value);
    if (culprit.pid) row->pids.push_back(*culprit.pid);
    if (culprit.host && std::ranges::find(row->hosts, *culprit.host) == row->hosts.end())
      row->hosts.push_back(*culprit.host);
    ++row->count;
  }
  return rows;
}

std::string Who(const Suspects& suspects) {
  const Culprit& first = *suspects.first;
  constexpr std::size_t kMostHosts = 8;
  if (const std::size_t hosts = suspects.hosts.size(); hosts > 1) {
    const auto last = suspects.hosts.begin() + std::ptrdiff_t(std::min(hosts, kMostHosts));
    return fmt::format("hosts {}{}", fmt::join(suspects.hosts.begin(), last, ", "),
                       hosts > kMostHosts ? fmt::format(" and {} more", hosts - kMostHosts) : "");
  }
  std::string who;
  if (!suspects.ranks.empty()) who = fmt::format("rank{} {}", suspects.count > 1 ? "s" : "", FoldRanks(suspects.ranks));
  if (first.host) who += (who.empty() ? "host " : " on ") + *first.host;
  std::vector<std::string> details;
  const bool alone = suspects.count == 1;
  if (!suspects.pids.empty() && (alone || !first.rank))
    details.push_back(fmt::format("pid{} {}", alone ? "" : "s", fmt::join(suspects.pids, ", ")));
  if (first.gpu_index && (alone || !first.rank)) details.push_back(fmt::format("GPU {}", *first.gpu_index));
  if (first.bus_id && (alone || !first.rank)) details.push_back(*first.bus_id);
  if (details.empty()) return who;
  return who.empty() ? fmt::format("{}", fmt::join(details, ", "))
                     : fmt::format("{} ({})", who, fmt::join(details, ", "));
}

std::string WhoAndWhy(const Suspects& suspects) {
  const std::string who = Who(suspects), &why = suspects.first->why;
  return who.empty() || why.empty() ? who + why : fmt::format("{}: {}", who, why);
}

std::vector<std::string> CulpritsInWords(const Verdict& verdict) {
  std::vector<std::string> out;
  for (const Suspects& suspects : FoldCulprits(verdict.culprits)) out.push_back(WhoAndWhy(suspects));
  return out;
}

std::vector<std::string> HostsOfCulprits(const Verdict& verdict) {
  std::vector<std::string> hosts;
  for (const Culprit& culprit : verdict.culprits)
    if (culprit.host && std::ranges::find(hosts, *culprit.host) == hosts.end()) hosts.push_back(*culprit.host);
  return hosts;
}

std::string_view RetryInWords(const Verdict& verdict) {
  static constexpr std::array<std::string_view, static_cast<std::size_t>(Retry::kNo) + 1> kWords = {
      "", "yes, as it is", "only after the fix below", "yes, on other nodes; keep the culprit out",
      "not yet: nothing says that it would end differently"};
  return verdict.outcome == Outcome::kHealthy ? std::string_view() : kWords[static_cast<std::size_t>(verdict.retry)];
}

std::string PromptOf(const Remedy& remedy) {
  switch (remedy.kind) {
    case Remedy::Kind::kPython:
      return "in the program: ";
    case Remedy::Kind::kConfig:
      return "setting: ";
    case Remedy::Kind::kEdit:
      return "change: ";
    default:
      break;
  }
  const char* const end = remedy.root ? "# " : "$ ";
  if (remedy.run_on == Remedy::Where::kNodes) return fmt::format("every node{}", end);
  if (remedy.run_on != Remedy::Where::kHost) return end;
  return remedy.hosts.empty() ? fmt::format("its host{}", end) : fmt::format("{}{}", fmt::join(remedy.hosts, ","), end);
}

std::string WhereInWords(const Remedy& remedy) {
  if (remedy.kind == Remedy::Kind::kPython) return "in the program";
  if (remedy.kind == Remedy::Kind::kConfig) return "a setting";
  if (remedy.kind == Remedy::Kind::kEdit) return "a change";
  std::string where;
  if (remedy.run_on == Remedy::Where::kNodes) where = "on every node";
  if (remedy.run_on == Remedy::Where::kHost)
    where = remedy.hosts.empty() ? "on its host" : fmt::format("on {}", fmt::join(remedy.hosts, ", "));
  if (remedy.root) where += where.empty() ? "as root" : ", as root";
  return where;
}

std::vector<Remedy> RemediesOf(const Verdict& verdict, const std::string& replay_command) {
  std::vector<Remedy> out;
  if (verdict.outcome == Outcome::kFailed) out = verdict.remedies;
  if (replay_command.empty() || !verdict.replay_helps) return out;
  Remedy replay;
  replay.text = "Run the collective alone: it hangs again only if the machines are at fault.";
  replay.command = replay_command;
  replay.kind = Remedy::Kind::kShell;
  constexpr std::size_t kInFront = 2;
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(std::min(out.size(), kInFront)), replay);
  return out;
}

std::vector<Symptom> SymptomsOf(const Verdict& verdict) {
  std::vector<Symptom> out;
  for (const Finding& finding : verdict.findings) {
    std::string claim = FirstClause(finding.claim);
    if (claim.ends_with('.')) claim.pop_back();
    if (!finding.cause.empty() || claim.empty()) continue;
    Symptom symptom{.what = finding.times > 1 ? fmt::format("{} x {}", finding.times, claim) : claim, .when = {}};
    if (!finding.citations.empty() && finding.citations.front().at)
      symptom.when = (finding.times > 1 ? ", first " : ", ") + FormatClock(*finding.citations.front().at);
    out.push_back(std::move(symptom));
  }
  return out;
}

std::vector<std::string> SymptomsInWords(const Verdict& verdict) {
  std::vector<std::string> out;
  for (const Symptom& symptom : SymptomsOf(verdict)) out.push_back(symptom.what + symptom.when);
  return out;
}

AttemptNumber JudgedAttempt(const Verdict& verdict) {
  AttemptNumber out{.number = 1, .of = std::max<std::size_t>(1, verdict.attempts.size())};
  for (const AttemptTold& attempt : verdict.attempts)
    if (attempt.judged) out.number = attempt.number;
  return out;
}

std::string JobInWords(const Verdict& verdict) {
  const JobTold& job = verdict.job;
  std::string out = job.id ? fmt::format("{} {}", job.system, job.id->value) : job.name;
  if (job.id && !job.name.empty()) out += fmt::format(" ({})", job.name);
  if (const AttemptNumber attempt = JudgedAttempt(verdict); attempt.of > 1)
    out += fmt::format("{}attempt {} of {}", out.empty() ? "" : ", ", attempt.number, attempt.of);
  return out;
}

std::string RunInWords(const Timeline& timeline, const Verdict& verdict) {
  constexpr std::size_t kMostHosts = 8;
  std::string out = JobInWords(verdict);
  const auto add = [&out](const std::string& part) { out += (out.empty() ? "" : ", ") + part; };
  const JobTold& job = verdict.job;
  if (job.start && job.end) add(fmt::format("{} to {}", FormatTime(*job.start), FormatTime(*job.end)));
  const std::size_t hosts = timeline.hosts.size(), shown = std::min(hosts, kMostHosts);
  if (hosts > 0)
    add(fmt::format("on {}{}", fmt::join(timeline.hosts.begin(), timeline.hosts.begin() + std::ptrdiff_t(shown), ", "),
                    hosts > shown ? fmt::format(" and {} more", hosts - shown) : ""));
  return out;
}

std::string JudgedAs(const AttemptTold& attempt) {
  if (attempt.judged) return "this verdict";
  return attempt.cause.empty() ? "not looked at" : fmt::format("{} ({})", attempt.cause, Percent(attempt.confidence));
}

std::string ReadInWords(const Timeline& timeline) {
  InputSummary sum;
  for (const InputSummary& input : timeline.inputs) {
    sum.bytes += input.bytes;
    sum.lines += input.lines;
    sum.damaged += input.damaged;
  }
  const std::size_t files = timeline.inputs.size();
  return fmt::format("Read {} file{}, {}, {} lines; {}", files, files == 1 ? "" : "s", Size(sum.bytes), sum.lines,
                     sum.damaged == 0 ? "nothing damaged" : Size(sum.damaged) + " damaged");
}

std::string LeftOutInWords(const Timeline& timeline) {
  std::string out;
  for (const auto& [what, count] : timeline.left_out)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, what);
  return out.empty() ? out : "Left out, more than is held in memory: " + out;
}

std::vector<std::string> NotCollectedInWords(const Timeline& timeline) {
  std::map<std::string, std::map<std::string, std::string>> hosts;
  for (const Event& event : timeline.events)
    if (const auto* lack = std::get_if<NotCollected>(&event.what)) {
      std::string& names = hosts[timeline.HostOf(event).value_or("its node")][lack->reason];
      names += (names.empty() ? "" : ", ") + lack->name;
    }
  std::vector<std::string> out;
  for (const auto& [host, reasons] : hosts) {
    std::string text;
    for (const auto& [reason, names] : reasons)
      text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", names, reason);
    out.push_back(fmt::format("Not collected on {}: {}", host, text));
  }
  return out;
}

std::string WithoutClockInWords(const Timeline& timeline, const Picture& picture) {
  constexpr std::size_t kNamed = 3;
  std::string files;
  for (std::size_t i = 0; i < std::min(picture.without_clock.size(), kNamed); ++i)
    files += (i == 0 ? "" : ", ") + timeline.inputs[picture.without_clock[i]].path;
  if (picture.without_clock.size() > kNamed)
    files += fmt::format(" and {} more", picture.without_clock.size() - kNamed);
  return files;
}

}  // namespace inquest
