// A libnccl whose ranks are threads of one process: the calls of all ranks meet, and the last one moves the data. It can be
// told to do wrong what the real one has been seen to do wrong.
#include <nccl.h>

#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "replay/engines/host_data.h"
#include "tests/replay/nccl/fake_gpu.h"

namespace {

using inquest::BytesOf;
using inquest::Datatype;

std::mutex mutex;  ///< guards all that is not of one rank
FakeNccl script = FakeNccl::kRight;

struct Posted {
  const std::byte* in;
  std::byte* out;
  FakeStream* stream;
};
struct Message {
  std::byte* data;
  FakeStream* stream;
};
struct Group {
  int nranks = 0, joined = 0;
  std::map<std::uint64_t, std::map<int, Posted>> calls;  ///< by number, by rank
  std::map<std::pair<int, int>, std::deque<Message>> sends, receives;
};
std::map<std::string, std::shared_ptr<Group>> groups;

}  // namespace

struct ncclComm {
  std::shared_ptr<Group> group;
  int rank = 0;
  std::uint64_t calls = 0;
};

namespace {

/// Runs `move` on the calls of all ranks once the last has come.
ncclResult_t Meet(ncclComm_t comm, const void* in, void* out, cudaStream_t stream, const std::function<void(std::map<int, Posted>&)>& move) {
  const std::lock_guard lock(mutex);
  auto* counter = reinterpret_cast<FakeStream*>(stream);
  ++counter->enqueued;
  auto& posted = comm->group->calls[comm->calls++];
  posted[comm->rank] = {static_cast<const std::byte*>(in), static_cast<std::byte*>(out), counter};
  const bool warm_up = comm->calls == 1;
  if (static_cast<int>(posted.size()) < comm->group->nranks) return ncclSuccess;
  if (!warm_up && (script == FakeNccl::kNeverCompletes || script == FakeNccl::kAsyncError)) return ncclSuccess;
  move(posted);
  for (auto& [rank, call] : posted) ++call.stream->done;
  return ncclSuccess;
}

double Combine(ncclRedOp_t op, double a, double b) {
  switch (op) {
    case ncclProd: return a * b;
    case ncclMax: return std::max(a, b);
    case ncclMin: return std::min(a, b);
    default: return a + b;
  }
}
bool IsFloat(Datatype type) { return inquest::FormatOf(type).bits > 0; }
double Read(Datatype type, const std::byte* at) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, BytesOf(type));
  return IsFloat(type) ? inquest::FloatOf(type, bits) : static_cast<double>(bits);
}
void Write(Datatype type, std::byte* at, double value) {
  const std::uint64_t bits = IsFloat(type) ? inquest::FloatBits(type, value) : static_cast<std::uint64_t>(value);
  std::memcpy(at, &bits, BytesOf(type));
}

/// `count` elements of all ranks' inputs, from `first` on.
std::vector<std::byte> Reduced(const std::map<int, Posted>& posted, std::size_t first, std::size_t count, Datatype type, ncclRedOp_t op) {
  const std::size_t bytes = BytesOf(type);
  std::vector<std::byte> result(count * bytes);
  for (std::size_t i = 0; i < count; ++i) {
    double value = 0;
    bool is_first = true;
    for (const auto& [rank, call] : posted) {
      const double one = Read(type, call.in + (first + i) * bytes);
      value = is_first ? one : Combine(op, value, one);
      is_first = false;
    }
    Write(type, &result[i * bytes], op == ncclAvg ? value / static_cast<double>(posted.size()) : value);
  }
  return result;
}

void Match(Group& group, std::pair<int, int> link) {
  auto &sends = group.sends[link], &receives = group.receives[link];
  while (!sends.empty() && !receives.empty()) {
    ++sends.front().stream->done;
    ++receives.front().stream->done;
    sends.pop_front();
    receives.pop_front();
  }
}

}  // namespace

