// Loads libcuda by dlopen: it comes with the driver, and with nothing else.
#include "replay/engines/nccl_driver.h"

#include <fmt/format.h>

namespace inquest::cuda {

std::string Driver::Words(Status status) const {
  const char* words = nullptr;
  if (error_string(status, &words) != Status::kSuccess || words == nullptr) words = "unknown to the driver";
  return fmt::format("CUDA error {} ({})", static_cast<int>(status), words);
}

Result<Driver> LoadDriver() {
  constexpr const char* kName = "libcuda.so.1";
  constexpr const char* kElsewhere =
      "run it on a node of the job (in a container: one that was given the GPUs), or use --engine gloo, which needs "
      "none";
  Result<OpenedLibrary> library = OpenedLibrary::Open(kName);
  if (!library)
    return Error{fmt::format("the NVIDIA driver's {} cannot be loaded: {}", kName, library.error().message), kElsewhere,
                 ""};
  Driver driver;
  driver.ForEach([&](auto& symbol) { library->Look(symbol); });
  if (!library->missing().empty())
    return Error{fmt::format("{} has no {}", kName, library->missing()), "install a newer driver",
                 library->PathOf(driver.init)};
  if (const Status status = driver.init(0); status != Status::kSuccess)
    return Error{fmt::format("no GPU can be used: {}", driver.Words(status)), kElsewhere, ""};
  int count = 0;
  if (const Status status = driver.device_count(&count); status != Status::kSuccess || count == 0) {
    return Error{fmt::format("no GPU can be used: {}",
                             status == Status::kSuccess ? "the driver finds none" : driver.Words(status)),
                 kElsewhere, ""};
  }
  return driver;
}

}  // namespace inquest::cuda
