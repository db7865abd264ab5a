// How far a rank is: the steps that every worker goes through, in order.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace inquest {

/// A rank is *in* a phase from the moment it has reached it. kEnqueued, kStarted and kCompleted come once an iteration.
enum class Phase : std::uint8_t {
  kSpawned,           ///< the process exists
  kLibsLoaded,        ///< said hello; the engine's library is loaded
  kDeviceSet,         ///< CUDA context, or the network interface
  kIdReceived,        ///< knows how to meet the others
  kCommInit,          ///< the communicator exists
  kConnected,         ///< connected to the others, where the engine does that beforehand
  kBuffersReady,      ///< allocated and filled
  kWarmedUp,          ///< a small operation on the same communicator is done
  kRehearsed,         ///< the very call was made once, where the engine connects in first calls of a size
  kDescriptorAgreed,  ///< every rank asks for the same call
  kEnqueued,          ///< the call was made
  kStarted,           ///< the device works on it
  kCompleted,
  kVerified,  ///< the data is right
  kFinalized,
  kExited,
};
inline constexpr std::array<std::string_view, 16> kPhases = {
    "spawned",   "libs-loaded", "device-set",        "id-received", "comm-init", "connected", "buffers-ready",
    "warmed-up", "rehearsed",   "descriptor-agreed", "enqueued",    "started",   "completed", "verified",
    "finalized", "exited"};
constexpr std::string_view Name(Phase phase) { return kPhases[static_cast<std::size_t>(phase)]; }
/// Comes once an iteration.
constexpr bool IsRepeated(Phase phase) { return phase >= Phase::kDescriptorAgreed && phase <= Phase::kVerified; }

/// A phase with its own iteration number, from 1; 0 for those that come once. Ordered by how far a rank is.
struct Step {
  Phase phase = Phase::kSpawned;
  int iteration = 0;
  bool operator==(const Step&) const = default;
};
constexpr bool IsBefore(const Step& a, const Step& b) {
  if (IsRepeated(a.phase) && IsRepeated(b.phase) && a.iteration != b.iteration) return a.iteration < b.iteration;
  return a.phase < b.phase;
}

/// `completed #2`, `comm-init`.
std::string Text(const Step& step);

}  // namespace inquest
