// The data of a replay: what each rank hands in and what must come out. Plain arithmetic on indices, so that a GPU
// kernel computes the same: nccl_kernels.cu is compiled of it, without any library's mathematics.
#pragma once

#include <cstdint>

#include "replay/call.h"

#ifdef __CUDA__
#define INQUEST_ON_DEVICE __attribute__((host)) __attribute__((device))
#else
#define INQUEST_ON_DEVICE
#endif

namespace inquest {

/// What is moved and not computed: any bits will do. Word `word` (8 bytes) of the buffer that rank `rank` hands in at
/// iteration `iteration`; a buffer's last bytes are the head of its last word. Little-endian.
INQUEST_ON_DEVICE constexpr std::uint64_t MovedWord(int rank, int iteration, std::uint64_t word) {
  std::uint64_t x = word * 0x9E3779B97F4A7C15ULL + (static_cast<std::uint64_t>(rank) << 32U) +
                    static_cast<std::uint64_t>(iteration) + 1;
  x ^= x >> 32U;
  x *= 0xD6E8FEB86659FD93ULL;
  x ^= x >> 29U;
  return x;
}

/// What is reduced: small whole numbers that every datatype holds exactly, as does their result over any number of
/// ranks. At each index one rank (its turn) hands in `Weight`, all others the neutral element, so that no rank can be
/// left out unseen; of an average all ranks hand in `Weight`. The result is `Weight` for every operation, but for
/// averages: that of floats may be off by rounding, since 1/nranks is, and that of integers is AveragedInteger.
INQUEST_ON_DEVICE constexpr int Weight(int iteration, std::uint64_t index) {
  return 1 + static_cast<int>((index * 7 + static_cast<std::uint64_t>(iteration)) % 5);
}
INQUEST_ON_DEVICE constexpr bool IsTurn(int rank, int nranks, std::uint64_t index) {
  return index % static_cast<std::uint64_t>(nranks) == static_cast<std::uint64_t>(rank);
}
INQUEST_ON_DEVICE constexpr int Neutral(RedOp op) {
  return op == RedOp::kProd ? 1 : op == RedOp::kMin ? 7 : 0;  // of max: 0, of min: more than any weight
}
/// `index` in the whole buffer: of a reduce-scatter, that of all ranks' parts together.
INQUEST_ON_DEVICE constexpr int ReducedInput(RedOp op, int rank, int nranks, int iteration, std::uint64_t index) {
  return op == RedOp::kAvg || IsTurn(rank, nranks, index) ? Weight(iteration, index) : Neutral(op);
}
/// A small whole number as the bits of a datatype, in its low bytes. `value` in [0, 7].
INQUEST_ON_DEVICE constexpr std::uint64_t BitsOf(Datatype type, int value) {
  // Every float here is normal: exponent of the leading bit, then the bits below it.
  int exponent = 0;
  for (int rest = value; rest > 1; rest /= 2) ++exponent;
  const auto fraction = static_cast<std::uint64_t>(value) - (1ULL << exponent);
  const auto normal = [&](int bias, int fraction_bits) -> std::uint64_t {
    return value == 0 ? 0
                      : (static_cast<std::uint64_t>(exponent + bias) << fraction_bits) |
                            (fraction << (fraction_bits - exponent));
  };
  switch (type) {
    case Datatype::kFloat16:
      return normal(15, 10);
    case Datatype::kBfloat16:
      return normal(127, 7);
    case Datatype::kFloat32:
      return normal(127, 23);
    case Datatype::kFloat64:
      return normal(1023, 52);
    case Datatype::kFloat8E4M3:
      return normal(7, 3);
    case Datatype::kFloat8E5M2:
      return normal(15, 2);
    default:
      return static_cast<std::uint64_t>(value);
  }
}

/// Where byte `byte` of rank `rank`'s output comes from, for operations that only move data: the rank that handed it
/// in, and the byte of its input. `part`: bytes that each pair of ranks exchanges; `own`: bytes before the part of this
/// rank.
struct Provenance {
  int rank = 0;
  std::uint64_t byte = 0;
};
INQUEST_ON_DEVICE constexpr Provenance MovedFrom(Operation operation, int root, std::uint64_t part, std::uint64_t own,
                                                 std::uint64_t byte) {
  switch (operation) {
    case Operation::kAllGather:
    case Operation::kGather:
      return {static_cast<int>(byte / part), byte % part};
    case Operation::kAllToAll:
      return {static_cast<int>(byte / part), own + byte % part};
    case Operation::kScatter:
      return {root, own + byte};
    default:
      return {root, byte};
  }
}

/// Eight bytes of a rank's moved pattern, from any byte on.
INQUEST_ON_DEVICE constexpr std::uint64_t MovedBytes(int rank, int iteration, std::uint64_t byte) {
  const std::uint64_t word = byte / 8, shift = byte % 8 * 8;
  const std::uint64_t low = MovedWord(rank, iteration, word);
  return shift == 0 ? low : (low >> shift) | (MovedWord(rank, iteration, word + 1) << (64 - shift));
}

/// Bits of a floating-point datatype.
struct FloatFormat {
  int bias = 0, fraction_bits = 0, bits = 0;  ///< bits == 0: no floating-point type
};
INQUEST_ON_DEVICE constexpr FloatFormat FormatOf(Datatype type) {
  switch (type) {
    case Datatype::kFloat16:
      return {15, 10, 16};
    case Datatype::kBfloat16:
      return {127, 7, 16};
    case Datatype::kFloat32:
      return {127, 23, 32};
    case Datatype::kFloat64:
      return {1023, 52, 64};
    case Datatype::kFloat8E4M3:
      return {7, 3, 8};
    case Datatype::kFloat8E5M2:
      return {15, 2, 8};
    default:
      return {};
  }
}
/// `exponent` in [-1022, 1023].
INQUEST_ON_DEVICE constexpr double PowerOfTwo(int exponent) {
  return __builtin_bit_cast(double, static_cast<std::uint64_t>(exponent + 1023) << 52U);
}
/// The number that the bits are; infinities and the like of less than 64 bits come out as large numbers.
INQUEST_ON_DEVICE constexpr double FloatOf(FloatFormat format, std::uint64_t bits) {
  if (format.bits == 64) return __builtin_bit_cast(double, bits);
  const auto fraction = static_cast<double>(bits & ((1ULL << format.fraction_bits) - 1));
  const int exponent =
      static_cast<int>((bits >> format.fraction_bits) & ((1ULL << (format.bits - 1 - format.fraction_bits)) - 1));
  const double value = exponent == 0
                           ? fraction * PowerOfTwo(1 - format.bias - format.fraction_bits)
                           : (1 + fraction * PowerOfTwo(-format.fraction_bits)) * PowerOfTwo(exponent - format.bias);
  return (bits >> (format.bits - 1)) != 0 ? -value : value;
}

/// What the sum of `nranks` times `value` is, divided: NCCL (FuncSumPostDiv) and PyTorch add in the type itself, which
/// one of 8 bits overflows with 26 ranks.
INQUEST_ON_DEVICE constexpr std::uint64_t AveragedInteger(Datatype type, int value, int nranks) {
  const std::int64_t sum = static_cast<std::int64_t>(value) * nranks;
  switch (type) {
    case Datatype::kInt8:
      return static_cast<std::uint8_t>(static_cast<std::int8_t>(static_cast<std::uint8_t>(sum)) / nranks);
    case Datatype::kUint8:
      return static_cast<std::uint64_t>(static_cast<std::uint8_t>(sum) / nranks);
    default:
      return static_cast<std::uint64_t>(value);
  }
}

/// All that one element's bits depend on; see PatternOf.
struct ElementPattern {
  Operation operation = Operation::kAllReduce;
  Datatype type = Datatype::kFloat32;
  RedOp redop = RedOp::kSum;
  int bytes = 4, rank = 0, nranks = 1, root = 0, iteration = 1;
  bool reduced = false;
  std::uint64_t part = 0, own = 0;  ///< bytes, as in MovedFrom
  double tolerance = 0;             ///< relative
};
INQUEST_ON_DEVICE constexpr std::uint64_t LowBytes(std::uint64_t bits, int bytes) {
  return bytes == 8 ? bits : bits & ((1ULL << (bytes * 8)) - 1);
}
/// Element `index` of what the rank hands in.
INQUEST_ON_DEVICE constexpr std::uint64_t InputElement(const ElementPattern& of, std::uint64_t index) {
  if (of.reduced) return BitsOf(of.type, ReducedInput(of.redop, of.rank, of.nranks, of.iteration, index));
  return LowBytes(MovedBytes(of.rank, of.iteration, index * static_cast<std::uint64_t>(of.bytes)), of.bytes);
}
/// Element `index` of what must come out on the rank.
INQUEST_ON_DEVICE constexpr std::uint64_t OutputElement(const ElementPattern& of, std::uint64_t index) {
  const auto bytes = static_cast<std::uint64_t>(of.bytes);
  if (of.reduced) {
    const int weight = Weight(of.iteration, (of.operation == Operation::kReduceScatter ? of.own / bytes : 0) + index);
    const bool averaged = of.redop == RedOp::kAvg && FormatOf(of.type).bits == 0;
    return averaged ? AveragedInteger(of.type, weight, of.nranks) : BitsOf(of.type, weight);
  }
  const Provenance from = MovedFrom(of.operation, of.root, of.part, of.own, index * bytes);
  return LowBytes(MovedBytes(from.rank, of.iteration, from.byte), of.bytes);
}
INQUEST_ON_DEVICE constexpr bool IsRight(const ElementPattern& of, std::uint64_t index, std::uint64_t got) {
  const std::uint64_t wanted = OutputElement(of, index);
  if (got == wanted) return true;
  if (of.tolerance == 0) return false;
  // However much an average of 8-bit floats loses to rounding, it is not zero, as is memory that nobody wrote.
  const double value = FloatOf(FormatOf(of.type), wanted), number = FloatOf(FormatOf(of.type), got);
  return number > 0 && __builtin_fabs(number - value) <= value * of.tolerance;
}

/// Which elements one thread goes over.
struct Stride {
  std::uint64_t first = 0, end = 0, step = 1;
};
/// What one thread found, or all.
struct DataFaults {
  unsigned long long elements = 0;   ///< wrong ones
  unsigned long long first = ~0ULL;  ///< index of the first
};

/// An element of 1, 2, 4 or 8 bytes.
INQUEST_ON_DEVICE inline void StoreElement(void* at, int bytes, std::uint64_t bits) {
  if (bytes == 1)
    *static_cast<std::uint8_t*>(at) = static_cast<std::uint8_t>(bits);
  else if (bytes == 2)
    *static_cast<std::uint16_t*>(at) = static_cast<std::uint16_t>(bits);
  else if (bytes == 4)
    *static_cast<std::uint32_t*>(at) = static_cast<std::uint32_t>(bits);
  else
    *static_cast<std::uint64_t*>(at) = bits;
}
INQUEST_ON_DEVICE inline std::uint64_t LoadElement(const void* at, int bytes) {
  if (bytes == 1) return *static_cast<const std::uint8_t*>(at);
  if (bytes == 2) return *static_cast<const std::uint16_t*>(at);
  if (bytes == 4) return *static_cast<const std::uint32_t*>(at);
  return *static_cast<const std::uint64_t*>(at);
}

/// `buffer` begins with element `origin` of what the rank hands in.
INQUEST_ON_DEVICE inline void FillElements(const ElementPattern& of, const Stride& stride, std::uint64_t origin,
                                           void* buffer) {
  const auto bytes = static_cast<std::uint64_t>(of.bytes);
  for (std::uint64_t i = stride.first; i < stride.end; i += stride.step)
    StoreElement(static_cast<char*>(buffer) + (i - origin) * bytes, of.bytes, InputElement(of, i));
}
/// `buffer` begins with element `origin` of what came out on the rank.
INQUEST_ON_DEVICE inline DataFaults VerifyElements(const ElementPattern& of, const Stride& stride, std::uint64_t origin,
                                                   const void* buffer) {
  const auto bytes = static_cast<std::uint64_t>(of.bytes);
  DataFaults faults;
  for (std::uint64_t i = stride.first; i < stride.end; i += stride.step) {
    if (IsRight(of, i, LoadElement(static_cast<const char*>(buffer) + (i - origin) * bytes, of.bytes))) continue;
    if (faults.elements++ == 0) faults.first = i;
  }
  return faults;
}

}  // namespace inquest
