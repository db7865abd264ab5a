// Our declarations of CUDA's driver and of NCCL against NVIDIA's own headers: names, types, sizes, values. Compiled,
// never run, by declarations_test.py where those are installed.
#include <cuda.h>

#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

#include <cstddef>
#include <string_view>
#include <type_traits>

#include "replay/engines/nccl_driver.h"
#include "replay/engines/nccl_library.h"

namespace inquest {
namespace {

template <class T>
concept Complete = std::is_void_v<T> || requires {
  sizeof(T);
};

/// Whether a caller passes both alike.
template <class Ours, class Theirs>
struct Alike {
  static consteval bool Test() {
    if constexpr (std::is_void_v<Ours> || std::is_void_v<Theirs>) {
      return std::is_void_v<Ours> == std::is_void_v<Theirs>;
    } else if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
      using Our = std::remove_pointer_t<Ours>;
      using Their = std::remove_pointer_t<Theirs>;
      if (std::is_const_v<Our> != std::is_const_v<Their>) return false;
      // Handles: nobody knows what they point to. A structure of theirs may go on where ours ends.
      if constexpr (!Complete<Our> || !Complete<Their>)
        return !Complete<Our> && !Complete<Their>;
      else if constexpr (std::is_class_v<Our> && std::is_class_v<Their>)
        return sizeof(Our) <= sizeof(Their) && alignof(Our) == alignof(Their);
      else
        return Alike<std::remove_cv_t<Our>, std::remove_cv_t<Their>>::Test();
    } else {
      const bool numbers = (std::is_enum_v<Ours> && (std::is_enum_v<Theirs> || std::is_same_v<Theirs, int>)) ||
                           std::is_same_v<Ours, Theirs> ||
                           (std::is_integral_v<Ours> && std::is_integral_v<Theirs> &&
                            std::is_signed_v<Ours> == std::is_signed_v<Theirs>);
      const bool structures = std::is_class_v<Ours> && std::is_class_v<Theirs>;
      return (numbers || structures) && sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs);
    }
  }
};
template <class Returned, class... Parameters, class TheirReturned, class... TheirParameters>
requires(sizeof...(Parameters) ==
         sizeof...(TheirParameters)) struct Alike<Returned (*)(Parameters...), TheirReturned (*)(TheirParameters...)> {
  static consteval bool Test() {
    return Alike<Returned, TheirReturned>::Test() && (Alike<Parameters, TheirParameters>::Test() && ...);
  }
};

// Their headers rename by macros: what is quoted is the name that is linked.
#define INQUEST_QUOTED(name) #name
#define INQUEST_SAME(library, member, function)                               \
  static_assert(decltype(library::member)::name == INQUEST_QUOTED(function)); \
  static_assert(Alike<decltype(library::member)::Function, decltype(&::function)>::Test())
#define INQUEST_VALUE(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))

INQUEST_SAME(cuda::Driver, init, cuInit);
INQUEST_SAME(cuda::Driver, error_string, cuGetErrorString);
INQUEST_SAME(cuda::Driver, device_count, cuDeviceGetCount);
INQUEST_SAME(cuda::Driver, device, cuDeviceGet);
INQUEST_SAME(cuda::Driver, device_name, cuDeviceGetName);
INQUEST_SAME(cuda::Driver, device_bus_id, cuDeviceGetPCIBusId);
INQUEST_SAME(cuda::Driver, device_attribute, cuDeviceGetAttribute);
INQUEST_SAME(cuda::Driver, retain_primary_context, cuDevicePrimaryCtxRetain);
INQUEST_SAME(cuda::Driver, set_context, cuCtxSetCurrent);
INQUEST_SAME(cuda::Driver, memory, cuMemGetInfo);
INQUEST_SAME(cuda::Driver, allocate, cuMemAlloc);
INQUEST_SAME(cuda::Driver, allocate_pinned, cuMemAllocHost);
INQUEST_SAME(cuda::Driver, set_bytes, cuMemsetD8Async);
INQUEST_SAME(cuda::Driver, copy_to_device, cuMemcpyHtoDAsync);
INQUEST_SAME(cuda::Driver, copy_to_host, cuMemcpyDtoHAsync);
INQUEST_SAME(cuda::Driver, create_stream, cuStreamCreate);
INQUEST_SAME(cuda::Driver, create_event, cuEventCreate);
INQUEST_SAME(cuda::Driver, record, cuEventRecord);
INQUEST_SAME(cuda::Driver, query, cuEventQuery);
INQUEST_SAME(cuda::Driver, load_module, cuModuleLoadData);
INQUEST_SAME(cuda::Driver, find_kernel, cuModuleGetFunction);
INQUEST_SAME(cuda::Driver, launch, cuLaunchKernel);
// From CUDA 12.8 on the header names a second form of this; the first stays, with the same signature.
static_assert(decltype(cuda::Driver::elapsed)::name == "cuEventElapsedTime");
static_assert(Alike<decltype(cuda::Driver::elapsed)::Function, decltype(&::cuEventElapsedTime)>::Test());
static_assert(sizeof(cuda::Driver) == 23 * sizeof(void*), "a function was added, and is not compared here");

