// Loads libnccl by dlopen and looks up what a replay calls.
#include "replay/engines/nccl_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace inquest {
namespace {

constexpr int kOldest = 21400;

const char* LinkerError() {
  const char* words = ::dlerror();
  return words == nullptr ? "unknown error of the dynamic linker" : words;
}

/// Remembers the first name that is not there.
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}
  template <class Function>
  void Look(const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library_, name));
    if (function == nullptr && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

std::string PathOf(void* function, const std::string& asked) {
  Dl_info info{};
  return ::dladdr(function, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : asked;
}

}  // namespace

std::string NcclVersionText(int version) {
  const int major = version >= 10000 ? version / 10000 : version / 1000;
  const int minor = version >= 10000 ? version / 100 % 100 : version / 100 % 10;
  return fmt::format("{}.{}.{}", major, minor, version % 100);
}

Result<NcclLibrary> LoadNccl(const std::string& path) {
  const std::string name = path.empty() ? "libnccl.so.2" : path;
  void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Error{
        fmt::format("libnccl cannot be loaded: {}", LinkerError()),
        "install it, or name the job's own with --nccl-lib (of pip: site-packages/nvidia/nccl/lib/libnccl.so.2)", path};
  }
  NcclLibrary library;
  Symbols symbols(handle);
  decltype(&::ncclGetVersion) get_version = nullptr;
  symbols.Look("ncclGetVersion", get_version);
  if (get_version == nullptr || get_version(&library.version) != ncclSuccess)
    return Error{"this is no libnccl", "name another with --nccl-lib", name};
  library.path = PathOf(reinterpret_cast<void*>(get_version), name);
  if (library.version < kOldest) {
    return Error{fmt::format("NCCL {} cannot start without blocking; 2.14 is the oldest that can",
                             NcclVersionText(library.version)),
                 "name a newer one with --nccl-lib, or use nccl-tests", library.path};
  }
  symbols.Look("ncclGetUniqueId", library.get_unique_id);
  symbols.Look("ncclCommInitRankConfig", library.init);
  symbols.Look("ncclCommGetAsyncError", library.async_error);
  symbols.Look("ncclCommFinalize", library.finalize);
  symbols.Look("ncclCommDestroy", library.destroy);
  symbols.Look("ncclCommAbort", library.abort);
  symbols.Look("ncclGetErrorString", library.error_string);
  symbols.Look("ncclGetLastError", library.last_error);
  symbols.Look("ncclGroupStart", library.group_start);
  symbols.Look("ncclGroupEnd", library.group_end);
  symbols.Look("ncclBroadcast", library.broadcast);
  symbols.Look("ncclAllReduce", library.all_reduce);
  symbols.Look("ncclReduce", library.reduce);
  symbols.Look("ncclAllGather", library.all_gather);
  symbols.Look("ncclReduceScatter", library.reduce_scatter);
  symbols.Look("ncclSend", library.send);
  symbols.Look("ncclRecv", library.recv);
  if (!symbols.missing().empty())
    return Error{fmt::format("libnccl has no {}", symbols.missing()), "name another with --nccl-lib", library.path};
  return library;
}

}  // namespace inquest
