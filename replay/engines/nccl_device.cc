// The kernels come as PTX, which the driver compiles for the GPU it finds. Where it cannot, the host does their work.
#include "replay/engines/nccl_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "replay/engines/nccl_kernels.h"
#include "replay/engines/runner.h"

namespace inquest::cuda {
namespace {

constexpr std::uint64_t kAlignment = 256;      ///< cuMemAlloc's
constexpr std::uint64_t kChunk = 4ULL << 20U;  ///< bytes that the host fills or verifies at once
constexpr unsigned kThreads = 256;
constexpr std::uint64_t kMostBlocks = 1024;

/// The driver has no compiler for PTX, or must not use it; any other refusal is one of the GPU.
bool IsOfCompiler(Status status) {
  return status == Status::kJitCompilerNotFound || status == Status::kJitCompilationDisabled ||
         status == Status::kUnsupportedPtxVersion || status == Status::kNoBinaryForGpu;
}

/// Domain, bus, device and function: drivers write them with more or fewer zeros, large or small.
std::vector<unsigned long> PartsOf(const std::string& address) {
  std::vector<unsigned long> parts;
  const char* at = address.c_str();
  for (char* end = nullptr; *at != '\0'; at = *end == '\0' ? end : end + 1) parts.push_back(std::strtoul(at, &end, 16));
  return parts;
}

}  // namespace

void Gpu::Check(Status status, std::string_view what) const {
  if (status != Status::kSuccess) throw std::runtime_error(fmt::format("{}: {}", what, driver_.Words(status)));
}

bool Gpu::IsPast(Event event) const {
  const Status status = driver_.query(event);
  if (status != Status::kNotReady) Check(status, "waiting for the GPU");
  return status == Status::kSuccess;
}

void Gpu::Await(Event event) const {
  for (Backoff backoff; !IsPast(event); backoff.Wait()) look_();
}

Stream Gpu::NewStream() const {
  Stream stream = nullptr;
  Check(driver_.create_stream(&stream, kStreamNonBlocking), "making a stream");
  return stream;
}

Event Gpu::NewEvent() const {
  Event event = nullptr;
  Check(driver_.create_event(&event, 0), "making an event");
  return event;
}

// ---- getting ready --------------------------------------------------------------------------------------------------

void Gpu::Open() {
  Result<Driver> driver = LoadDriver();
  if (!driver) throw std::runtime_error(driver.error().message);
  driver_ = *driver;
}

int Gpu::Count() const {
  int count = 0;
  Check(driver_.device_count(&count), "counting the GPUs");
  return count;
}

bool Gpu::IsAt(int ordinal, const std::string& address) const {
  Device device = 0;
  char bus_id[32] = "";
  Check(driver_.device(&device, ordinal), "looking at the GPUs");
  Check(driver_.device_bus_id(bus_id, sizeof(bus_id), device), "asking a GPU for its address");
  return PartsOf(bus_id) == PartsOf(address);
}

void Gpu::Choose(int ordinal) {
  Device device = 0;
  Context context = nullptr;
  char name[256] = "", bus_id[32] = "";
  Check(driver_.device(&device, ordinal), "choosing the GPU");
  Check(driver_.retain_primary_context(&context, device), "making the CUDA context");
  Check(driver_.set_context(context), "taking the CUDA context");
  Check(driver_.device_name(name, sizeof(name), device), "asking the GPU for its name");
  Check(driver_.device_bus_id(bus_id, sizeof(bus_id), device), "asking the GPU for its address");
  int major = 0, minor = 0;
  Check(driver_.device_attribute(&major, Attribute::kMajor, device), "asking the GPU for its compute capability");
  Check(driver_.device_attribute(&minor, Attribute::kMinor, device), "asking the GPU for its compute capability");
  capability_ = major * 10 + minor;
  bus_id_ = bus_id;
  description_ = fmt::format("GPU {}: {} at {}", ordinal, name, bus_id);
}

void Gpu::Prepare() {
  Check(driver_.create_stream(&stream_, kStreamNonBlocking), "making a stream");
  Check(driver_.create_event(&begun_, 0), "making an event");
  Check(driver_.create_event(&ended_, 0), "making an event");
  Check(driver_.allocate_pinned(&pinned_, kChunk), "allocating pinned memory");
  faults_ = Allocate(sizeof(DataFaults));
  LoadKernels();
}

void Gpu::LoadKernels() {
  Module kernels = nullptr;
  const Status loaded = driver_.load_module(&kernels, kKernels);
  if (IsOfCompiler(loaded)) {
    why_host_ = driver_.Words(loaded);
    return;
  }
  Check(loaded, "loading the kernels that fill and verify");
  Check(driver_.find_kernel(&fill_, kernels, kFillKernel), "finding the kernel that fills");
  Check(driver_.find_kernel(&verify_, kernels, kVerifyKernel), "finding the kernel that verifies");
}

// ---- memory ---------------------------------------------------------------------------------------------------------

std::uint64_t Gpu::FreeBytes() const {
  std::size_t free = 0, total = 0;
  Check(driver_.memory(&free, &total), "asking for the GPU's memory");
  return free;
}

Pointer Gpu::Allocate(std::uint64_t bytes) const {
  Pointer pointer = 0;
  Check(driver_.allocate(&pointer, std::max(bytes, kAlignment)), "allocating the GPU's memory");
  return pointer;
}

void Gpu::SetBytes(Stream stream, Pointer to, unsigned char value, std::uint64_t bytes) const {
  if (bytes > 0) Check(driver_.set_bytes(to, value, bytes, stream), "setting the GPU's memory");
}

void Gpu::Read(Pointer from, std::uint64_t bytes, void* to) const {
  Check(driver_.copy_to_host(pinned_, from, bytes, stream_), "reading the GPU's memory");
  MarkEnd();
  AwaitEnd();
  std::memcpy(to, pinned_, bytes);
}

std::chrono::nanoseconds Gpu::Elapsed() const {
  float took = 0;  // in milliseconds
  Check(driver_.elapsed(&took, begun_, ended_), "reading the time");
  return std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(took) * 1e6));
}

