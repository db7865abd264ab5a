// The NCCL engine's session, phase by phase, over a fake libcuda and a fake libnccl: no GPU is needed.
#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "replay/engines/engines.h"
#include "replay/ops.h"
#include "tests/catch.h"
#include "tests/replay/nccl/fake_gpu.h"

namespace inquest {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Where the ranks of the fake library meet; gone at the end.
struct Meetings {
  std::string folder = (std::filesystem::temp_directory_path() / "inquest-test-XXXXXX").string();
  Meetings() {
    if (::mkdtemp(folder.data()) != nullptr) ::setenv("TMPDIR", folder.c_str(), 1);
  }
  ~Meetings() {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
  }
} meetings;

class SharedStore final : public Store {
 public:
  void Set(const std::string& key, const std::string& bytes) override {
    const std::lock_guard lock(mutex_);
    values_[key] = bytes;
    changed_.notify_all();
  }
  std::optional<std::string> Get(const std::string& key, milliseconds limit) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, limit, [&] { return values_.contains(key); })) return std::nullopt;
    return values_[key];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

/// A setting of the fake driver, for as long as this stands.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Setting() { ::unsetenv(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
};

template <class Function>
Function* OfFakeNccl(const char* name) {
  void* const library = ::dlopen(FAKE_NCCL, RTLD_NOW);
  REQUIRE(library != nullptr);
  return reinterpret_cast<Function*>(::dlsym(library, name));
}
/// How the fake library shall behave from here on.
void Script(FakeNccl what) { OfFakeNccl<void(FakeNccl)>("FakeNcclScript")(what); }

StepState Await(Session& session, StepState state, milliseconds limit) {
  const auto end = steady_clock::now() + limit;
  while (state.state == StepState::State::kPending && steady_clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(1));
    state = session.Poll();
  }
  return state;
}

constexpr Phase kOnce[] = {Phase::kLibsLoaded, Phase::kDeviceSet,    Phase::kIdReceived, Phase::kCommInit,
                           Phase::kConnected,  Phase::kBuffersReady, Phase::kWarmedUp,   Phase::kRehearsed};
constexpr Phase kRepeated[] = {Phase::kDescriptorAgreed, Phase::kEnqueued, Phase::kStarted, Phase::kCompleted,
                               Phase::kVerified};

/// Where a rank's session ended: the step it could not finish and its state, or kFinalized.
struct End {
  Step step;
  StepState state;
  std::optional<WrongData> wrong;
};

End RunSession(Session& session, int iterations, milliseconds limit, int corrupted = 0) {
  const auto reach = [&](const Step& step) { return Await(session, session.Begin(step), limit); };
  for (const Phase phase : kOnce) {
    const StepState state = reach({phase, 0});
    if (state.state != StepState::State::kDone) return {{phase, 0}, state, {}};
  }
  for (int iteration = 1; iteration <= iterations; ++iteration) {
    for (const Phase phase : kRepeated) {
      if (phase == Phase::kVerified && iteration == corrupted) session.Corrupt();
      const StepState state = reach({phase, iteration});
      if (state.state != StepState::State::kDone) return {{phase, iteration}, state, {}};
    }
    if (session.wrong_data()) return {{Phase::kVerified, iteration}, {}, session.wrong_data()};
  }
  return {{Phase::kFinalized, 0}, reach({Phase::kFinalized, 0}), {}};
}

struct Job {
  explicit Job(const Call& call, int nranks, std::map<std::string, std::string> options = {}) {
    options["library"] = FAKE_NCCL;
    const Engine* engine = FindEngine("nccl");
    REQUIRE(engine != nullptr);
    for (int rank = 0; rank < nranks; ++rank)
      sessions.push_back(engine->make(
          {.rank = rank, .nranks = nranks, .call = call, .options = options, .patience = milliseconds(5000)}, store));
  }
  /// A session whose thread still waits would never end.
  ~Job() {
    for (auto& session : sessions) session->Abort();
  }
  std::vector<End> Run(int iterations, milliseconds limit = milliseconds(5000)) {
    std::vector<End> ends(sessions.size());
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < sessions.size(); ++rank)
      threads.emplace_back(
          [&, rank] { ends[rank] = RunSession(*sessions[rank], iterations, limit, rank == 1 ? corrupted : 0); });
    for (std::thread& thread : threads) thread.join();
    return ends;
  }
  SharedStore store;
  std::vector<std::unique_ptr<Session>> sessions;
  int corrupted = 0;
};

