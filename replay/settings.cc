// What the job set for NCCL, as a plan's environment.
#include "replay/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace inquest {
namespace {

class Settings {
 public:
  Settings(Plan plan, const Timeline& timeline, const std::vector<std::optional<std::uint32_t>>& processes)
      : plan_(std::move(plan)), timeline_(timeline), processes_(processes) {}
  Plan Run() {
    Environment();
    return std::move(plan_);
  }

 private:
  void Environment() {
    std::map<std::string, std::map<std::uint32_t, std::string>> values;  // by name and process
    std::map<std::string, std::set<std::string>> of_nobody;              // whose process no line tells
    std::set<std::uint32_t> speak;
    for (const Event& event : timeline_.events) {
      const auto* set = std::get_if<EnvironmentSet>(&event.what);
      if (set == nullptr && !std::holds_alternative<CommInit>(event.what)) continue;
      const auto process = timeline_.ProcessOf(event);
      if (process) speak.insert(*process);
      if (set == nullptr || !set->name.starts_with("NCCL_") || IsOfTheRun(set->name)) continue;
      process ? (void)(values[set->name][*process] = set->value) : (void)of_nobody[set->name].insert(set->value);
    }
    for (const auto& [name, seen] : of_nobody)
      if (!values.contains(name)) SetForAll(name, seen);
    for (const auto& [name, seen] : values) SetByRank(name, seen, speak);
  }

  void SetForAll(const std::string& name, const std::set<std::string>& seen) {
    if (seen.size() > 1)
      plan_.notes.push_back(fmt::format("the ranks set {} differently; the replay leaves it alone", name));
    else if (NamesFile(name))
      plan_.notes.push_back(
          fmt::format("the job set {}={}; set it yourself if the replay shall too", name, *seen.begin()));
    else
      plan_.env[name] = *seen.begin();
  }

  void SetByRank(const std::string& name, const std::map<std::uint32_t, std::string>& by_process,
                 const std::set<std::uint32_t>& speak) {
    std::vector<std::optional<std::string>> by_rank;
    std::set<std::string> seen;
    const bool unplaced = std::ranges::none_of(processes_, [](const auto& process) { return process.has_value(); });
    bool some_lack = false, some_unknown = unplaced;
    for (const auto& process : processes_) {
      const auto found = process ? by_process.find(*process) : by_process.end();
      by_rank.push_back(found == by_process.end() ? std::nullopt : std::optional(found->second));
      if (found != by_process.end()) seen.insert(found->second);
      const bool silent = !process || !speak.contains(*process);
      some_unknown = some_unknown || silent;
      some_lack = some_lack || (found == by_process.end() && !silent);
    }
    if (unplaced) {
      for (const auto& [process, value] : by_process) seen.insert(value);
      for (const std::uint32_t process : speak) some_lack = some_lack || !by_process.contains(process);
    }
    if (seen.empty()) return;  // others than those that are replayed
    if (!some_lack && seen.size() == 1) return SetForAll(name, seen);
    if (some_unknown || NamesFile(name)) {
      plan_.notes.push_back(fmt::format("not all ranks set {} alike; the replay leaves it alone", name));
      return;
    }
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank)
      if (by_rank[rank]) plan_.places[rank].env[name] = *by_rank[rank];
  }

  static bool IsOfTheRun(std::string_view name) {
    // How that process was to be spoken to, and not what its ranks do to one another.
    return name.starts_with("NCCL_DEBUG") || name.starts_with("NCCL_RAS_") || name == "NCCL_HOSTID" ||
           name == "NCCL_COMM_ID" || name == "NCCL_COMM_BLOCKING" || name == "NCCL_PROXY_DUMP_SIGNAL";
  }
  static bool NamesFile(std::string_view name) {
    return name.ends_with("_PLUGIN") || name.ends_with("_FILE") || name.ends_with("_PATH") ||
           name.ends_with("_LIBRARY") || name.ends_with("_LIB");
  }

  Plan plan_;
  const Timeline& timeline_;
  const std::vector<std::optional<std::uint32_t>>& processes_;
};

}  // namespace

Plan WithSettings(Plan plan, const Timeline& timeline, const std::vector<std::optional<std::uint32_t>>& processes) {
  return Settings(std::move(plan), timeline, processes).Run();
}

}  // namespace inquest
