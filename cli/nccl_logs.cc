// A folder a run, a file a rank.
#include "cli/nccl_logs.h"

#include <unistd.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <utility>

#include "cli/commands.h"
#include "replay/recipes.h"

namespace inquest {

namespace fs = std::filesystem;

Result<NcclLogs> NcclLogs::In(const std::string& kept) {
  std::error_code error;
  if (!kept.empty()) {
    fs::create_directories(kept, error);
    if (error)
      return Error{fmt::format("the folder for NCCL's logs cannot be made: {}", error.message()),
                   "name another with --logs", kept};
    return NcclLogs(fs::absolute(kept, error).string(), std::nullopt);
  }
  const fs::path parent = fs::temp_directory_path(error);
  if (error)
    return Error{fmt::format("there is no folder for temporary files: {}", error.message()),
                 "TMPDIR names one; or name one for NCCL's logs with --logs", parent.string()};
  Result<ScratchFolder> scratch = ScratchFolder::In(parent.string());
  if (!scratch) return scratch.error();
  std::string folder = scratch->path();
  return NcclLogs(std::move(folder), std::move(*scratch));
}

void NcclLogs::Next() {
  std::error_code error;
  if (!current_.empty() && scratch_) fs::remove_all(current_, error);
  current_ = fmt::format("{}/run-{}", folder_, ++runs_);
  fs::create_directories(current_, error);
}

Plan NcclLogs::Attach(Plan plan) {
  Next();
  return LoggedTo(std::move(plan), current_);
}

std::vector<Plan> NcclLogs::Attach(std::vector<Plan> plans) {
  Next();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const std::string own = plans.size() == 1 ? current_ : fmt::format("{}/{}", current_, i);
    std::error_code error;
    fs::create_directories(own, error);
    plans[i] = LoggedTo(std::move(plans[i]), own);
  }
  return plans;
}

void NcclLogs::Keep(const std::map<std::string, std::string>& texts) const {
  if (current_.empty()) return;
  for (const auto& [name, text] : texts) {
    std::string file = name;  // of another node: `node07: ras.rank8.json`
    std::ranges::replace_if(
        file, [](unsigned char letter) { return std::isalnum(letter) == 0 && letter != '.' && letter != '-'; }, '_');
    std::ofstream(current_ + "/" + file, std::ios::binary) << text;
  }
}

NcclLogs::Reading NcclLogs::Read(const AnalysisOptions& options) const {
  std::error_code error;
  if (current_.empty() || fs::is_empty(current_, error) || error) return {};
  AnalysisOptions quiet = options;
  quiet.quiet = true;
  const auto analyzed = AnalyzeWith(quiet, {current_});
  const auto* analysis = std::get_if<Analysis>(&analyzed);
  if (analysis == nullptr) return {};
  Reading reading;
  std::set<std::string> cards;
  for (const Event& event : analysis->timeline.events) {
    if (const auto* channels = std::get_if<ChannelsVia>(&event.what)) reading.used.insert(channels->via);
    const auto* network = std::get_if<NetworkUsed>(&event.what);
    if (network != nullptr && network->use == NetworkUsed::Use::kRdma)
      cards.insert(network->devices.begin(), network->devices.end());
  }
  reading.cards.assign(cards.begin(), cards.end());
  const Verdict& verdict = analysis->verdict;
  if (verdict.outcome == Outcome::kFailed) reading.says = fmt::format("{}: {}", verdict.cause, verdict.summary);
  return reading;
}

}  // namespace inquest
