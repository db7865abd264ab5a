// A libcuda.so.1 without a GPU: the device's memory is the host's, kernels are what check.h says of them, thread by
// thread of the launch, and nothing is done before an event is asked for. By the environment:
//   FAKE_CUDA_DEVICES=N    so many there are, 8 otherwise
//   FAKE_CUDA_MEMORY=N     bytes of each, 1 GiB otherwise
//   FAKE_CUDA_INIT=N       cuInit fails with this
//   FAKE_CUDA_CAPABILITY=N 90 otherwise
//   FAKE_CUDA_JIT=N        so does what loads PTX
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "replay/engines/check.h"
#include "replay/engines/nccl_driver.h"
#include "tests/replay/nccl/fake_gpu.h"

namespace cuda = inquest::cuda;
using cuda::Status;

struct cuda::StreamHandle : FakeStream {};
struct cuda::ContextHandle {
  int device = 0;
  std::size_t allocated = 0;
};
struct cuda::EventHandle {
  FakeStream* stream = nullptr;
  std::uint64_t mark = 0;
};
struct cuda::KernelHandle {
  std::string name;
  std::vector<std::size_t> parameters;  ///< bytes of each
};
struct cuda::ModuleHandle {
  std::map<std::string, cuda::KernelHandle> kernels;
};

namespace {

thread_local cuda::Context current = nullptr;

std::uint64_t Number(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}
/// The one that a process sees of those that CUDA_VISIBLE_DEVICES names.
std::string MigInstance() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string all = visible == nullptr ? "" : visible;
  return all.starts_with("MIG-") ? " " + all.substr(0, all.find(',')) : "";
}
Status HasContext() { return current == nullptr ? Status::kInvalidContext : Status::kSuccess; }

/// The entries of a module, with the sizes of their parameters.
std::map<std::string, cuda::KernelHandle> Entries(const std::string& ptx) {
  static const std::regex kEntry(R"(\.visible \.entry (\w+)\(([^)]*)\))");
  static const std::regex kParameter(R"(\.[bu](\d+)\s+\w+(\[(\d+)\])?)");
  std::map<std::string, cuda::KernelHandle> entries;
  for (std::sregex_iterator entry(ptx.begin(), ptx.end(), kEntry), end; entry != end; ++entry) {
    cuda::KernelHandle kernel{(*entry)[1], {}};
    const std::string list = (*entry)[2];
    for (std::sregex_iterator one(list.begin(), list.end(), kParameter); one != end; ++one)
      kernel.parameters.push_back(std::stoul((*one)[1]) / 8 * ((*one)[3].matched ? std::stoul((*one)[3]) : 1));
    entries.emplace(kernel.name, kernel);
  }
  return entries;
}

/// One thread of a launch after the other.
template <class Thread>
void ForEachThread(unsigned blocks, unsigned threads, std::uint64_t elements, Thread thread) {
  const std::uint64_t all = std::uint64_t{blocks} * threads;
  for (std::uint64_t first = 0; first < all; ++first) thread(inquest::Stride{first, elements, all});
}

}  // namespace

extern "C" {

Status cuInit(unsigned) { return static_cast<Status>(Number("FAKE_CUDA_INIT", 0)); }
Status cuGetErrorString(Status status, const char** words) {
  *words = status == Status::kNoDevice              ? "no CUDA-capable device is detected"
           : status == Status::kJitCompilerNotFound ? "PTX JIT compiler library not found"
                                                    : "fake error";
  return Status::kSuccess;
}
Status cuDeviceGetCount(int* count) {
  *count = !MigInstance().empty() ? 1 : static_cast<int>(Number("FAKE_CUDA_DEVICES", 8));
  return Status::kSuccess;
}
Status cuDeviceGet(cuda::Device* device, int ordinal) {
  *device = ordinal;
  return Status::kSuccess;
}
Status cuDeviceGetName(char* text, int size, cuda::Device) {
  std::snprintf(text, static_cast<std::size_t>(size), "Fake GPU%s", MigInstance().c_str());
  return Status::kSuccess;
}
Status cuDeviceGetPCIBusId(char* text, int size, cuda::Device device) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02X:00.0", device + 10);
  return Status::kSuccess;
}
Status cuDeviceGetAttribute(int* value, cuda::Attribute attribute, cuda::Device) {
  const auto capability = static_cast<int>(Number("FAKE_CUDA_CAPABILITY", 90));
  *value = attribute == cuda::Attribute::kMajor ? capability / 10 : capability % 10;
  return Status::kSuccess;
}
Status cuDevicePrimaryCtxRetain(cuda::Context* context, cuda::Device device) {
  *context = new cuda::ContextHandle{device, 0};
  return Status::kSuccess;
}
Status cuCtxSetCurrent(cuda::Context context) {
  current = context;
  return Status::kSuccess;
}
/// As NCCL's own CUDA runtime asks for it.
Status cuCtxGetDevice(cuda::Device* device) {
  if (current != nullptr) *device = current->device;
  return HasContext();
}

