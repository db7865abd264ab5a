// A CUDA runtime without a GPU: the device's memory is the host's, and all but NCCL's work is done when it is put
// on a stream. FAKE_CUDA_DEVICES=N: so many there are, 8 otherwise.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "replay/engines/nccl_check.h"
#include "tests/replay/nccl/fake_gpu.h"

namespace {

thread_local int current_device = 0;

struct FakeEvent {
  FakeStream* stream = nullptr;
  std::uint64_t mark = 0;
};
FakeStream* Stream(cudaStream_t stream) { return reinterpret_cast<FakeStream*>(stream); }
FakeEvent* Event(cudaEvent_t event) { return reinterpret_cast<FakeEvent*>(event); }

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  const char* devices = std::getenv("FAKE_CUDA_DEVICES");
  *count = devices == nullptr ? 8 : std::atoi(devices);
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaFree(void*) { return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "Fake GPU");
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = std::size_t{1} << 30U;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** pointer, std::size_t size) {
  *pointer = std::aligned_alloc(256, (size + 255) / 256 * 256);
  return *pointer == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaHostAlloc(void** pointer, std::size_t size, unsigned) { return cudaMalloc(pointer, size); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  auto* made = new FakeStream;
  made->device = current_device;
  *stream = reinterpret_cast<cudaStream_t>(made);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = reinterpret_cast<cudaEvent_t>(new FakeEvent);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t size, cudaStream_t) {
  std::memset(pointer, value, size);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t size, cudaMemcpyKind) {
  std::memcpy(to, from, size);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(Stream(stream)->mutex);
  *Event(event) = {Stream(stream), Stream(stream)->enqueued};
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  Event(event)->stream->GoOn();
  return Event(event)->stream->done >= Event(event)->mark ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* took, cudaEvent_t, cudaEvent_t) {
  *took = 1.5F;
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) { return "fake error"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }

}  // extern "C"

namespace inquest {

cudaError_t FillInputOnDevice(const DataShape& shape, int iteration, void* input, cudaStream_t) {
  FillInput(shape, iteration, {static_cast<std::byte*>(input), BytesIn(shape)});
  return cudaSuccess;
}

cudaError_t VerifyOutputOnDevice(const DataShape& shape, int iteration, const void* output, DeviceFaults* faults,
                                 cudaStream_t) {
  const auto wrong = VerifyOutput(shape, iteration, {static_cast<const std::byte*>(output), BytesOut(shape)});
  if (wrong) *faults = {wrong->elements, wrong->first};
  return cudaSuccess;
}

}  // namespace inquest
