// What the reports for people say in the same words: sizes, whom the verdict blames, whether to start again.
#include "report/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace inquest {
namespace {

bool Together(const Culprit& a, const Culprit& b) {
  if (a.host != b.host || a.why != b.why || a.rank.has_value() != b.rank.has_value()) return false;
  return a.rank || (a.pid && b.pid && a.gpu_index == b.gpu_index && a.bus_id == b.bus_id);
}

}  // namespace

std::string Percent(double confidence) { return fmt::format("{:.0f} %", confidence * 100); }

std::string FirstClause(const std::string& claim) { return claim.substr(0, claim.find("; ")); }

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
    if (row == rows.end()) row = rows.insert(rows.end(), {&culprit, {}, {}, 0});
    if (culprit.rank) row->ranks.push_back(culprit.rank->value);
    if (culprit.pid) row->pids.push_back(*culprit.pid);
    ++row->count;
  }
  return rows;
}

std::string Who(const Suspects& suspects) {
  const Culprit& first = *suspects.first;
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

std::string_view RetryInWords(const Verdict& verdict) {
  static const std::map<std::string_view, std::string_view> kWords = {
      {"yes", "yes, as it is"},
      {"after-fix", "only after the fix below"},
      {"elsewhere", "yes, on other nodes; keep the culprit out"},
      {"no", "not yet: nothing says that it would end differently"}};
  const auto words = kWords.find(verdict.retry);
  return verdict.outcome == Outcome::kHealthy || words == kWords.end() ? std::string_view() : words->second;
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

std::optional<Remedy> ReplayRemedy(const Verdict& verdict, const std::string& command) {
  if (command.empty() || !verdict.replay_helps) return std::nullopt;
  Remedy out;
  out.text = "Run the collective alone: it hangs again only if the machines are at fault.";
  out.command = command;
  out.kind = Remedy::Kind::kShell;
  return out;
}

}  // namespace inquest
