// Ranks that still run on this node, and the files that they said they would write.
#include "collect/running.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

namespace inquest {
namespace {

namespace fs = std::filesystem;
using std::string_view;

constexpr std::size_t kMostProcesses = 64;
constexpr std::array<string_view, 2> kDumpNames = {"nccl_trace_rank_", "comm_lib_trace_rank_"};

std::optional<std::int64_t> Number(string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// /dev/nvidia0, not /dev/nvidiactl, which nvidia-smi and monitors hold as well, nor /dev/nvidia-uvm.
bool IsGpu(string_view target) {
  constexpr string_view kDevice = "/dev/nvidia";
  return target.starts_with(kDevice) && Number(target.substr(kDevice.size()));
}

bool HoldsGpu(const fs::path& process) {
  std::error_code error;
  for (fs::directory_iterator it(process / "fd", error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (IsGpu(fs::read_symlink(it->path(), ignored).string())) return true;
  }
  return false;
}

std::optional<std::string> Value(const std::vector<std::string>& environment, string_view name) {
  for (const std::string& entry : environment)
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  return std::nullopt;
}

/// As NCCL does: %h the host up to its first dot, even of an address, %p the pid, %% a percent sign, any other as it
/// is.
std::string ExpandDebugFile(string_view pattern, string_view hostname, std::int64_t pid) {
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'h')
      path += hostname.substr(0, hostname.find('.'));
    else if (next == 'p')
      path += std::to_string(pid);
    else if (next == '%')
      path += '%';
    else
      path += pattern[i];
    if (next == 'h' || next == 'p' || next == '%') ++i;
  }
  return path;
}

std::string CacheFolder(const std::vector<std::string>& environment) {
  if (const auto cache = Value(environment, "XDG_CACHE_HOME"); cache && !cache->empty()) return *cache + "/torch";
  return Value(environment, "HOME").value_or("/root") + "/.cache/torch";
}

}  // namespace

std::vector<std::int64_t> ProcessesOnGpus(const std::string& proc) {
  std::vector<std::int64_t> pids;
  std::error_code error;
  for (fs::directory_iterator it(proc, error), end; !error && it != end; it.increment(error))
    if (const auto pid = Number(it->path().filename().string()); pid && HoldsGpu(it->path())) pids.push_back(*pid);
  std::sort(pids.begin(), pids.end());
  pids.resize(std::min(pids.size(), kMostProcesses));
  return pids;
}

std::vector<std::string> FilesNamedBy(const RunningRank& rank, string_view hostname) {
  std::vector<std::string> paths;
  if (const auto pattern = Value(rank.environment, "NCCL_DEBUG_FILE");
      pattern && !pattern->empty() && *pattern != "stdout" && *pattern != "stderr")
    paths.push_back(ExpandDebugFile(*pattern, hostname, rank.own_pid));
  const auto number = Value(rank.environment, "RANK");
  if (!number || !Number(*number)) return paths;
  for (const string_view name : {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"})
    if (const auto prefix = Value(rank.environment, name); prefix && !prefix->empty()) {
      const bool verbatim = Value(rank.environment, "TORCH_FR_DUMP_DYNAMIC_FILE_NAME") == "1";
      paths.push_back(verbatim ? *prefix : *prefix + *number);
      return paths;
    }
  for (const std::string& folder : {std::string("/tmp"), CacheFolder(rank.environment)})
    for (const string_view name : kDumpNames) paths.push_back(folder + "/" + std::string(name) + *number);
  return paths;
}

std::vector<std::string> DumpFolders(const std::vector<std::string>& environment) {
  return {"/tmp", CacheFolder(environment)};
}

std::vector<std::string> RecentDumps(const std::vector<std::string>& folders) {
  constexpr auto kDay = std::chrono::hours(24);
  std::vector<std::string> dumps;
  for (const std::string& folder : folders) {
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      const std::string name = it->path().filename().string();
      const auto begins = [&](string_view start) {
        return name.starts_with(start) && Number(string_view(name).substr(start.size()));
      };
      std::error_code ignored;
      if (std::none_of(kDumpNames.begin(), kDumpNames.end(), begins) || it->is_symlink(ignored) ||
          !it->is_regular_file(ignored))
        continue;
      if (fs::file_time_type::clock::now() - it->last_write_time(ignored) < kDay) dumps.push_back(it->path().string());
    }
  }
  std::sort(dumps.begin(), dumps.end());
  return dumps;
}

}  // namespace inquest
