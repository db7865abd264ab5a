// A libnccl without GPUs: ranks are threads or processes that meet in a folder, where each leaves what it hands in. It
// can be told to do wrong what the real one has been seen to do wrong: by FakeNcclScript, or in a worker by the
// environment.
//   FAKE_NCCL_NEEDS=NAME=VALUE   an operation completes only where the environment has this setting
//   FAKE_NCCL_BAD_DEVICES=3,11   or only where no rank of the communicator has one of these devices
//   FAKE_NCCL_LARGEST=N          or only where a rank hands in, or receives at once, no more bytes
//   FAKE_NCCL_LAZY=1             ranks connect in the first call of more than 1 kB on a communicator: until all have
//                                made it, each is told that its call is in progress
//   FAKE_NCCL_WRONG=1:3          rank 1 of a communicator gets a wrong first byte out of its call number 3, from 0
//   FAKE_NCCL_VERSION=21805      22809 otherwise
//   FAKE_NCCL_CARDS=mlx5_0:1,..  the RDMA ports that it claims to use
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "replay/engines/host_data.h"
#include "replay/engines/nccl_library.h"
#include "tests/replay/nccl/fake_gpu.h"
#include "tests/replay/nccl/fake_ras.h"

namespace fs = std::filesystem;

namespace cuda = inquest::cuda;
namespace nccl = inquest::nccl;
using nccl::Status;

struct nccl::CommHandle {
  std::string folder;
  int rank = 0, nranks = 0;
  std::uint64_t calls = 0;
  std::map<int, std::uint64_t> sent, asked;  ///< messages, by peer
  std::thread::id owner;
  bool connecting = false;  ///< has made the call in which ranks connect
  bool gone = false;        ///< aborted or destroyed
};

