// What a library of collectives has to offer to be replayed: an engine, and one session of it in each worker.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "replay/call.h"
#include "replay/phase.h"
#include "replay/sequence.h"

namespace inquest {

/// What engines there may be, for whoever does not link them: engines.cc has one of each name.
inline constexpr std::array<std::string_view, 2> kEngineNames = {"gloo", "nccl"};

/// Small values that ranks leave for one another with the supervisor: NCCL's id, Gloo's addresses. From any thread.
class Store {
 public:
  virtual ~Store() = default;
  virtual void Set(const std::string& key, const std::string& bytes) = 0;
  /// Waits until some rank has set it; nullopt: the time is over, or the run is.
  virtual std::optional<std::string> Get(const std::string& key, std::chrono::milliseconds limit) = 0;
};

/// What a session is made for.
struct SessionSetup {
  int rank = 0, nranks = 1;
  Call call;
  std::optional<SequenceWork> sequence = {};  ///< instead of the call
  /// Of the engine, by the plan; variables of the environment stand in them by their own names. Of Gloo `interface`, or
  /// `address`, at which the rank listens. Of NCCL `library`, a path; the GPU by `bus-id`, else `device`, its number;
  /// `device-or-only`: where one GPU is all that can be seen, that one; `shared`: the rank's number among those that
  /// share a GPU, which take its MIG instances in turn where there are several.
  std::map<std::string, std::string> options;
  std::chrono::milliseconds
      patience{};  ///< longer than every deadline: the library must not give up before the supervisor does
};

/// Empty: it is not given.
inline std::string OptionValue(const std::map<std::string, std::string>& options, const std::string& key) {
  const auto found = options.find(key);
  return found == options.end() ? std::string() : found->second;
}

/// How far a step is.
struct StepState {
  enum class State : std::uint8_t { kPending, kDone, kFailed };
  State state = State::kDone;
  std::string error = {};  ///< of kFailed: one sentence, with the library's own words
};

/// A number that came out wrong.
struct WrongData {
  std::uint64_t elements = 0;  ///< how many are wrong
  std::uint64_t first = 0;     ///< index of the first, in the output
  std::string wanted, got;
  std::optional<std::uint32_t> step = {};  ///< of a sequence: the rank's step that it came out of
};

/// What an engine is made of on one host.
struct EngineProbe {
  std::string version;           ///< in its own words: `NCCL 2.28.9 of /usr/lib/libnccl.so.2, 8 GPUs`
  std::string tests;             ///< what a pass of it shows
  std::optional<int> nccl = {};  ///< NCCL's own number of the version: 22809
  std::optional<int> gpus = {};  ///< that ranks can be put on, MIG instances where the environment names those
};

/// One rank's use of an engine, for one call or for a sequence of them: then kEnqueued begins a whole pass of it, and
/// kCompleted is its end. All but async_error, progress and Abort are called from the worker's main thread.
class Session {
 public:
  virtual ~Session() = default;
  /// Begins the step that ends in `step.phase`; returns soon, whatever the library does: a call that blocks belongs in
  /// a thread. Called for kLibsLoaded to kRehearsed (the worker compares the calls before kWarmedUp); then for each
  /// iteration kDescriptorAgreed (fill the buffers; the worker compares afterwards), kEnqueued, kStarted, kCompleted,
  /// kVerified; at the end kFinalized. A step that means nothing to the engine is done at once.
  virtual StepState Begin(const Step& step) = 0;
  /// Asks the step that was begun last. Never waits.
  virtual StepState Poll() = 0;
  /// After kVerified: what was wrong; nullopt: nothing.
  virtual std::optional<WrongData> wrong_data() const = 0;
  /// How long the last completed iteration took on the device, from kEnqueued; nullopt: ask the clock.
  virtual std::optional<std::chrono::nanoseconds> device_time() const { return std::nullopt; }
  /// Of a sequence: how far this pass is. From another thread, at any time.
  virtual SequenceProgress progress() const { return {}; }
  /// Whether what can be verified is; after kBuffersReady.
  virtual bool verifies() const { return true; }
  /// What a reader must know of this run: library and version, interface, `via` lines. One sentence an entry.
  virtual std::vector<std::string> Describe() const = 0;
  /// What the library was last heard to say of what went wrong; empty: nothing. From another thread, at any time; takes
  /// microseconds, and asks the library nothing that another thread may be asking.
  virtual std::string async_error() const = 0;
  /// From another thread. May hang: the worker leaves with _exit when it does.
  virtual void Abort() = 0;
  /// For tests: changes one byte of the output after kCompleted, so that kVerified fails.
  virtual void Corrupt() = 0;
};

/// All that the program knows of an engine; listed in engines.cc.
struct Engine {
  std::string_view name;     ///< `gloo`
  std::string_view library;  ///< what it is made of, for people
  std::string_view tests;    ///< one sentence: what a pass of it shows, and what not
  std::string_view missing;  ///< why this build has it not, and what to install; empty: it has
  /// nullptr where it is missing. `store` outlives the session.
  std::unique_ptr<Session> (*make)(const SessionSetup& setup, Store& store);
  /// What stops it on this host (no driver, no library), with a hint. Under a second.
  Result<EngineProbe> (*probe)(const std::map<std::string, std::string>& options);
};

}  // namespace inquest
