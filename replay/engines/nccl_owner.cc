// What every session of NCCL has.
#include "replay/engines/nccl_owner.h"

#include <stdlib.h>
#include <unistd.h>
#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <map>
#include <stdexcept>
#include <utility>

#include "replay/ops.h"

namespace inquest {
namespace {

constexpr int kFirstWithFloat8 = 22400;
/// From here on NCCL's guide has MIG instances; before, it takes them for the GPU that they are parts of.
constexpr int kFirstWithMig = 23200;

/// What a session sets up otherwise, or what would make calls wait. NCCL's files of settings fill in what is not set.
void ForgetSettings() {
  ::setenv("NCCL_COMM_BLOCKING", "0", 1);  // goes before the configuration
  ::unsetenv("NCCL_COMM_ID");              // the store hands out the id
  ::unsetenv("CUDA_LAUNCH_BLOCKING");
}

/// What NCCL takes for one host: its hash is of this (utils.cc, getHostHash), or of NCCL_HOSTID instead.
std::string HostOfHash(const std::string& host_id) {
  if (!host_id.empty()) return host_id;
  char name[256] = "";
  ::gethostname(name, sizeof(name) - 1);
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string id;
  boot >> id;
  return fmt::format("{} {}", name, id);
}

std::string KeyOfGpu(int rank) { return fmt::format("gpu.{}", rank); }

std::byte* At(cuda::Pointer pointer) { return reinterpret_cast<std::byte*>(pointer); }

}  // namespace

NcclOwner::NcclOwner(const SessionSetup& setup, Store& store)
    : setup_(setup),
      store_(store),
      runner_(std::make_unique<Runner>(
          "NCCL", [](std::string words) { return words; }, [this] { LookIdly(); })) {}

std::string NcclOwner::async_error() const {
  const nccl::Status state = seen_.load();
  return state == nccl::Status::kSuccess ? "" : Words(state);
}

void NcclOwner::Abort() {
  abort_ = true;
  runner_->Wake();
  // Where the owner hangs in a call this does as well, and the worker leaves without it.
  for (Life life = life_; life == Life::kAlive; life = life_) life_.wait(life);
}

StepState NcclOwner::Run(std::function<void()> job) {
  runner_->Begin(std::move(job));
  return {StepState::State::kPending, ""};
}

const std::string& NcclOwner::Option(const std::string& key) const {
  static const std::string kNone;
  const auto found = setup_.options.find(key);
  return found == setup_.options.end() ? kNone : found->second;
}

std::vector<std::string> NcclOwner::DescribeLibraries() const {
  std::vector<std::string> lines;
  if (library_.version > 0)
    lines.push_back(fmt::format("NCCL {} of {}", nccl::VersionText(library_.version), library_.path));
  if (!gpu_.description().empty()) lines.push_back(gpu_.description());
  return lines;
}

// ---- getting ready ------------------------------------------------------------------------------------------------

void NcclOwner::Load() {
  ForgetSettings();
  Result<nccl::Library> library = nccl::LoadLibrary(Option("library"));
  if (!library) throw std::runtime_error(library.error().message);
  library_ = *std::move(library);
  gpu_.Open();
}

void NcclOwner::SetDevice() {
  gpu_.Choose(OwnDevice());
  const bool is_part = Option("CUDA_VISIBLE_DEVICES").starts_with("MIG-");
  store_.Set(KeyOfGpu(setup_.rank),
             fmt::format("{} on {}\n{}", is_part ? "MIG" : "GPU", gpu_.bus_id(), HostOfHash(Option("NCCL_HOSTID"))));
}

/// What NCCL would refuse in every rank, as an error of the collective: two ranks of one host on one GPU, by its PCI
/// address, which instances of MIG share (2.5 to 2.30.4), or by its UUID (2.30.7, init.cc). That one a build for CUDA
/// 13 asks for by its first version, which knows no instances; a build for CUDA 12 gets the second, which does, and
/// goes on to a topology of one rank a PCI address.
void NcclOwner::CheckOwnGpus(const std::vector<int>& ranks) {
  if (Option("NCCL_MULTI_RANK_GPU_ENABLE") == "1") return;
  std::map<std::string, int> first;
  for (const int rank : ranks) {
    const auto gpu = store_.Get(KeyOfGpu(rank), setup_.patience);
    if (!gpu) throw std::runtime_error(fmt::format("rank {} has not said which GPU it is on", rank));
    const bool is_part = gpu->starts_with("MIG");
    if (is_part && library_.version >= kFirstWithMig) continue;
    const auto [other, is_first] = first.emplace(gpu->substr(gpu->find(' ')), rank);
    if (is_first) continue;
    const std::string address = gpu->substr(7, gpu->find('\n') - 7);
    throw std::runtime_error(fmt::format(
        "ranks {} and {} are both on {}GPU {}, and NCCL {} takes one rank of a host on each GPU{}; --share-gpu runs "
        "ranks on one GPU as if each were on a host of its own, over sockets",
        other->second, rank, is_part ? "instances (MIG) of " : "", address, nccl::VersionText(library_.version),
        is_part ? ", however it is divided: give them instances of different GPUs" : ""));
  }
}

/// By its address where the plan names one, else by its number.
int NcclOwner::OwnDevice() const {
  const int count = gpu_.Count();
  if (const std::string address = Option("bus-id"); !address.empty()) {
    for (int device = 0; device < count; ++device)
      if (gpu_.IsAt(device, address)) return device;
    throw std::runtime_error(
        fmt::format("rank {} belongs on GPU {}, which is not among the {} that can be seen here: hidden by "
                    "CUDA_VISIBLE_DEVICES, or lost (nvidia-smi -L)",
                    setup_.rank, address, count));
  }
  const std::string asked = Option("device");
  const bool only = count == 1 && !Option("device-or-only").empty();
  const int device = only ? 0 : asked.empty() ? setup_.rank : std::atoi(asked.c_str());
  if (device < 0 || device >= count)
    throw std::runtime_error(fmt::format("rank {} wants GPU {}, and there {} {}; --share-gpu puts several ranks on one",
                                         setup_.rank, device, count == 1 ? "is" : "are", count));
  return device;
}

/// Before anyone is asked to communicate. Of a GPU before Hopper NCCL refuses the arithmetic alone (2.28.9,
/// enqueue.cc).
void NcclOwner::CheckFloat8(const Call& call) const {
  if (call.datatype != Datatype::kFloat8E4M3 && call.datatype != Datatype::kFloat8E5M2) return;
  if (library_.version < kFirstWithFloat8)
    throw std::runtime_error(fmt::format("NCCL {} has no {}; 2.24 is the first that has",
                                         nccl::VersionText(library_.version), Name(call.datatype)));
  if (RowOf(call.operation).needs_redop && gpu_.capability() < 90)
    throw std::runtime_error(
        fmt::format("NCCL reduces {} on GPUs of compute capability 9.0 and later, and {} has {}.{}",
                    Name(call.datatype), gpu_.description(), gpu_.capability() / 10, gpu_.capability() % 10));
}

nccl::UniqueId NcclOwner::MakeId(const std::string& key, const std::vector<int>& ranks) {
  CheckOwnGpus(ranks);
  nccl::UniqueId id{};
  CheckNccl(library_.get_unique_id(&id), "ncclGetUniqueId");
  store_.Set(key, std::string(id.internal, sizeof(id.internal)));
  return id;
}

nccl::UniqueId NcclOwner::ReceiveId(const std::string& key) {
  nccl::UniqueId id{};
  const auto bytes = store_.Get(key, setup_.patience);
  if (!bytes || bytes->size() != sizeof(id.internal))
    throw std::runtime_error("its first rank has not sent the id of the communicator");
  std::memcpy(id.internal, bytes->data(), sizeof(id.internal));
  return id;
}

void NcclOwner::Init(int rank, int nranks, const nccl::UniqueId& id) {
  nccl::Config config;
  Member& member = members_.emplace_back();
  life_ = Life::kAlive;
  const nccl::Status result = library_.init(&member.made, nranks, id, rank, &config);
  member.comm = member.made;
  Finish(result, "ncclCommInitRankConfig");
}

void NcclOwner::Finalize() {
  if (life_ != Life::kAlive) return;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Finish(library_.finalize(Comm(i)), "ncclCommFinalize");
    library_.destroy(std::exchange(members_[i].comm, nullptr));
  }
  Gone();
}