namespace {

using inquest::BytesOf;
using inquest::Datatype;
using inquest::RedOp;

std::mutex mutex;
FakeNccl script = FakeNccl::kRight;
std::string calls;  ///< names of the operations since the script was set

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}
std::string BytesAt(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
/// Whole or not there at all.
void Leave(const std::string& path, const void* data, std::size_t size) {
  const std::string unfinished = path + ".unfinished";
  std::ofstream(unfinished, std::ios::binary).write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  fs::rename(unfinished, path);
}
std::string OfCall(const nccl::CommHandle& comm, std::uint64_t call, int rank) {
  return comm.folder + "/call-" + std::to_string(call) + "." + std::to_string(rank);
}
std::string HostOf(const nccl::CommHandle& comm, int rank) { return comm.folder + "/host-" + std::to_string(rank); }
std::string DeviceOf(const nccl::CommHandle& comm, int rank) { return comm.folder + "/device-" + std::to_string(rank); }

// ---- what a caller must not do
// -----------------------------------------------------------------------------------------

void Called(const char* operation) {
  const std::lock_guard lock(mutex);
  calls += std::string(operation) + " ";
}

[[noreturn]] void Misused(const char* how) {
  std::fprintf(stderr, "fake libnccl: %s\n", how);
  std::abort();
}
/// Of one thread at a time: here, of one thread at all; and never behind its end.
nccl::CommHandle& Used(nccl::Comm comm) {
  if (comm == nullptr) Misused("no communicator");
  if (comm->owner != std::this_thread::get_id()) Misused("a communicator is used by two threads");
  if (comm->gone) Misused("a communicator is used behind its end");
  return *comm;
}
bool IsOnStack(const void* address) {
  pthread_attr_t attributes;
  void* begin = nullptr;
  std::size_t size = 0;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return false;
  ::pthread_attr_getstack(&attributes, &begin, &size);
  ::pthread_attr_destroy(&attributes);
  return address >= begin && address < static_cast<char*>(begin) + size;
}

// ---- what goes wrong
// -------------------------------------------------------------------------------------------------

bool Completes(const nccl::CommHandle& comm, std::uint64_t call, std::size_t bytes) {
  if (const std::string largest = Variable("FAKE_NCCL_LARGEST"); !largest.empty() && bytes > std::stoul(largest))
    return false;
  if (call == 0) return true;  // the warm-up
  if (script == FakeNccl::kNeverCompletes || script == FakeNccl::kAsyncError) return false;
  const std::string needs = Variable("FAKE_NCCL_NEEDS");
  if (const std::size_t equals = needs.find('=');
      equals != std::string::npos && Variable(needs.substr(0, equals).c_str()) != needs.substr(equals + 1))
    return false;
  const std::string bad = "," + Variable("FAKE_NCCL_BAD_DEVICES") + ",";
  for (int rank = 0; rank < comm.nranks; ++rank)
    if (bad.find("," + BytesAt(DeviceOf(comm, rank)) + ",") != std::string::npos && bad.size() > 2) return false;
  return true;
}

/// The GPU of this thread, as NCCL's CUDA runtime finds it: by the context that is current. -1: none is.
int CurrentDevice() {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  int device = -1;
  if (driver == nullptr) return device;
  const auto ask = reinterpret_cast<cuda::Status (*)(cuda::Device*)>(::dlsym(driver, "cuCtxGetDevice"));
  return ask != nullptr && ask(&device) == cuda::Status::kSuccess ? device : -1;
}

// ---- what it prints
// --------------------------------------------------------------------------------------------------

void Log(const std::string& text) {
  const std::string path = Variable("NCCL_DEBUG_FILE");
  if (path.empty()) return;
  const auto pid = std::to_string(::getpid());
  std::ofstream(path, std::ios::app) << "fakehost:" << pid << ":" << pid << " [0] NCCL " << text << "\n";
}

std::string Transport() {
  if (Variable("NCCL_P2P_DISABLE") != "1") return "P2P/CUMEM";
  if (Variable("NCCL_SHM_DISABLE") != "1") return "SHM/direct/direct";
  return Variable("NCCL_NET") == "Socket" || Variable("FAKE_NCCL_CARDS").empty() ? "NET/Socket/0" : "NET/IB/0";
}

void LogInit(const nccl::CommHandle& comm) {
  const std::string rank = std::to_string(comm.rank), next = std::to_string((comm.rank + 1) % comm.nranks);
  if (std::string cards = Variable("FAKE_NCCL_CARDS"); !cards.empty()) {
    std::string list;
    for (std::size_t number = 0; !cards.empty(); ++number) {
      const std::size_t comma = std::min(cards.find(','), cards.size());
      list += " [" + std::to_string(number) + "]" + cards.substr(0, comma) + "/RoCE";
      cards.erase(0, comma + 1);
    }
    Log("INFO NET/IB : Using" + list + " [RO]; OOB lo:127.0.0.1<0>");
  }
  if (comm.nranks > 1) Log("INFO Channel 00/0 : " + rank + "[0] -> " + next + "[0] via " + Transport());
  Log("INFO ncclCommInitRankConfig comm 0x5581c0ffee00 rank " + rank + " nranks " + std::to_string(comm.nranks) +
      " cudaDev 0 nvmlDev 0 busId 1000 commId 0x5c1e77d0a94b8f32 - Init COMPLETE");
}

nccl::Comm dumped = nullptr;
void DumpProxy(int) {
  std::printf("ACTIVE OPS\n[0-0|%llu| Coll 0/0]\n[X]\nFREE OPS\n[X]\n", static_cast<unsigned long long>(dumped->calls));
}
/// As NCCL's thread of the network does, once it has one.
void InstallDump(nccl::Comm comm) {
  dumped = comm;
  if (const int number = std::atoi(Variable("NCCL_PROXY_DUMP_SIGNAL").c_str()); number > 0) ::signal(number, DumpProxy);
}

// ---- moving data
// -----------------------------------------------------------------------------------------------------

using Inputs = std::vector<std::string>;  ///< by rank

/// Where the host has what a caller names by its address in the device's memory.
char* Memory(const void* device) {
  const auto address = reinterpret_cast<std::uint64_t>(device);
  if (!IsDeviceAddress(address)) std::abort();
  return HostAddress(address);
}

/// What is between ncclGroupStart and ncclGroupEnd is one kernel a stream: none of it waits for one before it.
struct Group {
  int depth = 0;
  std::map<FakeStream*, std::vector<std::function<bool()>>> works;
};
thread_local Group group;

void Put(cuda::Stream stream, std::function<bool()> work) {
  auto* const on = reinterpret_cast<FakeStream*>(stream);
  if (group.depth > 0)
    group.works[on].push_back(std::move(work));
  else
    on->Add(std::move(work));
}
void EndGroup() {
  if (--group.depth > 0) return;
  for (auto& [stream, of_stream] : std::exchange(group.works, {}))
    stream->Add([works = std::move(of_stream)]() mutable {
      std::erase_if(works, [](std::function<bool()>& work) { return work(); });
      return works.empty();
    });
}

std::string ConnectionOf(const nccl::CommHandle& comm, int rank) {
  return comm.folder + "/connected-" + std::to_string(rank);
}

/// Leaves what the rank hands in, of `bytes`; `move` gets that of all ranks, once all have come, and where the output
/// is.
Status Meet(nccl::Comm comm, const void* in, void* out, std::size_t bytes, cuda::Stream stream,
            std::function<void(const Inputs&, char*)> move) {
  const std::uint64_t call = Used(comm).calls++;
  Put(stream, [=, from = Memory(in), to = Memory(out), left = false, move = std::move(move)]() mutable {
    if (!std::exchange(left, true)) Leave(OfCall(*comm, call, comm->rank), from, bytes);
    for (int rank = 0; rank < comm->nranks; ++rank)
      if (!fs::exists(OfCall(*comm, call, rank))) return false;
    if (!Completes(*comm, call, bytes)) return false;
    Inputs inputs;
    for (int rank = 0; rank < comm->nranks; ++rank) {
      inputs.push_back(BytesAt(OfCall(*comm, call, rank)));
      inputs.back().resize(std::max(inputs.back().size(), bytes));
    }
    move(inputs, to);
    if (Variable("FAKE_NCCL_WRONG") == std::to_string(comm->rank) + ":" + std::to_string(call)) *to ^= 0x41;
    return true;
  });
  if (Variable("FAKE_NCCL_LAZY").empty() || bytes <= 1024 || std::exchange(comm->connecting, true))
    return Status::kSuccess;
  Leave(ConnectionOf(*comm, comm->rank), "", 0);
  return Status::kInProgress;
}

double Combine(RedOp op, double a, double b) {
  switch (op) {
    case RedOp::kProd:
      return a * b;
    case RedOp::kMax:
      return std::max(a, b);
    case RedOp::kMin:
      return std::min(a, b);
    default:
      return a + b;
  }
}
bool IsFloat(Datatype type) { return inquest::FormatOf(type).bits > 0; }
double Read(Datatype type, const char* at) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, BytesOf(type));
  return IsFloat(type) ? inquest::FloatOf(type, bits) : static_cast<double>(bits);
}
void Write(Datatype type, void* at, double value) {
  const std::uint64_t bits = IsFloat(type) ? inquest::FloatBits(type, value) : static_cast<std::uint64_t>(value);
  std::memcpy(at, &bits, BytesOf(type));
}

