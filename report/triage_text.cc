// Many jobs at once, as a table for people.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "report/terminal.h"
#include "report/triage.h"
#include "report/words.h"

namespace inquest {
namespace {

constexpr std::size_t kColumns = 6;
using Row = std::array<std::string, kColumns>;
constexpr std::array<int, kColumns> kWidest = {48, 24, 5, 22, 24, 24};
constexpr int kNarrowest = 12;  ///< of a name, on a terminal that has no room
constexpr int kGap = 2;

/// `rank 28`, `ranks 0-7`, `pid 41`, `PCI 0000:4e:00.0` (a GPU or the port above one); whom the rows blame besides is
/// counted.
std::string Culprit(const Verdict& verdict) {
  const std::vector<Suspects> suspects = FoldCulprits(verdict.culprits);
  if (suspects.empty()) return {};
  const Suspects& first = suspects.front();
  std::string who;
  if (!first.ranks.empty())
    who = fmt::format("{} {}", first.ranks.size() == 1 ? "rank" : "ranks", FoldRanks(first.ranks));
  else if (!first.pids.empty())
    who = fmt::format("{} {}", first.pids.size() == 1 ? "pid" : "pids", fmt::join(first.pids, ", "));
  else if (first.first->bus_id)
    who = "PCI " + *first.first->bus_id;
  else if (first.first->gpu_index)
    who = fmt::format("GPU {}", *first.first->gpu_index);
  else if (first.first->host)
    who = first.hosts.size() > 1 ? fmt::format("{} hosts", first.hosts.size()) : "the host";
  return suspects.size() > 1 ? fmt::format("{} +{}", who, suspects.size() - 1) : who;
}

Row RowOf(const TriagedJob& job) {
  const Verdict& verdict = job.verdict;
  if (!job.problem.empty()) return {Sanitize(job.name), "not read", "", "", "", ""};
  const bool failed = verdict.outcome == Outcome::kFailed;
  return {Sanitize(job.name),
          verdict.cause,
          failed ? Percent(verdict.confidence) : "",
          Sanitize(Culprit(verdict)),
          Sanitize(fmt::format("{}", fmt::join(HostsOfCulprits(verdict), ", "))),
          job.when ? FormatTime(*job.when) : ""};
}

std::string Padded(std::string text, int width) {
  text = Cut(text, width);
  return text + std::string(static_cast<std::size_t>(std::max(0, width - Columns(text))), ' ');
}

std::string Table(std::span<const TriagedJob> jobs, int width) {
  std::vector<Row> rows = {{"job", "cause", "sure", "culprit", "host", "when"}};
  for (const TriagedJob& job : jobs) rows.push_back(RowOf(job));
  std::array<int, kColumns> widths{};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], std::min(Columns(row[i]), kWidest[i]));
  const int all = std::accumulate(widths.begin(), widths.end(), kGap * static_cast<int>(kColumns - 1));
  widths[0] = std::max(std::min(kNarrowest, widths[0]), widths[0] - std::max(0, all - width));
  std::string out;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < kColumns; ++i)
      line += Padded(row[i], widths[i]) + (i + 1 < kColumns ? std::string(kGap, ' ') : "");
    line.resize(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string NamesInWords(std::span<const TriagedJob> jobs, const std::vector<std::size_t>& some) {
  constexpr std::size_t kNamed = 12;
  std::string out;
  for (std::size_t i = 0; i < std::min(some.size(), kNamed); ++i)
    out += (i > 0 ? ", " : "") + Sanitize(jobs[some[i]].name);
  return some.size() > kNamed ? fmt::format("{} and {} more", out, some.size() - kNamed) : out;
}

/// A sentence, and the jobs that it is of.
std::string Shared(const std::string& sentence, const std::string& names, int width) {
  constexpr int kMostRows = 6;
  std::string out = Cut(sentence, width) + "\n";
  for (const std::string& line : Wrap(names, width - kGap, kMostRows)) out += "  " + line + "\n";
  return out;
}

}  // namespace

std::string RenderTriage(std::span<const TriagedJob> jobs, const TextStyle& style) {
  const int width = std::max(style.width, 40);
  std::string out = Table(jobs, width), same, hosts, unread;
  for (const SharedBy& shared : ByFingerprint(jobs)) {
    if (shared.jobs.size() < 2) break;
    const Verdict& first = jobs[shared.jobs.front()].verdict;
    same += Shared(fmt::format("{} jobs, same fingerprint {}: {}: {}", shared.jobs.size(), shared.what, first.cause,
                               Sanitize(first.title)),
                   NamesInWords(jobs, shared.jobs), width);
  }
  for (const SharedBy& shared : ByHost(jobs)) {
    if (shared.jobs.size() < 2) break;
    hosts += Shared(fmt::format("{} is the culprit of {} jobs", Sanitize(shared.what), shared.jobs.size()),
                    NamesInWords(jobs, shared.jobs), width);
  }
  for (const TriagedJob& job : jobs)
    if (!job.problem.empty())
      unread += Shared(fmt::format("{} was not read:", Sanitize(job.name)), Sanitize(job.problem), width);
  for (const std::string& part : {same, hosts, unread})
    if (!part.empty()) out += "\n" + part;
  const TriageCounts counts = CountsOf(jobs);
  out += fmt::format("\n{} job{}: {} failed, {} healthy, {} undecided", jobs.size(), jobs.size() == 1 ? "" : "s",
                     counts.failed, counts.healthy, counts.undecided);
  if (counts.unread > 0) out += fmt::format(", {} not read", counts.unread);
  return out + "\n";
}

}  // namespace inquest
