// What a sieve is made of, and how it lies in the binary: ready for use, so that starting costs nothing. Beside
// sieve.cc the only door to libhs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "search/window_filter.h"

struct hs_database;  // libhs' hs_database_t

namespace inquest {

/// With what frees it: nothing, where it lies in the binary.
using Database = std::unique_ptr<const hs_database, void (*)(const hs_database*)>;
void FreeCompiled(const hs_database* db);
Database NoDatabase();

/// Two databases and what their ids mean.
struct Layer {
  Database covered = NoDatabase(), anywhere = NoDatabase();  ///< each null if nothing is looked for that way
  std::vector<std::uint32_t> ids;  ///< by the databases' id: the sieve's, or kDropped; empty: the same
};
inline constexpr std::uint32_t kDropped = ~0u;

struct PackedSieve {
  Layer layer;
  WindowFilter::Tables tables;
  std::string_view literals_part;
  std::vector<WindowFilter::Literal> literals() const;  ///< what the tables were made of
};

Result<std::string> Pack(const Layer& layer, const std::vector<WindowFilter::Literal>& literals);

/// Speaks of the bytes, which must live on. nullopt where they are no sieve, or one for another libhs than this.
std::optional<PackedSieve> Unpack(std::string_view bytes);

}  // namespace inquest
