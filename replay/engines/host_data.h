// Fills and verifies buffers in the host's memory by the patterns of check.h.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "replay/engine.h"
#include "replay/engines/check.h"

namespace inquest {

/// One rank's view of a call.
struct DataShape {
  Call call;
  int rank = 0, nranks = 1;
};
std::uint64_t BytesIn(const DataShape& shape);
std::uint64_t BytesOut(const DataShape& shape);
ElementPattern PatternOf(const DataShape& shape, int iteration);

/// What the rank hands in. `input` holds BytesIn.
void FillInput(const DataShape& shape, int iteration, std::span<std::byte> input);
/// What no correct result is, so that a part that never arrives is seen.
void SpoilOutput(std::span<std::byte> output);
/// `output` holds BytesOut.
std::optional<WrongData> VerifyOutput(const DataShape& shape, int iteration, std::span<const std::byte> output);

/// An element as a number a person can read.
std::string ElementText(Datatype type, const std::byte* element);
/// Any float datatype's value, and the nearest bits of a value.
double FloatOf(Datatype type, std::uint64_t bits);
std::uint64_t FloatBits(Datatype type, double value);

}  // namespace inquest
