// Fills and verifies buffers in the device's memory by the patterns of check.h.
#pragma once

#include <cuda_runtime.h>

#include "replay/engines/host_data.h"

namespace inquest {

/// What the device found; in memory that both sides reach.
struct DeviceFaults {
  unsigned long long elements = 0;   ///< wrong ones
  unsigned long long first = ~0ULL;  ///< index of the first
};

// Each is put on the stream and returns at once; pointers are the device's.
cudaError_t FillInputOnDevice(const DataShape& shape, int iteration, void* input, cudaStream_t stream);
cudaError_t VerifyOutputOnDevice(const DataShape& shape, int iteration, const void* output, DeviceFaults* faults,
                                 cudaStream_t stream);

}  // namespace inquest