/// `count` elements of all ranks' inputs, from `first` on.
void Reduce(const Inputs& inputs, std::size_t first, std::size_t count, Datatype type, nccl::Reduction redop,
            void* out) {
  const auto op = static_cast<RedOp>(redop);
  const std::size_t bytes = BytesOf(type);
  for (std::size_t i = 0; i < count; ++i) {
    double value = Read(type, &inputs[0][(first + i) * bytes]);
    for (std::size_t rank = 1; rank < inputs.size(); ++rank)
      value = Combine(op, value, Read(type, &inputs[rank][(first + i) * bytes]));
    Write(type, static_cast<char*>(out) + i * bytes,
          op == RedOp::kAvg ? value / static_cast<double>(inputs.size()) : value);
  }
}

}  // namespace

extern "C" {

void FakeNcclScript(FakeNccl what) {
  const std::lock_guard lock(mutex);
  script = what;
  calls.clear();
}
const char* FakeNcclCalls() {
  const std::lock_guard lock(mutex);
  return calls.c_str();
}

Status ncclGetVersion(int* version) {
  const std::string version_set = Variable("FAKE_NCCL_VERSION");
  *version = script == FakeNccl::kOld ? 21304 : version_set.empty() ? 22809 : std::stoi(version_set);
  return Status::kSuccess;
}
Status ncclGetUniqueId(nccl::UniqueId* id) {
  *id = {};
  const std::string name = (fs::temp_directory_path() / "fake-nccl-XXXXXX").string();
  if (name.size() >= sizeof(id->internal)) return Status::kInternalError;
  std::memcpy(id->internal, name.data(), name.size());
  return ::mkdtemp(id->internal) == nullptr ? Status::kSystemError : Status::kSuccess;
}
const char* ncclGetErrorString(Status result) {
  if (result == Status::kInvalidUsage) return "invalid usage (run with NCCL_DEBUG=WARN for details)";
  return result == Status::kRemoteError ? "remote process exited or there was a network error" : "some error";
}
const char* ncclGetLastError(nccl::Comm) { return "socketProgress: Connection closed by remote peer"; }

Status ncclCommInitRankConfig(nccl::Comm* comm, int nranks, nccl::UniqueId id, int rank, nccl::Config* config) {
  const std::lock_guard lock(mutex);
  if (script == FakeNccl::kInitFails || CurrentDevice() < 0) return Status::kUnhandledCudaError;
  if (config->magic != 0xcafebeef || config->version != 21400 || config->blocking != 0) return Status::kInvalidArgument;
  if (Variable("NCCL_COMM_BLOCKING") == "1" || !Variable("NCCL_COMM_ID").empty() ||
      Variable("CUDA_LAUNCH_BLOCKING") == "1")
    return Status::kInvalidUsage;
  // The library stores into it from a thread of its own, for as long as that takes.
  if (IsOnStack(comm)) Misused("the communicator is to be stored in a frame");
  *comm = new nccl::CommHandle{id.internal, rank, nranks, 0, {}, {}, std::this_thread::get_id(), false, false};
  const std::string host = Variable("NCCL_HOSTID");
  Leave(HostOf(**comm, rank), host.data(), host.size());
  const std::string device = std::to_string(CurrentDevice());
  Leave(DeviceOf(**comm, rank), device.data(), device.size());
  LogInit(**comm);
  InstallDump(*comm);
  if (const std::string address = Variable("NCCL_RAS_ADDR"); !address.empty()) ServeRas(address, id.internal, nranks);
  return Status::kInProgress;
}
Status ncclCommGetAsyncError(nccl::Comm comm, Status* state) {
  Used(comm);
  const std::lock_guard lock(mutex);
  *state = Status::kSuccess;
  const std::string host = Variable("NCCL_HOSTID");
  for (int rank = 0; rank < comm->nranks; ++rank) {
    if (!fs::exists(HostOf(*comm, rank)) || (comm->connecting && !fs::exists(ConnectionOf(*comm, rank))))
      *state = Status::kInProgress;
    // Of a test, all ranks of one host share one GPU.
    if (*state == Status::kSuccess && rank != comm->rank && !host.empty() && BytesAt(HostOf(*comm, rank)) == host) {
      Log("WARN Duplicate GPU detected : rank " + std::to_string(comm->rank) + " and rank " + std::to_string(rank) +
          " both on CUDA device 1000");
      *state = Status::kInvalidUsage;
      return Status::kSuccess;
    }
  }
  if (script == FakeNccl::kInitHangs) *state = Status::kInProgress;
  if (script == FakeNccl::kAsyncError && comm->calls > 1) *state = Status::kRemoteError;
  return Status::kSuccess;
}
Status ncclCommFinalize(nccl::Comm comm) {
  Used(comm);
  return Status::kSuccess;
}
Status ncclCommDestroy(nccl::Comm comm) {
  Used(comm).gone = true;
  return Status::kSuccess;
}
Status ncclCommAbort(nccl::Comm comm) {
  Used(comm).gone = true;
  return Status::kSuccess;
}
Status ncclGroupStart() {
  ++group.depth;
  return Status::kSuccess;
}
Status ncclGroupEnd() {
  EndGroup();
  return Status::kSuccess;
}

Status ncclBroadcast(const void* in, void* out, std::size_t count, nccl::DataType type, int root, nccl::Comm comm,
                     cuda::Stream stream) {
  Called("Broadcast");
  const std::size_t bytes = count * BytesOf(static_cast<Datatype>(type));
  return Meet(comm, in, out, bytes, stream, [=](const Inputs& inputs, char* to) {
    std::memcpy(to, inputs[static_cast<std::size_t>(root)].data(), bytes);
  });
}
Status ncclAllReduce(const void* in, void* out, std::size_t count, nccl::DataType type, nccl::Reduction op,
                     nccl::Comm comm, cuda::Stream stream) {
  Called("AllReduce");
  const auto datatype = static_cast<Datatype>(type);
  return Meet(comm, in, out, count * BytesOf(datatype), stream,
              [=](const Inputs& inputs, char* to) { Reduce(inputs, 0, count, datatype, op, to); });
}
Status ncclReduce(const void* in, void* out, std::size_t count, nccl::DataType type, nccl::Reduction op, int root,
                  nccl::Comm comm, cuda::Stream stream) {
  Called("Reduce");
  const auto datatype = static_cast<Datatype>(type);
  const bool is_root = comm->rank == root;
  return Meet(comm, in, out, count * BytesOf(datatype), stream, [=](const Inputs& inputs, char* to) {
    if (is_root) Reduce(inputs, 0, count, datatype, op, to);
  });
}
Status ncclAllGather(const void* in, void* out, std::size_t count, nccl::DataType type, nccl::Comm comm,
                     cuda::Stream stream) {
  Called("AllGather");
  const std::size_t bytes = count * BytesOf(static_cast<Datatype>(type));
  return Meet(comm, in, out, bytes, stream, [=](const Inputs& inputs, char* to) {
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) std::memcpy(to + rank * bytes, inputs[rank].data(), bytes);
  });
}
Status ncclReduceScatter(const void* in, void* out, std::size_t count, nccl::DataType type, nccl::Reduction op,
                         nccl::Comm comm, cuda::Stream stream) {
  Called("ReduceScatter");
  const auto datatype = static_cast<Datatype>(type);
  const auto rank = static_cast<std::size_t>(comm->rank), nranks = static_cast<std::size_t>(comm->nranks);
  return Meet(comm, in, out, nranks * count * BytesOf(datatype), stream,
              [=](const Inputs& inputs, char* to) { Reduce(inputs, rank * count, count, datatype, op, to); });
}
// A send is done at once: its data is left where the receive will look.
Status ncclSend(const void* data, std::size_t count, nccl::DataType type, int peer, nccl::Comm comm,
                cuda::Stream stream) {
  Called("Send");
  const std::string path = comm->folder + "/message-" + std::to_string(comm->rank) + "-" + std::to_string(peer) + "." +
                           std::to_string(Used(comm).sent[peer]++);
  Put(stream, [path, from = Memory(data), bytes = count * BytesOf(static_cast<Datatype>(type))] {
    Leave(path, from, bytes);
    return true;
  });
  return Status::kSuccess;
}
Status ncclRecv(void* data, std::size_t count, nccl::DataType type, int peer, nccl::Comm comm, cuda::Stream stream) {
  Called("Recv");
  const std::uint64_t message = Used(comm).asked[peer]++;
  const std::string path = comm->folder + "/message-" + std::to_string(peer) + "-" + std::to_string(comm->rank) + "." +
                           std::to_string(message);
  Put(stream, [comm, path, message, to = Memory(data), size = count * BytesOf(static_cast<Datatype>(type))] {
    if (!fs::exists(path) || !Completes(*comm, message, size)) return false;
    const std::string bytes = BytesAt(path);
    std::memcpy(to, bytes.data(), bytes.size());
    return true;
  });
  return Status::kSuccess;
}

}  // extern "C"