// ---- data -----------------------------------------------------------------------------------------------------------

void Gpu::Launch(Stream stream, Kernel kernel, std::uint64_t elements, void** parameters) const {
  const std::uint64_t blocks = std::min((elements + kThreads - 1) / kThreads, kMostBlocks);
  Check(driver_.launch(kernel, static_cast<unsigned>(blocks), 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr),
        "starting a kernel");
}

void Gpu::FillOn(Stream stream, const DataShape& shape, int iteration, Pointer input) const {
  ElementPattern pattern = PatternOf(shape, iteration);
  std::uint64_t elements = BytesIn(shape) / static_cast<std::uint64_t>(pattern.bytes);
  void* parameters[] = {&pattern, &elements, &input};
  if (elements > 0) Launch(stream, fill_, elements, parameters);
}

void Gpu::VerifyOn(Stream stream, const DataShape& shape, int iteration, Pointer output, Pointer found) const {
  ElementPattern pattern = PatternOf(shape, iteration);
  std::uint64_t elements = BytesOut(shape) / static_cast<std::uint64_t>(pattern.bytes);
  SetBytes(stream, found + offsetof(DataFaults, elements), 0, sizeof(DataFaults::elements));
  SetBytes(stream, found + offsetof(DataFaults, first), 0xFF, sizeof(DataFaults::first));
  void* parameters[] = {&pattern, &elements, &output, &found};
  if (elements > 0) Launch(stream, verify_, elements, parameters);
}

void Gpu::Fill(const DataShape& shape, int iteration, Pointer input) const {
  const ElementPattern pattern = PatternOf(shape, iteration);
  const auto bytes = static_cast<std::uint64_t>(pattern.bytes), step = kChunk / bytes;
  const std::uint64_t elements = BytesIn(shape) / bytes;
  if (why_host_.empty()) FillOn(stream_, shape, iteration, input);
  for (std::uint64_t first = 0; !why_host_.empty() && first < elements; first += step) {
    const std::uint64_t end = std::min(elements, first + step);
    FillElements(pattern, {first, end, 1}, first, pinned_);
    Check(driver_.copy_to_device(input + first * bytes, pinned_, (end - first) * bytes, stream_), "filling the input");
    MarkEnd();
    AwaitEnd();  // the chunk is used again
  }
  MarkEnd();
  AwaitEnd();
}

DataFaults Gpu::Verify(const DataShape& shape, int iteration, Pointer output) const {
  const ElementPattern pattern = PatternOf(shape, iteration);
  const auto bytes = static_cast<std::uint64_t>(pattern.bytes), step = kChunk / bytes;
  const std::uint64_t elements = BytesOut(shape) / bytes;
  DataFaults faults;
  if (elements > 0 && why_host_.empty()) {
    VerifyOn(stream_, shape, iteration, output, faults_);
    Read(faults_, sizeof(faults), &faults);
  }
  for (std::uint64_t first = 0; !why_host_.empty() && first < elements; first += step) {
    const std::uint64_t end = std::min(elements, first + step);
    Check(driver_.copy_to_host(pinned_, output + first * bytes, (end - first) * bytes, stream_), "reading the output");
    MarkEnd();
    AwaitEnd();
    const DataFaults part = VerifyElements(pattern, {first, end, 1}, first, pinned_);
    faults.elements += part.elements;
    faults.first = std::min(faults.first, part.first);
  }
  return faults;
}

}  // namespace inquest::cuda
