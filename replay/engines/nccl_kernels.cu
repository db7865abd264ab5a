// The patterns of check.h as kernels: one thread an element, striding over the buffer. Compiled by Clang alone, without
// any of CUDA's headers; scripts/ptx writes nccl_kernels.ptx of it, which every build embeds.
#include "replay/engines/check.h"

#define INQUEST_KERNEL extern "C" __attribute__((global)) void

namespace {

__attribute__((device)) inquest::Stride OwnStride(std::uint64_t elements) {
  const auto block = static_cast<std::uint64_t>(__nvvm_read_ptx_sreg_ntid_x());
  return {.first = __nvvm_read_ptx_sreg_ctaid_x() * block + __nvvm_read_ptx_sreg_tid_x(),
          .end = elements,
          .step = __nvvm_read_ptx_sreg_nctaid_x() * block};
}

}  // namespace

INQUEST_KERNEL inquest_fill(inquest::ElementPattern pattern, std::uint64_t elements, void* input) {
  inquest::FillElements(pattern, OwnStride(elements), 0, input);
}

/// `faults` is in the device's memory: a thread adds what it found once.
INQUEST_KERNEL inquest_verify(inquest::ElementPattern pattern, std::uint64_t elements, const void* output,
                              inquest::DataFaults* faults) {
  const inquest::DataFaults found = inquest::VerifyElements(pattern, OwnStride(elements), 0, output);
  if (found.elements == 0) return;
  __nvvm_atom_add_gen_ll(reinterpret_cast<long long*>(&faults->elements), static_cast<long long>(found.elements));
  __nvvm_atom_min_gen_ull(&faults->first, found.first);
}
