// libnccl, loaded at run time, so that the failed job's own copy can be the one that is tried.
#pragma once

#include <nccl.h>

#include <string>

#include "core/result.h"

namespace inquest {

/// The functions that a replay calls, all of NCCL 2.14 or older. The library is never unloaded: its threads outlive us.
struct NcclLibrary {
  std::string path;  ///< of the file that was loaded
  int version = 0;   ///< as ncclGetVersion gives it: 22809
  decltype(&::ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&::ncclCommInitRankConfig) init = nullptr;
  decltype(&::ncclCommGetAsyncError) async_error = nullptr;
  decltype(&::ncclCommFinalize) finalize = nullptr;
  decltype(&::ncclCommDestroy) destroy = nullptr;
  decltype(&::ncclCommAbort) abort = nullptr;
  decltype(&::ncclGetErrorString) error_string = nullptr;
  decltype(&::ncclGetLastError) last_error = nullptr;
  decltype(&::ncclGroupStart) group_start = nullptr;
  decltype(&::ncclGroupEnd) group_end = nullptr;
  decltype(&::ncclBroadcast) broadcast = nullptr;
  decltype(&::ncclAllReduce) all_reduce = nullptr;
  decltype(&::ncclReduce) reduce = nullptr;
  decltype(&::ncclAllGather) all_gather = nullptr;
  decltype(&::ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&::ncclSend) send = nullptr;
  decltype(&::ncclRecv) recv = nullptr;
};

/// `path` empty: libnccl.so.2 where the dynamic linker finds it. Fails with the linker's words, or where the library is
/// older than 2.14, which cannot start without blocking.
Result<NcclLibrary> LoadNccl(const std::string& path);

/// `2.28.9` for 22809, `2.8.4` for 2804.
std::string NcclVersionText(int version);

}  // namespace inquest