// ---- calls --------------------------------------------------------------------------------------------------------

bool NcclOwner::IsInPlace(const Call& call) {
  switch (call.operation) {
    case Operation::kAllReduce:
    case Operation::kReduce:
      // All ranks hand in the average itself: a call that does nothing would leave what is right.
      return call.redop != RedOp::kAvg;
    case Operation::kBroadcast:
    case Operation::kBarrier:
      return true;
    case Operation::kAllToAll:
      return false;
    default:
      return call.in_place;
  }
}

nccl::Status NcclOwner::Collective(const DataShape& shape, const Buffers& buffers, nccl::Comm comm,
                                   cuda::Stream stream) const {
  const Call& call = shape.call;
  const auto type = nccl::TypeOf(call.datatype);
  const auto redop = nccl::ReductionOf(call.redop);
  const std::size_t count = call.count, bytes = BytesOf(call.datatype);
  std::byte *const input = At(buffers.input), *const output = At(buffers.output);
  switch (call.operation) {
    case Operation::kBroadcast:
      return library_.broadcast(shape.rank == call.root ? input : output, output, count, type, call.root, comm, stream);
    case Operation::kAllReduce:
    case Operation::kBarrier:
      return library_.all_reduce(input, output, count, type, redop, comm, stream);
    case Operation::kReduce:
      return library_.reduce(input, output, count, type, redop, call.root, comm, stream);
    case Operation::kAllGather:
      return library_.all_gather(input, output, count, type, comm, stream);
    case Operation::kReduceScatter:
      return library_.reduce_scatter(input, output, count, type, redop, comm, stream);
    case Operation::kSendRecv:
      if (shape.rank == call.root) return library_.send(input, count, type, call.peer, comm, stream);
      if (shape.rank == call.peer) return library_.recv(output, count, type, call.root, comm, stream);
      return nccl::Status::kSuccess;
    default:
      break;
  }
  const bool all = call.operation == Operation::kAllToAll, is_root = shape.rank == call.root;
  const bool sends_parts = all || (call.operation == Operation::kScatter && is_root),
             gets_parts = all || (call.operation == Operation::kGather && is_root);
  nccl::Status result = library_.group_start();
  const auto add = [&](nccl::Status next) {
    if (result == nccl::Status::kSuccess && next != nccl::Status::kInProgress) result = next;
  };
  const std::size_t own = all && !call.splits.empty() ? call.splits[static_cast<std::size_t>(shape.rank)] : count;
  std::size_t sent = 0;
  for (int peer = 0; peer < shape.nranks; ++peer) {
    const std::size_t part = all && !call.splits.empty() ? call.splits[static_cast<std::size_t>(peer)] : count;
    if (sends_parts) add(library_.send(input + sent * bytes, part, type, peer, comm, stream));
    if (gets_parts)
      add(library_.recv(output + static_cast<std::size_t>(peer) * own * bytes, own, type, peer, comm, stream));
    sent += part;
  }
  if (call.operation == Operation::kGather) add(library_.send(input, count, type, call.root, comm, stream));
  if (call.operation == Operation::kScatter) add(library_.recv(output, count, type, call.root, comm, stream));
  const nccl::Status end = library_.group_end();
  return result == nccl::Status::kSuccess ? end : result;
}

