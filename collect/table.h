// What `inquest collect` gathers on a node: the table.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>

namespace inquest {

/// What a program printed that failed: evidence of the node's state, or only of how it was asked.
enum class OnFailure : std::uint8_t { kKeep, kDrop };
/// Whether words that look like secrets are masked in it. Files of settings can hold some; what a driver prints does
/// not.
enum class Secrets : std::uint8_t { kNone, kMask };

/// One way to get one file of the bundle. Rows of one name are tried in order until one ends with 0.
struct CollectRow {
  std::string_view name;
  std::span<const std::string_view> command;  ///< empty: `file` is copied
  std::string_view file;
  std::chrono::seconds limit{};
  OnFailure on_failure = OnFailure::kKeep;
  Secrets secrets = Secrets::kNone;
};
std::span<const CollectRow> CollectTable();

}  // namespace inquest
