// The driver of the GPUs, libcuda.so.1: what a replay needs of it, in declarations of our own, so that every build has
// them. tests/replay/nccl/declarations_test.cc compares them with NVIDIA's where a toolkit is installed.
#pragma once

#include <cstddef>
#include <string>

#include "core/result.h"
#include "replay/engines/nccl_symbols.h"

namespace inquest::cuda {

/// CUresult; those that a replay tells apart.
enum class Status : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kJitCompilerNotFound = 221,
  kUnsupportedPtxVersion = 222,
  kJitCompilationDisabled = 223,
  kNotFound = 500,
  kNotReady = 600,
};
enum class Attribute : int { kMajor = 75, kMinor = 76 };  ///< CUdevice_attribute: the compute capability

using Device = int;
using Pointer = unsigned long long;  ///< in the device's memory
using Context = struct ContextHandle*;
using Module = struct ModuleHandle*;
using Kernel = struct KernelHandle*;
using Stream = struct StreamHandle*;
using Event = struct EventHandle*;

constexpr unsigned kStreamNonBlocking = 1;

/// Names with `_v2` are what cuda.h makes of the plain ones.
struct Driver {
  Symbol<"cuInit", Status(unsigned)> init;
  Symbol<"cuGetErrorString", Status(Status, const char**)> error_string;
  Symbol<"cuDeviceGetCount", Status(int*)> device_count;
  Symbol<"cuDeviceGet", Status(Device*, int)> device;
  Symbol<"cuDeviceGetName", Status(char*, int, Device)> device_name;
  Symbol<"cuDeviceGetPCIBusId", Status(char*, int, Device)> device_bus_id;
  Symbol<"cuDeviceGetAttribute", Status(int*, Attribute, Device)> device_attribute;
  Symbol<"cuDevicePrimaryCtxRetain", Status(Context*, Device)> retain_primary_context;
  Symbol<"cuCtxSetCurrent", Status(Context)> set_context;
  Symbol<"cuMemGetInfo_v2", Status(std::size_t*, std::size_t*)> memory;
  Symbol<"cuMemAlloc_v2", Status(Pointer*, std::size_t)> allocate;
  Symbol<"cuMemAllocHost_v2", Status(void**, std::size_t)> allocate_pinned;
  Symbol<"cuMemsetD8Async", Status(Pointer, unsigned char, std::size_t, Stream)> set_bytes;
  Symbol<"cuMemcpyHtoDAsync_v2", Status(Pointer, const void*, std::size_t, Stream)> copy_to_device;
  Symbol<"cuMemcpyDtoHAsync_v2", Status(void*, Pointer, std::size_t, Stream)> copy_to_host;
  Symbol<"cuStreamCreate", Status(Stream*, unsigned)> create_stream;
  Symbol<"cuEventCreate", Status(Event*, unsigned)> create_event;
  Symbol<"cuEventRecord", Status(Event, Stream)> record;
  Symbol<"cuEventQuery", Status(Event)> query;
  Symbol<"cuEventElapsedTime", Status(float*, Event, Event)> elapsed;
  Symbol<"cuModuleLoadData", Status(Module*, const void*)> load_module;
  Symbol<"cuModuleGetFunction", Status(Kernel*, Module, const char*)> find_kernel;
  Symbol<"cuLaunchKernel",
         Status(Kernel, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**, void**)>
      launch;

  /// `each` is called with every symbol.
  template <class Each>
  void ForEach(Each each) {
    const auto all = [&](auto&... symbols) {
      static_assert(sizeof...(symbols) * sizeof(void*) == sizeof(Driver));
      (each(symbols), ...);
    };
    all(init, error_string, device_count, device, device_name, device_bus_id, device_attribute, retain_primary_context,
        set_context, memory, allocate, allocate_pinned, set_bytes, copy_to_device, copy_to_host, create_stream,
        create_event, record, query, elapsed, load_module, find_kernel, launch);
  }
  /// `CUDA error 2 (out of memory)`.
  std::string Words(Status status) const;
};

/// Loaded and initialised. Fails where there is no driver, or no GPU.
Result<Driver> LoadDriver();

}  // namespace inquest::cuda