Status cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  if (current == nullptr) return Status::kInvalidContext;
  *total = Number("FAKE_CUDA_MEMORY", 1ULL << 30U);
  *free = *total - std::min<std::size_t>(*total, current->allocated);
  return Status::kSuccess;
}
Status cuMemAlloc_v2(cuda::Pointer* pointer, std::size_t size) {
  std::size_t free = 0, total = 0;
  if (const Status status = cuMemGetInfo_v2(&free, &total); status != Status::kSuccess) return status;
  if (size == 0 || size > free) return Status::kOutOfMemory;
  current->allocated += size;
  *pointer = DeviceAddress(std::aligned_alloc(256, (size + 255) / 256 * 256));
  return Status::kSuccess;
}
Status cuMemAllocHost_v2(void** pointer, std::size_t size) {
  *pointer = std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  return HasContext();
}

Status cuMemsetD8Async(cuda::Pointer to, unsigned char value, std::size_t size, cuda::Stream stream) {
  if (!IsDeviceAddress(to)) return Status::kInvalidValue;
  stream->Add([=] {
    std::memset(HostAddress(to), value, size);
    return true;
  });
  return HasContext();
}
Status cuMemcpyHtoDAsync_v2(cuda::Pointer to, const void* from, std::size_t size, cuda::Stream stream) {
  if (!IsDeviceAddress(to)) return Status::kInvalidValue;
  stream->Add([=] {
    std::memcpy(HostAddress(to), from, size);
    return true;
  });
  return HasContext();
}
Status cuMemcpyDtoHAsync_v2(void* to, cuda::Pointer from, std::size_t size, cuda::Stream stream) {
  if (!IsDeviceAddress(from)) return Status::kInvalidValue;
  stream->Add([=] {
    std::memcpy(to, HostAddress(from), size);
    return true;
  });
  return HasContext();
}

Status cuStreamCreate(cuda::Stream* stream, unsigned) {
  if (current == nullptr) return Status::kInvalidContext;
  *stream = new cuda::StreamHandle;
  return Status::kSuccess;
}
Status cuEventCreate(cuda::Event* event, unsigned) {
  *event = new cuda::EventHandle;
  return HasContext();
}
Status cuEventRecord(cuda::Event event, cuda::Stream stream) {
  const std::lock_guard lock(stream->mutex);
  *event = {stream, stream->enqueued};
  return HasContext();
}
Status cuEventQuery(cuda::Event event) {
  event->stream->GoOn();
  return event->stream->done >= event->mark ? Status::kSuccess : Status::kNotReady;
}
Status cuEventElapsedTime(float* took, cuda::Event, cuda::Event) {
  *took = 1.5F;
  return HasContext();
}

Status cuModuleLoadData(cuda::Module* module, const void* image) {
  if (const auto refused = Number("FAKE_CUDA_JIT", 0); refused != 0) return static_cast<Status>(refused);
  const std::string ptx = static_cast<const char*>(image);
  if (!ptx.starts_with(".version")) return Status::kInvalidValue;
  *module = new cuda::ModuleHandle{Entries(ptx)};
  return HasContext();
}
Status cuModuleGetFunction(cuda::Kernel* kernel, cuda::Module module, const char* name) {
  const auto found = module->kernels.find(name);
  if (found == module->kernels.end()) return Status::kNotFound;
  *kernel = &found->second;
  return Status::kSuccess;
}
/// Parameters are taken now, by the sizes that the PTX has for them; the threads run when the stream comes to them.
Status cuLaunchKernel(cuda::Kernel kernel, unsigned blocks, unsigned blocks_y, unsigned blocks_z, unsigned threads,
                      unsigned threads_y, unsigned threads_z, unsigned, cuda::Stream stream, void** parameters,
                      void** extra) {
  if (current == nullptr || blocks == 0 || threads == 0 || threads > 1024 || extra != nullptr ||
      blocks_y * blocks_z * threads_y * threads_z != 1)
    return Status::kInvalidValue;
  inquest::ElementPattern pattern;
  std::uint64_t elements = 0;
  cuda::Pointer data = 0, faults = 0;
  const bool fills = kernel->name == "inquest_fill";
  std::vector<std::pair<void*, std::size_t>> wanted = {
      {&pattern, sizeof(pattern)}, {&elements, sizeof(elements)}, {&data, sizeof(data)}};
  if (!fills) wanted.emplace_back(&faults, sizeof(faults));
  if (kernel->parameters.size() != wanted.size()) return Status::kInvalidValue;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (kernel->parameters[i] != wanted[i].second) return Status::kInvalidValue;
    std::memcpy(wanted[i].first, parameters[i], wanted[i].second);
  }
  if (!IsDeviceAddress(data) || (!fills && !IsDeviceAddress(faults))) return Status::kInvalidValue;
  stream->Add([=] {
    ForEachThread(blocks, threads, elements, [&](const inquest::Stride& stride) {
      if (fills) return inquest::FillElements(pattern, stride, 0, HostAddress(data));
      auto& all = *reinterpret_cast<inquest::DataFaults*>(HostAddress(faults));
      const inquest::DataFaults own = inquest::VerifyElements(pattern, stride, 0, HostAddress(data));
      all.elements += own.elements;
      all.first = std::min(all.first, own.first);
    });
    return true;
  });
  return Status::kSuccess;
}

}  // extern "C"
