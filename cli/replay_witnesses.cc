// Everything here has a limit in time and in bytes: it is asked while something hangs.
#include "cli/replay_witnesses.h"

#include <fcntl.h>
#include <unistd.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <set>

#include "collect/child.h"
#include "replay/ras.h"
#include "replay/recipes.h"

namespace inquest {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRasLimit{2000}, kSmiLimit{5000};
constexpr std::size_t kMostAsked = 8, kMostKernelBytes = 256 * 1024, kMostSmiBytes = 1U << 20U, kShownCounters = 8;

std::string NotHad(std::string_view what, std::string_view why) {
  return fmt::format("{} could not be had: {}.\n", what, why);
}

}  // namespace

//   GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-...)
//   	 Link 0: CRC Errors: 0
LinkCounters ReadLinkCounters(std::string_view printed) {
  LinkCounters counters;
  std::string gpu;
  while (!printed.empty()) {
    const std::size_t end = std::min(printed.find('\n'), printed.size());
    std::string_view line = printed.substr(0, end);
    printed.remove_prefix(std::min(end + 1, printed.size()));
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
    if (line.starts_with("GPU ")) gpu = line.substr(0, line.find(':'));
    const std::size_t colon = line.rfind(": ");
    if (!line.starts_with("Link ") || colon == std::string_view::npos || line.find("Error") == std::string_view::npos)
      continue;
    std::uint64_t value = 0;
    const std::string_view number = line.substr(colon + 2);
    const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || rest != number.data() + number.size()) continue;
    std::string name(line.substr(0, colon));
    name[0] = 'l';
    name.erase(std::remove(name.begin(), name.end(), ':'), name.end());
    counters[gpu + " " + name] = value;
  }
  return counters;
}

std::vector<std::string> RisenCounters(const LinkCounters& before, const LinkCounters& after) {
  std::vector<std::string> risen;
  std::size_t more = 0;
  for (const auto& [name, value] : after) {
    const auto found = before.find(name);
    if (found == before.end() || value <= found->second) continue;
    if (risen.size() < kShownCounters)
      risen.push_back(fmt::format("{} rose by {}", name, value - found->second));
    else
      ++more;
  }
  if (more > 0) risen.push_back(fmt::format("{} more rose", more));
  return risen;
}

LinkCounters LinkCountersNow() {
  return ReadLinkCounters(
      RunChild({"nvidia-smi", "nvlink", "-e"}, {.time = kSmiLimit, .output_bytes = kMostSmiBytes}).output);
}

// /dev/kmsg gives one record a read, from where the descriptor stands; EPIPE: some were overwritten before they were
// read.
HostWitness::HostWitness(const char* kernel_log) : kernel_(::open(kernel_log, O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (kernel_.is_open() && ::lseek(kernel_.get(), 0, SEEK_END) >= 0) return;
  no_kernel_ = std::strerror(errno);
  kernel_.Close();
}

void HostWitness::Begin() {
  const std::lock_guard lock(mutex_);
  if (kernel_.is_open()) ::lseek(kernel_.get(), 0, SEEK_END);
}

std::string HostWitness::ReadKernel() {
  const std::lock_guard lock(mutex_);
  std::string lines, record(8192, '\0');
  while (kernel_.is_open()) {
    const ssize_t got = ::read(kernel_.get(), record.data(), record.size());
    if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (got <= 0) break;
    lines.append(record.data(), static_cast<std::size_t>(got));
    if (lines.size() > kMostKernelBytes) break;
  }
  return lines;
}

std::map<std::string, std::string> HostWitness::Look(const std::vector<LiveRank>& ranks) {
  std::map<int, std::string> addresses;
  std::set<std::string> seen;
  bool is_witnessed = false;
  for (const LiveRank& rank : ranks) {
    is_witnessed = is_witnessed || IsWitnessed(rank.env);
    const auto address = rank.env.find("NCCL_RAS_ADDR");
    if (address != rank.env.end() && addresses.size() < kMostAsked && seen.insert(address->second).second)
      addresses.emplace(rank.rank, address->second);
  }
  if (!is_witnessed) return {};
  std::map<std::string, std::string> texts;
  std::map<std::string, std::vector<int>> silent;
  for (auto& [rank, answer] : AskRas(addresses, kRasLimit)) {
    if (!answer.error.empty()) silent[answer.error].push_back(rank);
    if (!answer.text.empty())
      texts[fmt::format("ras.rank{}.{}", rank, answer.is_json ? "json" : "txt")] = std::move(answer.text);
  }
  std::string not_had;
  for (const auto& [why, some] : silent)
    not_had += NotHad(fmt::format("NCCL's RAS of rank {}", fmt::join(some, ", ")), why);
  texts.merge(Ask());
  if (!not_had.empty()) texts[kNotHad] += not_had;
  return texts;
}

std::map<std::string, std::string> HostWitness::Ask() {
  std::map<std::string, std::string> texts;
  std::string not_had;
  ChildEnd smi = RunChild({"nvidia-smi", "-q"}, {.time = kSmiLimit, .output_bytes = kMostSmiBytes});
  if (!smi.missing.empty()) not_had += NotHad("nvidia-smi -q", smi.missing);
  if (smi.timed_out)
    not_had +=
        NotHad("nvidia-smi -q", fmt::format("it did not end within {} s, as where the driver hangs",
                                            std::chrono::duration_cast<std::chrono::seconds>(kSmiLimit).count()));
  if (!smi.output.empty()) texts["nvidia-smi-q.txt"] = std::move(smi.output);
  if (!no_kernel_.empty()) not_had += NotHad("The kernel's log", no_kernel_);
  if (std::string lines = ReadKernel(); !lines.empty()) texts["kernel.txt"] = std::move(lines);
  if (!not_had.empty()) texts[kNotHad] = std::move(not_had);
  return texts;
}

}  // namespace inquest
