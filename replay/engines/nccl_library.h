// libnccl, loaded at run time, so that the failed job's own copy can be the one that is tried; in declarations of our
// own, which hold for 2.14 to 2.30. tests/replay/nccl/declarations_test.cc compares them with NVIDIA's.
#pragma once

#include <cstddef>
#include <string>

#include "core/result.h"
#include "replay/call.h"
#include "replay/engines/nccl_driver.h"
#include "replay/engines/nccl_symbols.h"

namespace inquest::nccl {

/// ncclResult_t.
enum class Status : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7
};
/// ncclDataType_t and ncclRedOp_t; Datatype and RedOp have their values.
enum class DataType : int {};
enum class Reduction : int {};
constexpr DataType TypeOf(Datatype type) { return static_cast<DataType>(type); }
constexpr Reduction ReductionOf(RedOp op) { return static_cast<Reduction>(op); }

using Comm = struct CommHandle*;
struct UniqueId {
  char internal[128];
};
/// The head of ncclConfig_t as of 2.14, which every later release takes: it copies no more than `size` bytes.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef, version = 21400;
  int blocking = 0;
};

/// The functions that a replay calls, all of NCCL 2.14 or older.
struct Library {
  Symbol<"ncclGetVersion", Status(int*)> get_version;
  Symbol<"ncclGetUniqueId", Status(UniqueId*)> get_unique_id;
  Symbol<"ncclCommInitRankConfig", Status(Comm*, int, UniqueId, int, Config*)> init;
  Symbol<"ncclCommGetAsyncError", Status(Comm, Status*)> async_error;
  Symbol<"ncclCommFinalize", Status(Comm)> finalize;
  Symbol<"ncclCommDestroy", Status(Comm)> destroy;
  Symbol<"ncclCommAbort", Status(Comm)> abort;
  Symbol<"ncclGetErrorString", const char*(Status)> error_string;
  Symbol<"ncclGetLastError", const char*(Comm)> last_error;
  Symbol<"ncclGroupStart", Status()> group_start;
  Symbol<"ncclGroupEnd", Status()> group_end;
  Symbol<"ncclBroadcast", Status(const void*, void*, std::size_t, DataType, int, Comm, cuda::Stream)> broadcast;
  Symbol<"ncclAllReduce", Status(const void*, void*, std::size_t, DataType, Reduction, Comm, cuda::Stream)> all_reduce;
  Symbol<"ncclReduce", Status(const void*, void*, std::size_t, DataType, Reduction, int, Comm, cuda::Stream)> reduce;
  Symbol<"ncclAllGather", Status(const void*, void*, std::size_t, DataType, Comm, cuda::Stream)> all_gather;
  Symbol<"ncclReduceScatter", Status(const void*, void*, std::size_t, DataType, Reduction, Comm, cuda::Stream)>
      reduce_scatter;
  Symbol<"ncclSend", Status(const void*, std::size_t, DataType, int, Comm, cuda::Stream)> send;
  Symbol<"ncclRecv", Status(void*, std::size_t, DataType, int, Comm, cuda::Stream)> recv;

  /// `each` is called with every symbol.
  template <class Each>
  void ForEach(Each each) {
    const auto all = [&](auto&... symbols) {
      static_assert(sizeof...(symbols) * sizeof(void*) == offsetof(Library, version));
      (each(symbols), ...);
    };
    all(get_version, get_unique_id, init, async_error, finalize, destroy, abort, error_string, last_error, group_start,
        group_end, broadcast, all_reduce, reduce, all_gather, reduce_scatter, send, recv);
  }

  int version = 0;   ///< as ncclGetVersion gives it: 22809
  std::string path;  ///< of the file that was loaded
};

/// `path` empty: libnccl.so.2 where the dynamic linker finds it. Fails with the linker's words, or where the library is
/// older than 2.14, which cannot start without blocking.
Result<Library> LoadLibrary(const std::string& path);

/// `2.28.9` for 22809, `2.8.4` for 2804.
std::string VersionText(int version);

}  // namespace inquest::nccl
