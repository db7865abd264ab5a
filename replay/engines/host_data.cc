// Moved data is compared bit by bit, reduced data element by element.
#include "replay/engines/host_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "replay/engines/check.h"
#include "replay/ops.h"

namespace inquest {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
static_assert(std::endian::native == std::endian::little);

bool IsReduced(const Call& call) { return RowOf(call.operation).needs_redop || call.operation == Operation::kBarrier; }

struct FloatFormat {
  int bias, fraction_bits, bits;
};
std::optional<FloatFormat> FormatOf(Datatype type) {
  switch (type) {
    case Datatype::kFloat16: return FloatFormat{15, 10, 16};
    case Datatype::kBfloat16: return FloatFormat{127, 7, 16};
    case Datatype::kFloat32: return FloatFormat{127, 23, 32};
    case Datatype::kFloat64: return FloatFormat{1023, 52, 64};
    case Datatype::kFloat8E4M3: return FloatFormat{7, 3, 8};
    case Datatype::kFloat8E5M2: return FloatFormat{15, 2, 8};
    default: return std::nullopt;
  }
}

/// Eight bytes of a rank's pattern, from any byte on.
std::uint64_t MovedBytes(int rank, int iteration, std::uint64_t byte) {
  const std::uint64_t word = byte / kWord, shift = byte % kWord * 8;
  const std::uint64_t low = MovedWord(rank, iteration, word);
  return shift == 0 ? low : (low >> shift) | (MovedWord(rank, iteration, word + 1) << (64 - shift));
}

std::uint64_t BitsAt(const std::byte* element, std::size_t bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, element, bytes);
  return bits;
}

std::uint64_t PartBytes(const DataShape& shape) {
  const Call& call = shape.call;
  return (call.splits.empty() ? call.count : call.splits[static_cast<std::size_t>(shape.rank)]) * BytesOf(call.datatype);
}

/// Bytes that stand before this rank's part in what others hand in.
std::uint64_t BytesBefore(const DataShape& shape) {
  std::uint64_t elements = 0;
  for (int rank = 0; rank < shape.rank; ++rank)
    elements += shape.call.splits.empty() ? shape.call.count : shape.call.splits[static_cast<std::size_t>(rank)];
  return elements * BytesOf(shape.call.datatype);
}

/// Collects what is wrong; the first keeps its place.
class Faults {
 public:
  explicit Faults(Datatype type) : type_(type) {}
  void Add(std::uint64_t index, const std::byte* got, std::uint64_t wanted) {
    if (data_.elements++ > 0) return;
    std::byte bytes[kWord];
    std::memcpy(bytes, &wanted, kWord);
    data_.first = index;
    data_.wanted = ElementText(type_, bytes);
    data_.got = ElementText(type_, got);
  }
  std::optional<WrongData> Take() const { return data_.elements > 0 ? std::optional(data_) : std::nullopt; }

 private:
  Datatype type_;
  WrongData data_;
};

std::optional<WrongData> VerifyMoved(const DataShape& shape, int iteration, std::span<const std::byte> output) {
  const std::size_t size = BytesOf(shape.call.datatype);
  const std::uint64_t part = PartBytes(shape), own = BytesBefore(shape);
  Faults faults(shape.call.datatype);
  const auto wanted = [&](std::uint64_t byte) {
    const Provenance from = MovedFrom(shape.call.operation, shape.call.root, part, own, byte);
    return MovedBytes(from.rank, iteration, from.byte);
  };
  for (std::uint64_t begin = 0; begin < output.size();) {
    // Within a part eight bytes are compared at once; what differs is looked at element by element.
    const std::uint64_t end = std::min<std::uint64_t>(output.size(), begin + (part == 0 ? kWord : part - begin % part));
    for (; begin < end; begin += std::min<std::uint64_t>(kWord, end - begin)) {
      const std::size_t length = std::min<std::uint64_t>(kWord, end - begin);
      const std::uint64_t right = wanted(begin);
      if (std::memcmp(&right, &output[begin], length) == 0) continue;
      for (std::size_t i = 0; i < length; i += size) {
        const std::uint64_t element = right >> (i * 8);
        if (std::memcmp(&element, &output[begin + i], size) != 0) faults.Add((begin + i) / size, &output[begin + i], element);
      }
    }
  }
  return faults.Take();
}

