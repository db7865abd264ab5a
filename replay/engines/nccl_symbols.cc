// The dynamic linker's part of it.
#include "replay/engines/nccl_symbols.h"

#include <dlfcn.h>

namespace inquest {

Result<OpenedLibrary> OpenedLibrary::Open(const std::string& path) {
  if (void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return OpenedLibrary(handle, path);
  const char* const words = ::dlerror();
  return Error{words == nullptr ? "unknown error of the dynamic linker" : words, "", path};
}

void* OpenedLibrary::Address(std::string_view name) {
  void* const found = ::dlsym(handle_, std::string(name).c_str());
  if (found == nullptr && missing_.empty()) missing_ = name;
  return found;
}

std::string OpenedLibrary::PathOfAddress(void* function) const {
  Dl_info info{};
  return ::dladdr(function, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : asked_;
}

}  // namespace inquest
