// A libnccl without GPUs: ranks are threads or processes that meet in a folder, where each leaves what it hands in. It
// can be told to do wrong what the real one has been seen to do wrong: by FakeNcclScript, or in a worker by the
// environment.
//   FAKE_NCCL_NEEDS=NAME=VALUE   an operation completes only where the environment has this setting
//   FAKE_NCCL_BAD_DEVICES=3,11   or only where no rank of the communicator has one of these devices
//   FAKE_NCCL_CARDS=mlx5_0:1,..  the RDMA ports that it claims to use
#include <nccl.h>
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
#include <vector>

#include "replay/engines/host_data.h"
#include "tests/replay/nccl/fake_gpu.h"
#include "tests/replay/nccl/fake_ras.h"

namespace fs = std::filesystem;

struct ncclComm {
  std::string folder;
  int rank = 0, nranks = 0;
  std::uint64_t calls = 0;
  std::map<int, std::uint64_t> sent, asked;  ///< messages, by peer
};

namespace {

using inquest::BytesOf;
using inquest::Datatype;

std::mutex mutex;
FakeNccl script = FakeNccl::kRight;

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
std::string OfCall(const ncclComm& comm, std::uint64_t call, int rank) {
  return comm.folder + "/call-" + std::to_string(call) + "." + std::to_string(rank);
}
std::string HostOf(const ncclComm& comm, int rank) { return comm.folder + "/host-" + std::to_string(rank); }
std::string DeviceOf(const ncclComm& comm, int rank) { return comm.folder + "/device-" + std::to_string(rank); }

// ---- what goes wrong
// -------------------------------------------------------------------------------------------------

bool Completes(const ncclComm& comm, std::uint64_t call) {
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

void LogInit(const ncclComm& comm) {
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

ncclComm* dumped = nullptr;
void DumpProxy(int) {
  std::printf("ACTIVE OPS\n[0-0|%llu| Coll 0/0]\n[X]\nFREE OPS\n[X]\n", static_cast<unsigned long long>(dumped->calls));
}
/// As NCCL's thread of the network does, once it has one.
void InstallDump(ncclComm* comm) {
  dumped = comm;
  if (const int number = std::atoi(Variable("NCCL_PROXY_DUMP_SIGNAL").c_str()); number > 0) ::signal(number, DumpProxy);
}

// ---- moving data
// -----------------------------------------------------------------------------------------------------

using Inputs = std::vector<std::string>;  ///< by rank

/// Leaves what the rank hands in; `move` gets that of all ranks, once all have come.
/// Of `bytes` each, whatever the others handed in.
ncclResult_t Meet(ncclComm_t comm, const void* in, std::size_t bytes, cudaStream_t stream,
                  std::function<void(const Inputs&)> move) {
  const std::uint64_t call = comm->calls++;
  const std::string device = std::to_string(reinterpret_cast<FakeStream*>(stream)->device);
  if (call == 0) Leave(DeviceOf(*comm, comm->rank), device.data(), device.size());
  Leave(OfCall(*comm, call, comm->rank), in, bytes);
  reinterpret_cast<FakeStream*>(stream)->Add([comm, call, bytes, move = std::move(move)] {
    for (int rank = 0; rank < comm->nranks; ++rank)
      if (!fs::exists(OfCall(*comm, call, rank))) return false;
    if (!Completes(*comm, call)) return false;
    Inputs inputs;
    for (int rank = 0; rank < comm->nranks; ++rank) {
      inputs.push_back(BytesAt(OfCall(*comm, call, rank)));
      inputs.back().resize(std::max(inputs.back().size(), bytes));
    }
    move(inputs);
    return true;
  });
  return ncclSuccess;
}

double Combine(ncclRedOp_t op, double a, double b) {
  switch (op) {
    case ncclProd:
      return a * b;
    case ncclMax:
      return std::max(a, b);
    case ncclMin:
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
void Reduce(const Inputs& inputs, std::size_t first, std::size_t count, Datatype type, ncclRedOp_t op, void* out) {
  const std::size_t bytes = BytesOf(type);
  for (std::size_t i = 0; i < count; ++i) {
    double value = Read(type, &inputs[0][(first + i) * bytes]);
    for (std::size_t rank = 1; rank < inputs.size(); ++rank)
      value = Combine(op, value, Read(type, &inputs[rank][(first + i) * bytes]));
    Write(type, static_cast<char*>(out) + i * bytes,
          op == ncclAvg ? value / static_cast<double>(inputs.size()) : value);
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
  *id = {};
  const std::string name = (fs::temp_directory_path() / "fake-nccl-XXXXXX").string();
  if (name.size() >= sizeof(id->internal)) return ncclInternalError;
  std::memcpy(id->internal, name.data(), name.size());
  return ::mkdtemp(id->internal) == nullptr ? ncclSystemError : ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  if (result == ncclInvalidUsage) return "invalid usage (run with NCCL_DEBUG=WARN for details)";
  return result == ncclRemoteError ? "remote process exited or there was a network error" : "some error";
}
const char* ncclGetLastError(ncclComm_t) { return "socketProgress: Connection closed by remote peer"; }

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  const std::lock_guard lock(mutex);
  if (script == FakeNccl::kInitFails) return ncclUnhandledCudaError;
  if (config->magic != 0xcafebeef || config->version != 21400 || config->blocking != 0) return ncclInvalidArgument;
  *comm = new ncclComm{id.internal, rank, nranks, 0, {}, {}};
  const std::string host = Variable("NCCL_HOSTID");
  Leave(HostOf(**comm, rank), host.data(), host.size());
  LogInit(**comm);
  InstallDump(*comm);
  if (const std::string address = Variable("NCCL_RAS_ADDR"); !address.empty()) ServeRas(address, id.internal, nranks);
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const std::lock_guard lock(mutex);
  *state = ncclSuccess;
  const std::string host = Variable("NCCL_HOSTID");
  for (int rank = 0; rank < comm->nranks; ++rank) {
    if (!fs::exists(HostOf(*comm, rank))) *state = ncclInProgress;
    // Of a test, all ranks of one host share one GPU.
    if (*state == ncclSuccess && rank != comm->rank && !host.empty() && BytesAt(HostOf(*comm, rank)) == host) {
      Log("WARN Duplicate GPU detected : rank " + std::to_string(comm->rank) + " and rank " + std::to_string(rank) +
          " both on CUDA device 1000");
      *state = ncclInvalidUsage;
      return ncclSuccess;
    }
  }
  if (script == FakeNccl::kInitHangs) *state = ncclInProgress;
  if (script == FakeNccl::kAsyncError && comm->calls > 1) *state = ncclRemoteError;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommAbort(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclGroupStart() { return ncclSuccess; }
ncclResult_t ncclGroupEnd() { return ncclSuccess; }

ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  const std::size_t bytes = count * BytesOf(static_cast<Datatype>(type));
  return Meet(comm, in, bytes, stream,
              [=](const Inputs& inputs) { std::memcpy(out, inputs[static_cast<std::size_t>(root)].data(), bytes); });
}
ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  const auto datatype = static_cast<Datatype>(type);
  return Meet(comm, in, count * BytesOf(datatype), stream,
              [=](const Inputs& inputs) { Reduce(inputs, 0, count, datatype, op, out); });
}
ncclResult_t ncclReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  const auto datatype = static_cast<Datatype>(type);
  const bool is_root = comm->rank == root;
  return Meet(comm, in, count * BytesOf(datatype), stream, [=](const Inputs& inputs) {
    if (is_root) Reduce(inputs, 0, count, datatype, op, out);
  });
}
ncclResult_t ncclAllGather(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  const std::size_t bytes = count * BytesOf(static_cast<Datatype>(type));
  return Meet(comm, in, bytes, stream, [=](const Inputs& inputs) {
    for (std::size_t rank = 0; rank < inputs.size(); ++rank)
      std::memcpy(static_cast<char*>(out) + rank * bytes, inputs[rank].data(), bytes);
  });
}
ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  const auto datatype = static_cast<Datatype>(type);
  const auto rank = static_cast<std::size_t>(comm->rank), nranks = static_cast<std::size_t>(comm->nranks);
  return Meet(comm, in, nranks * count * BytesOf(datatype), stream,
              [=](const Inputs& inputs) { Reduce(inputs, rank * count, count, datatype, op, out); });
}
// A send is done at once: its data is left where the receive will look.
ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  Leave(comm->folder + "/message-" + std::to_string(comm->rank) + "-" + std::to_string(peer) + "." +
            std::to_string(comm->sent[peer]++),
        data, count * BytesOf(static_cast<Datatype>(type)));
  reinterpret_cast<FakeStream*>(stream)->Add([] { return true; });
  return ncclSuccess;
}
ncclResult_t ncclRecv(void* data, std::size_t, ncclDataType_t, int peer, ncclComm_t comm, cudaStream_t stream) {
  const std::string path = comm->folder + "/message-" + std::to_string(peer) + "-" + std::to_string(comm->rank) + "." +
                           std::to_string(comm->asked[peer]++);
  reinterpret_cast<FakeStream*>(stream)->Add([comm, path, data] {
    if (!fs::exists(path) || !Completes(*comm, 1)) return false;
    const std::string bytes = BytesAt(path);
    std::memcpy(data, bytes.data(), bytes.size());
    return true;
  });
  return ncclSuccess;
}

}  // extern "C"