std::optional<WrongData> VerifyReduced(const DataShape& shape, int iteration, std::span<const std::byte> output) {
  const Datatype type = shape.call.datatype;
  const std::size_t size = BytesOf(type);
  const std::uint64_t before = shape.call.operation == Operation::kReduceScatter ? BytesBefore(shape) / size : 0;
  const auto format = FormatOf(type);
  const bool rounds = shape.call.redop == RedOp::kAvg && format;
  const double tolerance = rounds ? std::ldexp(shape.nranks, -format->fraction_bits) : 0;
  Faults faults(type);
  for (std::uint64_t i = 0; i < output.size() / size; ++i) {
    const int value = Weight(iteration, before + i);
    const std::uint64_t wanted = BitsOf(type, value), got = BitsAt(&output[i * size], size);
    if (got == wanted || (rounds && std::abs(FloatOf(type, got) - value) <= value * tolerance)) continue;
    faults.Add(i, &output[i * size], wanted);
  }
  return faults.Take();
}

}  // namespace

std::uint64_t BytesIn(const DataShape& shape) {
  return RowOf(shape.call.operation).elements_in(shape.call, shape.rank, shape.nranks) * BytesOf(shape.call.datatype);
}
std::uint64_t BytesOut(const DataShape& shape) {
  return RowOf(shape.call.operation).elements_out(shape.call, shape.rank, shape.nranks) * BytesOf(shape.call.datatype);
}

void FillInput(const DataShape& shape, int iteration, std::span<std::byte> input) {
  if (!IsReduced(shape.call)) {
    for (std::size_t byte = 0; byte < input.size(); byte += kWord) {
      const std::uint64_t word = MovedWord(shape.rank, iteration, byte / kWord);
      std::memcpy(&input[byte], &word, std::min(kWord, input.size() - byte));
    }
    return;
  }
  const std::size_t size = BytesOf(shape.call.datatype);
  for (std::uint64_t i = 0; i < input.size() / size; ++i) {
    const std::uint64_t bits = BitsOf(shape.call.datatype, ReducedInput(shape.call.redop, shape.rank, shape.nranks, iteration, i));
    std::memcpy(&input[i * size], &bits, size);
  }
}

void SpoilOutput(std::span<std::byte> output) { std::memset(output.data(), 0xA5, output.size()); }

std::optional<WrongData> VerifyOutput(const DataShape& shape, int iteration, std::span<const std::byte> output) {
  return IsReduced(shape.call) ? VerifyReduced(shape, iteration, output) : VerifyMoved(shape, iteration, output);
}

double FloatOf(Datatype type, std::uint64_t bits) {
  const auto format = FormatOf(type);
  const std::uint64_t fraction = bits & ((1ULL << format->fraction_bits) - 1);
  const int exponent = static_cast<int>((bits >> format->fraction_bits) & ((1ULL << (format->bits - 1 - format->fraction_bits)) - 1));
  const double value = exponent == 0 ? std::ldexp(static_cast<double>(fraction), 1 - format->bias - format->fraction_bits)
                                     : std::ldexp(1 + std::ldexp(static_cast<double>(fraction), -format->fraction_bits), exponent - format->bias);
  return (bits >> (format->bits - 1)) != 0 ? -value : value;
}

std::uint64_t FloatBits(Datatype type, double value) {
  const auto format = FormatOf(type);
  if (value == 0) return 0;
  int exponent = std::ilogb(std::abs(value));
  auto fraction = static_cast<std::uint64_t>(std::nearbyint(std::ldexp(std::ldexp(std::abs(value), -exponent) - 1, format->fraction_bits)));
  if (fraction >> format->fraction_bits != 0) {  // rounded up to the next power of two
    fraction = 0;
    ++exponent;
  }
  const std::uint64_t sign = value < 0 ? 1ULL << (format->bits - 1) : 0;
  return sign | (static_cast<std::uint64_t>(exponent + format->bias) << format->fraction_bits) | fraction;
}

std::string ElementText(Datatype type, const std::byte* element) {
  const std::uint64_t bits = BitsAt(element, BytesOf(type));
  switch (type) {
    case Datatype::kInt8: return fmt::format("{}", static_cast<int>(static_cast<std::int8_t>(bits)));
    case Datatype::kInt32: return fmt::format("{}", static_cast<std::int32_t>(bits));
    case Datatype::kInt64: return fmt::format("{}", static_cast<std::int64_t>(bits));
    case Datatype::kUint8:
    case Datatype::kUint32:
    case Datatype::kUint64: return fmt::format("{}", bits);
    default: return fmt::format("{:g} (0x{:0{}x})", FloatOf(type, bits), bits, BytesOf(type) * 2);
  }
}

}  // namespace inquest