TEST_CASE("nccl engine: every operation and datatype, data verified", "[unit][replay]") {
  Script(FakeNccl::kRight);
  for (const ReplayOp& op : ReplayOps()) {
    for (const DatatypeRow& type : kDatatypes) {
      for (const bool in_place : {false, true}) {
        CAPTURE(op.name, type.name, in_place);
        Job job({.operation = op.operation,
                 .count = op.operation == Operation::kBarrier ? 1U : 37U,
                 .datatype = type.type,
                 .root = op.needs_root ? 2 : 0,
                 .peer = op.needs_peer ? 1 : 0,
                 .in_place = in_place},
                3);
        for (const End& end : job.Run(2)) {
          CHECK(end.state.error == "");
          CHECK(end.step == Step{Phase::kFinalized, 0});
          CHECK_FALSE(end.wrong);
        }
      }
    }
  }
}

TEST_CASE("nccl engine: reductions of every kind, and uneven splits", "[unit][replay]") {
  Script(FakeNccl::kRight);
  for (const RedOp redop : {RedOp::kSum, RedOp::kProd, RedOp::kMax, RedOp::kMin, RedOp::kAvg}) {
    CAPTURE(Name(redop));
    for (const End& end : Job({.operation = Operation::kReduceScatter, .count = 11, .redop = redop}, 4).Run(1))
      CHECK(end.step == Step{Phase::kFinalized, 0});
  }
  for (const End& end : Job({.operation = Operation::kAllToAll, .splits = {3, 0, 5}}, 3).Run(2)) {
    CHECK(end.state.error == "");
    CHECK(end.step == Step{Phase::kFinalized, 0});
  }
}

TEST_CASE("nccl engine: one changed byte is found and named", "[unit][replay]") {
  Script(FakeNccl::kRight);
  Job job({.operation = Operation::kAllReduce, .count = 100, .datatype = Datatype::kFloat32}, 3);
  job.corrupted = 2;
  const auto ends = job.Run(2);
  REQUIRE(ends[1].wrong);
  CHECK(ends[1].step == Step{Phase::kVerified, 2});
  CHECK(ends[1].wrong->elements == 1);
  CHECK(ends[1].wrong->first == 50);
  CHECK(ends[1].wrong->wanted != ends[1].wrong->got);
  CHECK_FALSE(ends[0].wrong);
}

bool Says(const Session& session, std::string_view words) {
  return std::ranges::any_of(session.Describe(),
                             [&](const std::string& line) { return line.find(words) != std::string::npos; });
}

TEST_CASE("nccl engine: where the driver cannot compile, the host fills and verifies", "[unit][replay]") {
  Script(FakeNccl::kRight);
  constexpr std::uint64_t kCount = 1'200'000;  // of 4 bytes: more than one chunk, more than one element a thread
  const Call sum{.operation = Operation::kAllReduce, .count = kCount}, moved{Operation::kBroadcast, kCount};
  for (const char* refusal : {"0", "221", "223"}) {
    const Setting setting("FAKE_CUDA_JIT", refusal);
    const bool by_host = refusal != std::string_view("0");
    for (const Call& call : {sum, moved}) {
      CAPTURE(refusal, Describe(call));
      Job job(call, 2);
      job.corrupted = 2;
      const auto ends = job.Run(2);
      CHECK(ends[0].state.error == "");
      CHECK(ends[0].step == Step{Phase::kFinalized, 0});
      REQUIRE(ends[1].wrong);
      CHECK(ends[1].step == Step{Phase::kVerified, 2});
      CHECK(ends[1].wrong->elements == 1);
      CHECK(ends[1].wrong->first == kCount / 2);
      CHECK(Says(*job.sessions[0], "the host fills and verifies the data") == by_host);
    }
  }
  // What is wrong with the GPU is no reason to go on without it.
  const Setting setting("FAKE_CUDA_JIT", "700");
  const End failed = Job(sum, 1).Run(1)[0];
  CHECK(failed.step == Step{Phase::kBuffersReady, 0});
  CHECK(failed.state.error.find("CUDA error 700") != std::string::npos);
}

TEST_CASE("nccl engine: a rank is on the GPU that has the address, however that is written", "[unit][replay]") {
  Script(FakeNccl::kRight);
  for (const auto& [address, number] : {std::pair{"0000:0d:00.0", 3}, std::pair{"00000000:0F:00.0", 5}}) {
    Job job({.operation = Operation::kAllReduce, .count = 10}, 1, {{"bus-id", address}, {"device", "0"}});
    CHECK(job.Run(1)[0].step == Step{Phase::kFinalized, 0});
    CHECK(Says(*job.sessions[0], "GPU " + std::to_string(number) + ": Fake GPU"));
  }
  const End end = Job({.operation = Operation::kAllReduce, .count = 10}, 1, {{"bus-id", "0000:4e:00.0"}}).Run(1)[0];
  CHECK(end.step == Step{Phase::kDeviceSet, 0});
  CHECK(end.state.error.find("belongs on GPU 0000:4e:00.0, which is not among the 8") != std::string::npos);
}

