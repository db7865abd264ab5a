// Which instructions may be used: code that is written twice or thrice for speed says and tests which it is.
#pragma once

#include <algorithm>
#include <cstdint>

namespace inquest {

enum class Code : std::uint8_t {
  kPortable,
  kAvx2,
  kAvx512
};  ///< kAvx2: with BMI and POPCNT. kAvx512: F, BW and VL, with BMI2.

/// The most that this machine can run.
inline Code BestCode() {
#if defined(__x86_64__)
  static const Code best = [] {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("popcnt"))
      return Code::kPortable;
    const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2");
    return wide ? Code::kAvx512 : Code::kAvx2;
  }();
  return best;
#else
  return Code::kPortable;
#endif
}

/// What was asked for, where this machine can run it.
inline Code Runnable(Code wanted) { return std::min(wanted, BestCode()); }

}  // namespace inquest
