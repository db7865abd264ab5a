// What every session of NCCL has: the libraries, the GPU, its communicators, and the one thread that owns them.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "replay/engine.h"
#include "replay/engines/nccl_device.h"
#include "replay/engines/nccl_library.h"
#include "replay/engines/runner.h"

namespace inquest {

// Every call is made by one thread of the session, abort and destruction too, and it polls: communicators are
// non-blocking (NCCL 2.14), so that each call returns ncclInProgress and ncclCommGetAsyncError tells when it is
// through; streams are asked by events and never waited for. What hangs nevertheless hangs that thread alone. The
// worker's own threads go on telling the supervisor what it saw last.
//
// From 2.26 on ncclCommGetAsyncError finishes what a group has begun, so that two threads must not call it at once; nor
// may one that asks meet one that aborts or destroys. The runner's thread alone does any of it, and leaves what it saw
// for the others.
class NcclOwner : public Session {
 public:
  NcclOwner(const SessionSetup& setup, Store& store);
  StepState Poll() override { return runner_->state(); }
  std::string async_error() const override;
  void Abort() override;

 protected:
  StepState Run(std::function<void()> job);
  /// To be called by the destructor of what derives from it: the thread ends before anything that it uses.
  void EndRunner() { runner_.reset(); }

  // These are called on the runner's thread, and throw what goes wrong.
  void Load();
  void SetDevice();
  /// What this NCCL or this GPU cannot do.
  void CheckFloat8(const Call& call) const;
  /// Of the communicator of that key and those ranks of the replay, the first of which hands it out, once it has seen
  /// that they are on GPUs that NCCL takes together.
  nccl::UniqueId MakeId(const std::string& key, const std::vector<int>& ranks);
  nccl::UniqueId ReceiveId(const std::string& key);
  /// A further communicator; returns once all its ranks are there.
  void Init(int rank, int nranks, const nccl::UniqueId& id);
  void Finalize();
  nccl::Comm Comm(std::size_t number) const;

  struct Buffers {
    cuda::Pointer input = 0, output = 0;
  };
  /// What PyTorch calls for each operation. Sends and receives of one group, so that none waits for another.
  nccl::Status Collective(const DataShape& shape, const Buffers& buffers, nccl::Comm comm, cuda::Stream stream) const;
  /// Whether input and output are one buffer: PyTorch's all_reduce, broadcast and reduce have one; its barrier is an
  /// all-reduce. Sends and receives cannot have one.
  static bool IsInPlace(const Call& call);

  void CheckNccl(nccl::Status result, std::string_view what) const;
  /// Until a call that returned ncclInProgress is through.
  void Finish(nccl::Status result, std::string_view what);
  /// While the GPU is waited for: an error of a communicator ends that.
  void Look();
  /// Whenever something is waited for.
  virtual void Waiting() {}

  std::vector<std::string> DescribeLibraries() const;
  const std::string& Option(const std::string& key) const;

  SessionSetup setup_;
  Store& store_;
  nccl::Library library_;
  cuda::Gpu gpu_{[this] { Look(); }};

 private:
  int OwnDevice() const;
  void CheckOwnGpus(const std::vector<int>& ranks);
  std::string Words(nccl::Status result) const;
  nccl::Status Ask();
  void AbortIfAsked();
  void Gone();
  void LookIdly();

  struct Member {
    nccl::Comm comm = nullptr;
    /// NCCL's own thread stores into this until the communicator exists, even past an abort (2.14.3, init.cc); a worker
    /// never deletes its session.
    nccl::Comm made = nullptr;
  };
  std::deque<Member> members_;  ///< none moves
  enum class Life : int { kNone, kAlive, kGone };
  std::atomic<Life> life_ = Life::kNone;
  std::atomic<bool> abort_ = false;
  std::atomic<nccl::Status> seen_ = nccl::Status::kSuccess;  ///< the last error that the owner was told of
  std::unique_ptr<Runner> runner_;
};

/// Many calls of several communicators: a stream of CUDA for each stream of the log.
std::unique_ptr<Session> MakeNcclSequence(const SessionSetup& setup, Store& store);

}  // namespace inquest