TEST_CASE("nccl engine: it warms up with the operation that it measures", "[unit][replay]") {
  // A few elements, the whole call, and then the iteration; of few elements the first two are one.
  struct Row {
    Operation operation;
    std::string once;
  };
  for (const Row& row : {Row{Operation::kAllGather, "AllGather "}, Row{Operation::kReduceScatter, "ReduceScatter "},
                         Row{Operation::kAllToAll, "Send Recv "}}) {
    for (const std::uint64_t count : {100'000U, 1024U}) {
      CAPTURE(Name(row.operation), count);
      Script(FakeNccl::kRight);
      CHECK(Job({.operation = row.operation, .count = count}, 1).Run(1)[0].step == Step{Phase::kFinalized, 0});
      CHECK(std::string(OfFakeNccl<const char*()>("FakeNcclCalls")()) ==
            row.once + row.once + (count > 1024 ? row.once : ""));
    }
  }
}

TEST_CASE("nccl engine: what only large calls connect hangs before anything is measured", "[unit][replay]") {
  Script(FakeNccl::kRight);
  const Setting setting("FAKE_NCCL_LARGEST", "200000");
  for (const Call& call : {Call{.operation = Operation::kAllReduce, .count = 100'000},
                           Call{.operation = Operation::kSendRecv, .count = 100'000, .root = 0, .peer = 1},
                           Call{.operation = Operation::kAllToAll, .splits = {5, 60'000}}}) {
    CAPTURE(Describe(call));
    Job job(call, 2);
    const auto ends = job.Run(1, milliseconds(300));
    CHECK(ends[1].step == Step{Phase::kRehearsed, 0});
    CHECK(ends[1].state.state == StepState::State::kPending);
  }
}

TEST_CASE("nccl engine: where PyTorch has one buffer, the GPU holds one", "[unit][replay]") {
  Script(FakeNccl::kRight);
  struct Row {
    Operation operation;
    bool fits;
  };
  for (const Row& row : {Row{Operation::kAllReduce, true}, Row{Operation::kBroadcast, true},
                         Row{Operation::kReduce, true}, Row{Operation::kAllGather, false}}) {
    const Call call{.operation = row.operation, .count = 1 << 20U};
    CAPTURE(Describe(call));
    const Setting setting("FAKE_CUDA_MEMORY", "6000000");  // one such buffer, and not two
    const End end = Job(call, 1).Run(1)[0];
    CHECK(end.step == (row.fits ? Step{Phase::kFinalized, 0} : Step{Phase::kBuffersReady, 0}));
    CHECK_FALSE(end.wrong);
  }
}

TEST_CASE("nccl engine: 8-bit floats where NCCL or the GPU has none are refused before anyone communicates",
          "[unit][replay]") {
  Script(FakeNccl::kRight);
  const Call sum{.operation = Operation::kAllReduce, .count = 10, .datatype = Datatype::kFloat8E4M3};
  Call moved = sum;
  moved.operation = Operation::kAllGather;
  {
    const Setting setting("FAKE_NCCL_VERSION", "22304");
    for (const Call& call : {sum, moved}) {
      const End end = Job(call, 1).Run(1)[0];
      CHECK(end.step == Step{Phase::kDeviceSet, 0});
      CHECK(end.state.error.find("NCCL 2.23.4 has no float8e4m3") != std::string::npos);
    }
  }
  const Setting setting("FAKE_CUDA_CAPABILITY", "89");
  const End end = Job(sum, 1).Run(1)[0];
  CHECK(end.step == Step{Phase::kDeviceSet, 0});
  CHECK(end.state.error.find("Fake GPU at 0000:0A:00.0 has 8.9") != std::string::npos);
  CHECK(Job(moved, 1).Run(1)[0].step == Step{Phase::kFinalized, 0});
}

TEST_CASE("nccl engine: what the GPU cannot hold is said with numbers", "[unit][replay]") {
  Script(FakeNccl::kRight);
  const Setting setting("FAKE_CUDA_MEMORY", "1000000000");
  const End end = Job({.operation = Operation::kAllGather, .count = 300'000'000}, 1).Run(1)[0];
  CHECK(end.step == Step{Phase::kBuffersReady, 0});
  CHECK(end.state.error.find("the buffers of one rank need 2.2 GiB, and the GPU has 0.") != std::string::npos);
}

TEST_CASE("nccl engine: what hangs stays pending, can be asked and aborted", "[unit][replay]") {
  struct Row {
    FakeNccl script;
    Step at;
  };
  for (const Row& row :
       {Row{FakeNccl::kInitHangs, {Phase::kCommInit, 0}}, Row{FakeNccl::kNeverCompletes, {Phase::kCompleted, 1}}}) {
    Script(row.script);
    Job job({.operation = Operation::kBroadcast, .count = 10}, 2);
    for (const End& end : job.Run(1, milliseconds(300))) {
      CHECK(end.step == row.at);
      CHECK(end.state.state == StepState::State::kPending);
    }
    // As the heartbeat does, while the session's own thread asks the library: the fake one ends a process in which two
    // do.
    for (int i = 0; i < 100; ++i) {
      CHECK(job.sessions[0]->async_error().empty());
      std::this_thread::sleep_for(milliseconds(1));
    }
    for (auto& session : job.sessions) session->Abort();
    for (auto& session : job.sessions) {
      const StepState state = Await(*session, {StepState::State::kPending, ""}, milliseconds(2000));
      CHECK(state.state == StepState::State::kFailed);
      CHECK(state.error.find("aborted") != std::string::npos);
    }
  }
}

TEST_CASE("nccl engine: the library's errors come with its own words", "[unit][replay]") {
  Script(FakeNccl::kAsyncError);
  for (const End& end : Job({.operation = Operation::kAllReduce, .count = 10}, 2).Run(1)) {
    CHECK(end.state.state == StepState::State::kFailed);
    CHECK(end.state.error.find("remote process exited or there was a network error (6): socketProgress: Connection "
                               "closed by remote peer") != std::string::npos);
  }
  Script(FakeNccl::kInitFails);
  const End failed = Job({.operation = Operation::kAllReduce, .count = 10}, 1).Run(1)[0];
  CHECK(failed.step == Step{Phase::kCommInit, 0});
  CHECK(failed.state.error.find("NCCL: ncclCommInitRankConfig: some error (1)") == 0);
}

TEST_CASE("nccl engine: between two steps an error is seen, and an abort comes through", "[unit][replay]") {
  Script(FakeNccl::kRight);
  Job job({.operation = Operation::kAllReduce, .count = 10}, 1);
  Session& session = *job.sessions[0];
  for (const Phase phase : kOnce)
    REQUIRE(Await(session, session.Begin({phase, 0}), milliseconds(5000)).state == StepState::State::kDone);
  for (const Phase phase : kRepeated)
    REQUIRE(Await(session, session.Begin({phase, 1}), milliseconds(5000)).state == StepState::State::kDone);
  CHECK(session.async_error().empty());
  Script(FakeNccl::kAsyncError);
  const auto end = steady_clock::now() + milliseconds(2000);
  while (session.async_error().empty() && steady_clock::now() < end) std::this_thread::sleep_for(milliseconds(10));
  CHECK(session.async_error() == "remote process exited or there was a network error (6)");
  session.Abort();
  const StepState after = Await(session, session.Begin({Phase::kEnqueued, 2}), milliseconds(2000));
  CHECK(after.error.find("aborted") != std::string::npos);
  Script(FakeNccl::kRight);
}

TEST_CASE("nccl engine: a library that is missing, too old or none is said before anything runs", "[unit][replay]") {
  const Engine* engine = FindEngine("nccl");
  Script(FakeNccl::kRight);
  const auto found = engine->probe({{"library", FAKE_NCCL}});
  REQUIRE(found);
  CHECK(found->version.starts_with("NCCL 2.28.9 of "));
  {
    const Setting setting("FAKE_CUDA_INIT", "100");
    const auto none = engine->probe({{"library", FAKE_NCCL}});
    REQUIRE_FALSE(none);
    CHECK(none.error().message == "no GPU can be used: CUDA error 100 (no CUDA-capable device is detected)");
  }
  {
    const Setting setting("FAKE_CUDA_DEVICES", "0");
    const auto none = engine->probe({{"library", FAKE_NCCL}});
    REQUIRE_FALSE(none);
    CHECK(none.error().message == "no GPU can be used: the driver finds none");
  }
  Script(FakeNccl::kOld);
  const auto old = engine->probe({{"library", FAKE_NCCL}});
  REQUIRE_FALSE(old);
  CHECK(old.error().message.find("NCCL 2.13.4") == 0);
  CHECK_FALSE(engine->probe({{"library", "/nowhere/libnccl.so.2"}}));
  CHECK_FALSE(engine->probe({{"library", "libm.so.6"}}));
  Script(FakeNccl::kRight);
}

}  // namespace
}  // namespace inquest
