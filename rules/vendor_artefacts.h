// What a vendor asks for, and in which order a host is looked at so that nothing of it is lost: two tables.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace inquest {

/// Which cases want it.
enum class WantedFor : std::uint8_t {
  kEvery,
  kSwitches,  ///< a line speaks of an NVSwitch or of the fabric that is made of them
  kNetwork,   ///< a line speaks of a network adapter or its port
};

struct ArtefactRow {
  std::string_view name, why, command;  ///< command: with `{host}` and the like
  bool root = false;
  WantedFor wanted = WantedFor::kEvery;
  std::span<const std::string_view> formats;  ///< one of these was seen in an input: it is given
  std::span<const std::string_view> names;    ///< or its file's name holds one of these
  std::string_view bundle = {};               ///< what a bundle of `inquest collect` calls it; empty: it has none
};
std::span<const ArtefactRow> ArtefactTable();

/// Before what the errors ask for, and behind it.
struct StepRow {
  std::string_view text, command;
  bool root = false, destructive = false, behind = false;
  WantedFor wanted = WantedFor::kEvery;
  std::string_view step = {};  ///< of rules/steps.yaml, whose command it is; the text goes on where that one ends
};
std::span<const StepRow> StepTable();

}  // namespace inquest
