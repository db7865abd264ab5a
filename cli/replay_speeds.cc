// Reads and writes the baseline; what is measured, replay/speeds.cc decides.
#include "cli/replay_speeds.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/speed_file.h"

namespace inquest {

bool AsksForSpeeds(const ReplayOptions& options) { return !options.baseline.empty() || !options.save_baseline.empty(); }

Result<std::optional<Speeds>> BaselineFor(const ReplayOptions& options, const Plan& plan) {
  if (options.baseline.empty()) return std::optional<Speeds>();
  std::error_code error;
  std::ifstream file(options.baseline, std::ios::binary);
  if (!file || !std::filesystem::is_regular_file(options.baseline, error))
    return Error{"the baseline cannot be read", "inquest replay --save-baseline FILE writes one", options.baseline};
  Result<Speeds> speeds =
      ReadSpeeds({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()}, options.baseline);
  if (!speeds) return speeds.error();
  if (speeds->engine != plan.engine)
    return Error{fmt::format("the baseline is of engine {}, and this is {}", speeds->engine, plan.engine),
                 fmt::format("give --engine {}, or another baseline", speeds->engine), options.baseline};
  if (static_cast<int>(speeds->hosts.size()) != plan.ranks.value)
    return Error{fmt::format("the baseline is of {} ranks, and these are {}", speeds->hosts.size(), plan.ranks.value),
                 fmt::format("give --ranks {}, or another baseline", speeds->hosts.size()), options.baseline};
  return std::optional<Speeds>(*std::move(speeds));
}

SpeedReport RunSpeeds(const Plan& plan, const ReplayOptions& options, const std::optional<Speeds>& before,
                      const SpeedSetup& setup) {
  Speeds now = MeasureSpeeds(plan, options.sizes, setup);
  SpeedReport report{.compared = before ? Compare(plan, std::move(now), *before, setup) : Measured(std::move(now)),
                     .baseline = options.baseline,
                     .saved = ""};
  if (options.save_baseline.empty()) return report;
  const Speeds& speeds = report.compared.now;
  const bool whole = !speeds.interrupted &&
                     std::ranges::all_of(speeds.links, [](const LinkSpeed& link) { return link.error.empty(); });
  if (!whole) {
    report.compared.notes.push_back(
        fmt::format("{} was not written: not every link was measured", options.save_baseline));
    return report;
  }
  std::ofstream file(options.save_baseline, std::ios::binary | std::ios::trunc);
  file << SpeedsDocument(speeds, Version());
  file.close();
  if (file)
    report.saved = options.save_baseline;
  else
    report.compared.notes.push_back(
        fmt::format("{} could not be written: {}", options.save_baseline, std::strerror(errno)));
  return report;
}

}  // namespace inquest
