// `inquest collect`: gathers on a node what inquest reads, into one compressed tar. Nothing is sent anywhere.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collect/manifest.h"
#include "core/result.h"

namespace inquest {

struct CollectRequest {
  std::string output;  ///< `.tar.zst`, `.tar.gz` or `.tar`; empty: named by host and time; `-`: standard output
  std::vector<std::string> paths;                  ///< files and folders to put in
  std::vector<std::string> environment;            ///< the caller's, `NAME=value`
  std::optional<std::chrono::seconds> time_limit;  ///< of each program; else by what it does
  bool stacks = false;  ///< attach py-spy and gdb to processes on GPUs, which stops them for a moment
  std::string tool_version;
  std::function<bool()> interrupted = [] {
    return false;
  };  ///< once it says so the bundle is finished with what it has
};

struct Collected {
  std::string output;
  std::uint64_t bytes = 0;  ///< of the bundle
  std::vector<CollectedItem> items;
};

/// Runs programs one after the other, each with a time limit, in the caller's PATH. Takes minutes at worst: a program
/// that did not end twice, or not even when killed, is not called again. Not while other threads run.
Result<Collected> Collect(const CollectRequest& request);

}  // namespace inquest
