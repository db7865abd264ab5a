// Loads libnccl by dlopen and looks up what a replay calls.
#include "replay/engines/nccl_library.h"

#include <fmt/format.h>

namespace inquest::nccl {
namespace {

constexpr int kOldest = 21400;

}  // namespace

std::string VersionText(int version) {
  const int major = version >= 10000 ? version / 10000 : version / 1000;
  const int minor = version >= 10000 ? version / 100 % 100 : version / 100 % 10;
  return fmt::format("{}.{}.{}", major, minor, version % 100);
}

Result<Library> LoadLibrary(const std::string& path) {
  const std::string name = path.empty() ? "libnccl.so.2" : path;
  Result<OpenedLibrary> opened = OpenedLibrary::Open(name);
  if (!opened) {
    return Error{
        fmt::format("libnccl cannot be loaded: {}", opened.error().message),
        "install it, or name the job's own with --nccl-lib (of pip: site-packages/nvidia/nccl/lib/libnccl.so.2)", path};
  }
  Library library;
  opened->Look(library.get_version);
  if (library.get_version.function == nullptr || library.get_version(&library.version) != Status::kSuccess)
    return Error{"this is no libnccl", "name another with --nccl-lib", name};
  library.path = opened->PathOf(library.get_version);
  if (library.version < kOldest) {
    return Error{
        fmt::format("NCCL {} cannot start without blocking; 2.14 is the oldest that can", VersionText(library.version)),
        "name a newer one with --nccl-lib, or use nccl-tests", library.path};
  }
  library.ForEach([&](auto& symbol) { opened->Look(symbol); });
  if (!opened->missing().empty())
    return Error{fmt::format("libnccl has no {}", opened->missing()), "name another with --nccl-lib", library.path};
  return library;
}

}  // namespace inquest::nccl
