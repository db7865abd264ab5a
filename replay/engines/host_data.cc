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

std::uint64_t BitsAt(const std::byte* element, std::size_t bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, element, bytes);
  return bits;
}

std::uint64_t PartBytes(const DataShape& shape) {
  const Call& call = shape.call;
  return (call.splits.empty() ? call.count : call.splits[static_cast<std::size_t>(shape.rank)]) *
         BytesOf(call.datatype);
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

std::optional<WrongData> VerifyMoved(const DataShape& shape, const ElementPattern& pattern,
                                     std::span<const std::byte> output) {
  const std::size_t size = BytesOf(shape.call.datatype);
  Faults faults(shape.call.datatype);
  for (std::uint64_t begin = 0; begin < output.size();) {
    // Within a part eight bytes are compared at once; what differs is looked at element by element.
    const std::uint64_t end = std::min<std::uint64_t>(
        output.size(), begin + (pattern.part == 0 ? kWord : pattern.part - begin % pattern.part));
    for (; begin < end; begin += std::min<std::uint64_t>(kWord, end - begin)) {
      const std::size_t length = std::min<std::uint64_t>(kWord, end - begin);
      const Provenance from = MovedFrom(pattern.operation, pattern.root, pattern.part, pattern.own, begin);
      const std::uint64_t right = MovedBytes(from.rank, pattern.iteration, from.byte);
      if (std::memcmp(&right, &output[begin], length) == 0) continue;
      for (std::size_t i = 0; i < length; i += size) {
        const std::uint64_t element = right >> (i * 8);
        if (std::memcmp(&element, &output[begin + i], size) != 0)
          faults.Add((begin + i) / size, &output[begin + i], element);
      }
    }
  }
  return faults.Take();
}

std::optional<WrongData> VerifyReduced(const DataShape& shape, const ElementPattern& pattern,
                                       std::span<const std::byte> output) {
  const std::size_t size = BytesOf(shape.call.datatype);
  Faults faults(shape.call.datatype);
  for (std::uint64_t i = 0; i < output.size() / size; ++i) {
    if (!IsRight(pattern, i, BitsAt(&output[i * size], size)))
      faults.Add(i, &output[i * size], OutputElement(pattern, i));
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

ElementPattern PatternOf(const DataShape& shape, int iteration) {
  const Call& call = shape.call;
  ElementPattern pattern{.operation = call.operation,
                         .type = call.datatype,
                         .redop = call.redop,
                         .bytes = static_cast<int>(BytesOf(call.datatype)),
                         .rank = shape.rank,
                         .nranks = shape.nranks,
                         .root = call.root,
                         .iteration = iteration,
                         .reduced = IsReduced(call),
                         .part = PartBytes(shape),
                         .own = BytesBefore(shape)};
  const FloatFormat format = FormatOf(call.datatype);
  if (pattern.reduced && call.redop == RedOp::kAvg && format.bits > 0)
    pattern.tolerance = std::ldexp(shape.nranks, -format.fraction_bits);
  return pattern;
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
    const std::uint64_t bits =
        BitsOf(shape.call.datatype, ReducedInput(shape.call.redop, shape.rank, shape.nranks, iteration, i));
    std::memcpy(&input[i * size], &bits, size);
  }
}

void SpoilOutput(std::span<std::byte> output) { std::memset(output.data(), 0xA5, output.size()); }

std::optional<WrongData> VerifyOutput(const DataShape& shape, int iteration, std::span<const std::byte> output) {
  const ElementPattern pattern = PatternOf(shape, iteration);
  return pattern.reduced ? VerifyReduced(shape, pattern, output) : VerifyMoved(shape, pattern, output);
}

double FloatOf(Datatype type, std::uint64_t bits) { return FloatOf(FormatOf(type), bits); }

std::uint64_t FloatBits(Datatype type, double value) {
  const FloatFormat format = FormatOf(type);
  if (value == 0) return 0;
  int exponent = std::ilogb(std::abs(value));
  auto fraction = static_cast<std::uint64_t>(
      std::nearbyint(std::ldexp(std::ldexp(std::abs(value), -exponent) - 1, format.fraction_bits)));
  if (fraction >> format.fraction_bits != 0) {  // rounded up to the next power of two
    fraction = 0;
    ++exponent;
  }
  const std::uint64_t sign = value < 0 ? 1ULL << (format.bits - 1) : 0;
  return sign | (static_cast<std::uint64_t>(exponent + format.bias) << format.fraction_bits) | fraction;
}

std::string ElementText(Datatype type, const std::byte* element) {
  const std::uint64_t bits = BitsAt(element, BytesOf(type));
  switch (type) {
    case Datatype::kInt8:
      return fmt::format("{}", static_cast<int>(static_cast<std::int8_t>(bits)));
    case Datatype::kInt32:
      return fmt::format("{}", static_cast<std::int32_t>(bits));
    case Datatype::kInt64:
      return fmt::format("{}", static_cast<std::int64_t>(bits));
    case Datatype::kUint8:
    case Datatype::kUint32:
    case Datatype::kUint64:
      return fmt::format("{}", bits);
    default:
      return fmt::format("{:g} (0x{:0{}x})", FloatOf(type, bits), bits, BytesOf(type) * 2);
  }
}

}  // namespace inquest