extern "C" {

void FakeNcclScript(FakeNccl what) {
  const std::lock_guard lock(mutex);
  script = what;
}

ncclResult_t ncclGetVersion(int* version) {
  *version = script == FakeNccl::kOld ? 21304 : 22809;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int count = 0;
  const std::lock_guard lock(mutex);
  *id = {};
  std::snprintf(id->internal, sizeof(id->internal), "fake %d", ++count);
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) { return result == ncclRemoteError ? "remote process exited or there was a network error" : "some error"; }
const char* ncclGetLastError(ncclComm_t) { return "socketProgress: Connection closed by remote peer"; }

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  const std::lock_guard lock(mutex);
  if (script == FakeNccl::kInitFails) return ncclUnhandledCudaError;
  if (config->magic != 0xcafebeef || config->version != 21400 || config->blocking != 0) return ncclInvalidArgument;
  auto& group = groups[id.internal];
  if (!group) group = std::make_shared<Group>();
  group->nranks = nranks;
  ++group->joined;
  *comm = new ncclComm{group, rank, 0};
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const std::lock_guard lock(mutex);
  *state = script == FakeNccl::kInitHangs || comm->group->joined < comm->group->nranks ? ncclInProgress : ncclSuccess;
  if (script == FakeNccl::kAsyncError && comm->calls > 1) *state = ncclRemoteError;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclGroupStart() { return ncclSuccess; }
ncclResult_t ncclGroupEnd() { return ncclSuccess; }

ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
  return Meet(comm, in, out, stream, [=](std::map<int, Posted>& posted) {
    for (auto& [rank, call] : posted) std::memmove(call.out, posted[root].in, count * BytesOf(static_cast<Datatype>(type)));
  });
}
ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return Meet(comm, in, out, stream, [=](std::map<int, Posted>& posted) {
    const auto result = Reduced(posted, 0, count, static_cast<Datatype>(type), op);
    for (auto& [rank, call] : posted) std::memcpy(call.out, result.data(), result.size());
  });
}
ncclResult_t ncclReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return Meet(comm, in, out, stream, [=](std::map<int, Posted>& posted) {
    const auto result = Reduced(posted, 0, count, static_cast<Datatype>(type), op);
    std::memcpy(posted[root].out, result.data(), result.size());
  });
}
ncclResult_t ncclAllGather(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  return Meet(comm, in, out, stream, [=](std::map<int, Posted>& posted) {
    const std::size_t bytes = count * BytesOf(static_cast<Datatype>(type));
    for (auto& [to, receiver] : posted)
      for (auto& [from, sender] : posted) std::memmove(receiver.out + static_cast<std::size_t>(from) * bytes, sender.in, bytes);
  });
}
ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return Meet(comm, in, out, stream, [=](std::map<int, Posted>& posted) {
    std::map<int, std::vector<std::byte>> results;
    for (auto& [rank, call] : posted) results[rank] = Reduced(posted, static_cast<std::size_t>(rank) * count, count, static_cast<Datatype>(type), op);
    for (auto& [rank, call] : posted) std::memcpy(call.out, results[rank].data(), results[rank].size());
  });
}
// A send leaves its data with the receive that it meets, whichever comes first.
ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  auto* counter = reinterpret_cast<FakeStream*>(stream);
  ++counter->enqueued;
  auto& receives = comm->group->receives[{comm->rank, peer}];
  auto& sends = comm->group->sends[{comm->rank, peer}];
  auto* copy = new std::byte[count * BytesOf(static_cast<Datatype>(type)) + 1];
  std::memcpy(copy, data, count * BytesOf(static_cast<Datatype>(type)));
  if (sends.size() < receives.size()) std::memcpy(receives[sends.size()].data, copy, count * BytesOf(static_cast<Datatype>(type)));
  sends.push_back({copy, counter});
  Match(*comm->group, {comm->rank, peer});
  return ncclSuccess;
}
ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  auto* counter = reinterpret_cast<FakeStream*>(stream);
  ++counter->enqueued;
  auto& receives = comm->group->receives[{peer, comm->rank}];
  auto& sends = comm->group->sends[{peer, comm->rank}];
  if (receives.size() < sends.size()) std::memcpy(data, sends[receives.size()].data, count * BytesOf(static_cast<Datatype>(type)));
  receives.push_back({static_cast<std::byte*>(data), counter});
  Match(*comm->group, {peer, comm->rank});
  return ncclSuccess;
}

}  // extern "C"