// ---- polling ------------------------------------------------------------------------------------------------------

std::string NcclOwner::Words(nccl::Status result) const {
  return fmt::format("{} ({})", library_.error_string(result), static_cast<int>(result));
}

void NcclOwner::CheckNccl(nccl::Status result, std::string_view what) const {
  if (result == nccl::Status::kSuccess) return;
  const char* const words = library_.last_error(members_.empty() ? nullptr : members_.back().comm);
  const std::string last = words == nullptr ? "" : words;
  throw std::runtime_error(fmt::format("{}: {}{}{}", what, Words(result), last.empty() ? "" : ": ", last));
}

void NcclOwner::Finish(nccl::Status result, std::string_view what) {
  for (Backoff backoff; result == nccl::Status::kInProgress; backoff.Wait()) {
    AbortIfAsked();
    Waiting();
    result = Ask();
  }
  CheckNccl(result, what);
}

nccl::Comm NcclOwner::Comm(std::size_t number) const {
  if (number >= members_.size() || members_[number].comm == nullptr)
    throw std::runtime_error("the communicator was aborted");
  return members_[number].comm;
}

/// An error of any goes before one that is not through, and that before success.
nccl::Status NcclOwner::Ask() {
  nccl::Status all = nccl::Status::kSuccess;
  for (const Member& member : members_) {
    if (member.comm == nullptr) continue;
    nccl::Status async = nccl::Status::kSuccess;
    const nccl::Status asked = library_.async_error(member.comm, &async);
    const nccl::Status state = asked == nccl::Status::kSuccess ? async : asked;
    if (all == nccl::Status::kSuccess || (all == nccl::Status::kInProgress && state != nccl::Status::kSuccess))
      all = state;
  }
  seen_ = all == nccl::Status::kInProgress ? nccl::Status::kSuccess : all;
  return all;
}

void NcclOwner::AbortIfAsked() {
  if (!abort_) return;
  for (Member& member : members_)
    if (member.comm != nullptr) library_.abort(std::exchange(member.comm, nullptr));
  Gone();
  throw std::runtime_error("the communicator was aborted");
}

void NcclOwner::Gone() {
  life_ = Life::kGone;
  life_.notify_all();
}

void NcclOwner::Look() {
  AbortIfAsked();
  Waiting();
  const nccl::Status state = Ask();
  if (state != nccl::Status::kInProgress) CheckNccl(state, "asynchronous error");
}

/// Between two steps.
void NcclOwner::LookIdly() {
  if (life_ != Life::kAlive) return;
  try {
    AbortIfAsked();
    Ask();
  } catch (const std::exception&) {
    // the next step says it
  }
}

}  // namespace inquest
