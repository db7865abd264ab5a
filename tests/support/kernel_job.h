// A job in which one rank is absent, and a kernel log of its host: what the tests of kernel lines have in common.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/support/run_job.h"

namespace inquest {

/// SynthJob's GPUs, without function: 0000:1b:00 for local rank 0, then 1f, 23, ...
inline std::string Address(int local_rank) { return fmt::format("0000:{:02x}:00", 0x1b + 4 * local_rank); }

inline std::string Xid(int number, const std::string& address, const std::string& rest = "") {
  return fmt::format("NVRM: Xid (PCI:{}): {}, {}\n", address, number, rest);
}

/// All but `absent` wait in an all-reduce; `kernel` is the log of `absent`'s host. SynthJob's clock starts at 06:00:00
/// on 5 April and prints no year; the time-outs stand at 06:11:40.
inline std::vector<SynthFile> WithKernelLog(const std::string& kernel, const std::string& name = "", int absent = 5,
                                            int ranks = 8, int hosts = 2) {
  using namespace std::chrono_literals;
  SynthJob job({.ranks = ranks, .hosts = hosts});
  job.Init(job.NewComm(job.AllRanks()));
  job.Wait(700s);
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == absent) continue;
    job.TimeOut(rank, {});
    job.Status(rank, {});
  }
  std::vector<SynthFile> files = job.PerRank();
  files.push_back({name.empty() ? job.Host(absent) + "-dmesg.txt" : name, kernel});
  return files;
}

inline Verdict VerdictWith(const std::string& kernel, const std::string& name = "", int absent = 5) {
  const JobFolder folder(WithKernelLog(kernel, name, absent));
  return AnalyzePaths({folder.path()}).verdict;
}

inline std::set<std::string> CulpritHosts(const Verdict& verdict) {
  std::set<std::string> hosts;
  for (const Culprit& culprit : verdict.culprits)
    if (culprit.host) hosts.insert(*culprit.host);
  return hosts;
}

}  // namespace inquest
