// What nccl_kernels.cu becomes: its PTX, embedded by the build, and the names in it.
#pragma once

namespace inquest::cuda {

extern const char* const kKernels;
constexpr const char* kFillKernel = "inquest_fill";      ///< (ElementPattern, elements, input)
constexpr const char* kVerifyKernel = "inquest_verify";  ///< (ElementPattern, elements, output, DataFaults*)

}  // namespace inquest::cuda
