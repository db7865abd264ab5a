// What supervisor and worker say to one another: one JSON text a packet, over a socket that keeps packets apart.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "replay/engine.h"
#include "replay/plan.h"

namespace inquest {

/// The worker finds its socket at this descriptor; a worker and a supervisor of two versions refuse one another.
inline constexpr int kWorkerSocket = 3;
inline constexpr int kWireVersion = 4;
/// How a worker leaves whose library's abort did not return in time.
inline constexpr int kExitAbortHung = 5;
/// Longer packets are refused by either side.
inline constexpr std::size_t kPacketBytes = 128 * 1024;

// ---- to the worker ------------------------------------------------------------------------------------------------
struct StartWork {
  static constexpr std::string_view kKind = "start";
  std::string engine;
  SessionSetup setup;  ///< with the call that the plan wants; faults alter it
  int iterations = 1;
  bool warm_up = true;
  std::chrono::milliseconds heartbeat{100};
  std::vector<Fault> faults;  ///< of this rank
};
struct StoreValue {  ///< the answer to StoreGet
  static constexpr std::string_view kKind = "value";
  std::string key, bytes;
};
struct Proceed {  ///< all ranks asked for the same call
  static constexpr std::string_view kKind = "proceed";
  int iteration = 0;
};
struct AbortWork {  ///< Session::Abort, then leave; after `grace` leave without it
  static constexpr std::string_view kKind = "abort";
  std::chrono::milliseconds grace{};
};
struct Leave {  ///< all is well and every rank is done
  static constexpr std::string_view kKind = "leave";
};
using ToWorker = std::variant<StartWork, StoreValue, Proceed, AbortWork, Leave>;

// ---- to the supervisor --------------------------------------------------------------------------------------------
struct Hello {
  static constexpr std::string_view kKind = "hello";
  int wire = kWireVersion;
  std::string host;
};
struct Began {
  static constexpr std::string_view kKind = "began";
  Step step;
};
struct Reached {
  static constexpr std::string_view kKind = "reached";
  Step step;
  std::optional<std::chrono::nanoseconds> took;  ///< of kCompleted, since kEnqueued began
};
struct Heartbeat {  ///< from a thread of its own, whatever the main thread hangs in
  static constexpr std::string_view kKind = "heartbeat";
  std::string async_error;    ///< Session::async_error
  SequenceProgress progress;  ///< Session::progress
};
struct Descriptor {  ///< what this rank is about to ask for; answered by Proceed
  static constexpr std::string_view kKind = "descriptor";
  int iteration = 0;
  Call call;
};
struct StoreSet {
  static constexpr std::string_view kKind = "set";
  std::string key, bytes;
};
struct StoreGet {
  static constexpr std::string_view kKind = "get";
  std::string key;
};
struct WorkFailed {
  static constexpr std::string_view kKind = "failed";
  Step step;  ///< that was not reached
  std::string error;
  std::optional<WrongData> wrong_data;
};
struct Described {
  static constexpr std::string_view kKind = "described";
  std::vector<std::string> lines;  ///< Session::Describe
  bool verifies = true;            ///< Session::verifies
};
using ToSupervisor =
    std::variant<Hello, Began, Reached, Heartbeat, Descriptor, StoreSet, StoreGet, WorkFailed, Described>;

/// What a worker prints when it is asked for an engine: `probe ENGINE [NAME=VALUE]...`
struct ProbeAnswer {
  static constexpr std::string_view kKind = "probed";
  EngineProbe found;
  std::string missing, hint;  ///< empty: all is there
};

/// Of bytes that are no text: ids, addresses, keys.
std::string HexDigits(std::string_view bytes);
/// What Hello says of this host; empty: the kernel does not tell.
std::string OwnHostName();

std::string Encode(const ToWorker& message);
std::string Encode(const ToSupervisor& message);
/// nullopt: not a message of ours. The other side is never trusted.
std::optional<ToWorker> DecodeToWorker(std::string_view packet);
std::optional<ToSupervisor> DecodeToSupervisor(std::string_view packet);
std::string EncodeProbe(const ProbeAnswer& answer);
std::optional<ProbeAnswer> DecodeProbe(std::string_view text);

}  // namespace inquest
