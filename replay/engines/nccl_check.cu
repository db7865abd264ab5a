// The patterns of check.h as kernels: one thread an element, striding over the buffer.
#include "replay/engines/check.h"
#include "replay/engines/nccl_check.h"

namespace inquest {
namespace {

constexpr int kThreads = 256, kMostBlocks = 1024;

int BlocksFor(std::uint64_t elements) {
  const std::uint64_t blocks = (elements + kThreads - 1) / kThreads;
  return static_cast<int>(blocks < 1 ? 1 : blocks > kMostBlocks ? kMostBlocks : blocks);
}

__device__ void Store(void* buffer, std::uint64_t element, int bytes, std::uint64_t bits) {
  switch (bytes) {
    case 1:
      static_cast<std::uint8_t*>(buffer)[element] = static_cast<std::uint8_t>(bits);
      break;
    case 2:
      static_cast<std::uint16_t*>(buffer)[element] = static_cast<std::uint16_t>(bits);
      break;
    case 4:
      static_cast<std::uint32_t*>(buffer)[element] = static_cast<std::uint32_t>(bits);
      break;
    default:
      static_cast<std::uint64_t*>(buffer)[element] = bits;
  }
}

__device__ std::uint64_t Load(const void* buffer, std::uint64_t element, int bytes) {
  switch (bytes) {
    case 1:
      return static_cast<const std::uint8_t*>(buffer)[element];
    case 2:
      return static_cast<const std::uint16_t*>(buffer)[element];
    case 4:
      return static_cast<const std::uint32_t*>(buffer)[element];
    default:
      return static_cast<const std::uint64_t*>(buffer)[element];
  }
}

__global__ void Fill(ElementPattern pattern, std::uint64_t elements, void* input) {
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < elements; i += stride)
    Store(input, i, pattern.bytes, InputElement(pattern, i));
}

__global__ void Verify(ElementPattern pattern, std::uint64_t elements, const void* output, DeviceFaults* faults) {
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < elements; i += stride) {
    if (IsRight(pattern, i, Load(output, i, pattern.bytes))) continue;
    atomicAdd(&faults->elements, 1ULL);
    atomicMin(&faults->first, static_cast<unsigned long long>(i));
  }
}

}  // namespace

cudaError_t FillInputOnDevice(const DataShape& shape, int iteration, void* input, cudaStream_t stream) {
  const std::uint64_t elements = BytesIn(shape) / BytesOf(shape.call.datatype);
  if (elements == 0) return cudaSuccess;
  Fill<<<BlocksFor(elements), kThreads, 0, stream>>>(PatternOf(shape, iteration), elements, input);
  return cudaGetLastError();
}

cudaError_t VerifyOutputOnDevice(const DataShape& shape, int iteration, const void* output, DeviceFaults* faults,
                                 cudaStream_t stream) {
  const std::uint64_t elements = BytesOut(shape) / BytesOf(shape.call.datatype);
  if (elements == 0) return cudaSuccess;
  Verify<<<BlocksFor(elements), kThreads, 0, stream>>>(PatternOf(shape, iteration), elements, output, faults);
  return cudaGetLastError();
}

}  // namespace inquest
