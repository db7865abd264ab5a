// What a bundle says of itself: manifest.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace inquest {

/// One thing that was to be collected.
struct CollectedItem {
  std::string name;                  ///< in the bundle
  std::vector<std::string> command;  ///< empty: a file
  std::string source;                ///< the file; empty: a command
  std::string problem;               ///< why there is none of it, or not all; empty: it is whole
  bool kept = false;                 ///< the bundle has what there is of it
  std::optional<int> exit_code, signal;
  bool timed_out = false, cut = false;
  double seconds = 0;
  std::uint64_t bytes = 0;
};

struct Manifest {
  std::string hostname, time, tool_version;  ///< time: ISO 8601, UTC
  std::vector<CollectedItem> items;
};

/// parsers/formats/bundle_manifest.cc reads it back.
std::string RenderManifest(const Manifest& manifest);

}  // namespace inquest