INQUEST_VALUE(cuda::Status::kSuccess, CUDA_SUCCESS);
INQUEST_VALUE(cuda::Status::kInvalidValue, CUDA_ERROR_INVALID_VALUE);
INQUEST_VALUE(cuda::Status::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
INQUEST_VALUE(cuda::Status::kNoDevice, CUDA_ERROR_NO_DEVICE);
INQUEST_VALUE(cuda::Status::kInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
INQUEST_VALUE(cuda::Status::kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
INQUEST_VALUE(cuda::Status::kJitCompilerNotFound, CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
INQUEST_VALUE(cuda::Status::kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
INQUEST_VALUE(cuda::Status::kJitCompilationDisabled, 223);  // CUDA_ERROR_JIT_COMPILATION_DISABLED, of 11.2 on
INQUEST_VALUE(cuda::Status::kNotFound, CUDA_ERROR_NOT_FOUND);
INQUEST_VALUE(cuda::Status::kNotReady, CUDA_ERROR_NOT_READY);
INQUEST_VALUE(cuda::Attribute::kMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
INQUEST_VALUE(cuda::Attribute::kMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
INQUEST_VALUE(cuda::kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
static_assert(sizeof(cuda::Pointer) == sizeof(CUdeviceptr) && std::is_same_v<cuda::Device, CUdevice>);

#if __has_include(<nccl.h>)
INQUEST_SAME(nccl::Library, get_version, ncclGetVersion);
INQUEST_SAME(nccl::Library, get_unique_id, ncclGetUniqueId);
INQUEST_SAME(nccl::Library, init, ncclCommInitRankConfig);
INQUEST_SAME(nccl::Library, async_error, ncclCommGetAsyncError);
INQUEST_SAME(nccl::Library, finalize, ncclCommFinalize);
INQUEST_SAME(nccl::Library, destroy, ncclCommDestroy);
INQUEST_SAME(nccl::Library, abort, ncclCommAbort);
INQUEST_SAME(nccl::Library, error_string, ncclGetErrorString);
INQUEST_SAME(nccl::Library, last_error, ncclGetLastError);
INQUEST_SAME(nccl::Library, group_start, ncclGroupStart);
INQUEST_SAME(nccl::Library, group_end, ncclGroupEnd);
INQUEST_SAME(nccl::Library, broadcast, ncclBroadcast);
INQUEST_SAME(nccl::Library, all_reduce, ncclAllReduce);
INQUEST_SAME(nccl::Library, reduce, ncclReduce);
INQUEST_SAME(nccl::Library, all_gather, ncclAllGather);
INQUEST_SAME(nccl::Library, reduce_scatter, ncclReduceScatter);
INQUEST_SAME(nccl::Library, send, ncclSend);
INQUEST_SAME(nccl::Library, recv, ncclRecv);
static_assert(offsetof(nccl::Library, version) == 18 * sizeof(void*), "a function was added, and is not compared here");

INQUEST_VALUE(nccl::Status::kSuccess, ncclSuccess);
INQUEST_VALUE(nccl::Status::kUnhandledCudaError, ncclUnhandledCudaError);
INQUEST_VALUE(nccl::Status::kSystemError, ncclSystemError);
INQUEST_VALUE(nccl::Status::kInternalError, ncclInternalError);
INQUEST_VALUE(nccl::Status::kInvalidArgument, ncclInvalidArgument);
INQUEST_VALUE(nccl::Status::kInvalidUsage, ncclInvalidUsage);
INQUEST_VALUE(nccl::Status::kRemoteError, ncclRemoteError);
INQUEST_VALUE(nccl::Status::kInProgress, ncclInProgress);
INQUEST_VALUE(nccl::TypeOf(Datatype::kInt8), ncclInt8);
INQUEST_VALUE(nccl::TypeOf(Datatype::kUint8), ncclUint8);
INQUEST_VALUE(nccl::TypeOf(Datatype::kInt32), ncclInt32);
INQUEST_VALUE(nccl::TypeOf(Datatype::kUint32), ncclUint32);
INQUEST_VALUE(nccl::TypeOf(Datatype::kInt64), ncclInt64);
INQUEST_VALUE(nccl::TypeOf(Datatype::kUint64), ncclUint64);
INQUEST_VALUE(nccl::TypeOf(Datatype::kFloat16), ncclFloat16);
INQUEST_VALUE(nccl::TypeOf(Datatype::kFloat32), ncclFloat32);
INQUEST_VALUE(nccl::TypeOf(Datatype::kFloat64), ncclFloat64);
INQUEST_VALUE(nccl::TypeOf(Datatype::kBfloat16), ncclBfloat16);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0)
INQUEST_VALUE(nccl::TypeOf(Datatype::kFloat8E4M3), ncclFloat8e4m3);
INQUEST_VALUE(nccl::TypeOf(Datatype::kFloat8E5M2), ncclFloat8e5m2);
#endif
INQUEST_VALUE(nccl::ReductionOf(RedOp::kSum), ncclSum);
INQUEST_VALUE(nccl::ReductionOf(RedOp::kProd), ncclProd);
INQUEST_VALUE(nccl::ReductionOf(RedOp::kMax), ncclMax);
INQUEST_VALUE(nccl::ReductionOf(RedOp::kMin), ncclMin);
INQUEST_VALUE(nccl::ReductionOf(RedOp::kAvg), ncclAvg);

static_assert(sizeof(nccl::UniqueId) == sizeof(ncclUniqueId) && alignof(nccl::UniqueId) == alignof(ncclUniqueId));
static_assert(sizeof(nccl::UniqueId::internal) == NCCL_UNIQUE_ID_BYTES);
static_assert(offsetof(nccl::Config, size) == offsetof(ncclConfig_t, size));
static_assert(offsetof(nccl::Config, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(nccl::Config, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(nccl::Config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(alignof(nccl::Config) == alignof(ncclConfig_t));
[[maybe_unused]] constexpr ncclConfig_t kTheirs = NCCL_CONFIG_INITIALIZER;
static_assert(nccl::Config{}.magic == kTheirs.magic);
#endif

}  // namespace
}  // namespace inquest
