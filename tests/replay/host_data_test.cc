// The data of a replay: what a correct library would hand out is accepted, one wrong byte is not, for every operation
// and datatype.
#include "replay/engines/host_data.h"

#include <cstring>

#include "replay/engines/check.h"
#include "replay/ops.h"
#include "tests/catch.h"

using namespace inquest;

namespace host_data_test {

using Bytes = std::vector<std::byte>;

Bytes InputOf(const DataShape& shape) {
  Bytes input(BytesIn(shape));
  FillInput(shape, 3, input);
  return input;
}

/// By the operation's definition, from all ranks' inputs; moved data only.
Bytes Moved(const DataShape& shape) {
  std::vector<Bytes> inputs;
  for (int rank = 0; rank < shape.nranks; ++rank) inputs.push_back(InputOf({shape.call, rank, shape.nranks}));
  const std::size_t size = BytesOf(shape.call.datatype), part = shape.call.count * size,
                    own = static_cast<std::size_t>(shape.rank) * part;
  const auto root = static_cast<std::size_t>(shape.call.root);
  Bytes output;
  const auto append = [&](const Bytes& from, std::size_t begin, std::size_t length) {
    output.insert(output.end(), from.begin() + static_cast<std::ptrdiff_t>(begin),
                  from.begin() + static_cast<std::ptrdiff_t>(begin + length));
  };
  switch (shape.call.operation) {
    case Operation::kAllGather:
    case Operation::kGather:
      for (const Bytes& input : inputs) append(input, 0, part);
      break;
    case Operation::kAllToAll:
      for (const Bytes& input : inputs) append(input, own, part);
      break;
    case Operation::kScatter:
      append(inputs[root], own, part);
      break;
    default:
      append(inputs[root], 0, part);
  }
  return output;
}

/// Sum by plain arithmetic on numbers.
Bytes Summed(const DataShape& shape) {
  const std::size_t size = BytesOf(shape.call.datatype);
  const std::uint64_t elements = BytesOut(shape) / size;
  const std::uint64_t before =
      shape.call.operation == Operation::kReduceScatter ? static_cast<std::uint64_t>(shape.rank) * shape.call.count : 0;
  Bytes output(BytesOut(shape));
  for (std::uint64_t i = 0; i < elements; ++i) {
    int sum = 0;
    for (int rank = 0; rank < shape.nranks; ++rank) sum += ReducedInput(RedOp::kSum, rank, shape.nranks, 3, before + i);
    const std::uint64_t bits = BitsOf(shape.call.datatype, sum);
    std::memcpy(&output[i * size], &bits, size);
  }
  return output;
}

TEST_CASE("replay data: the right result is accepted, one wrong byte is found", "[unit][replay]") {
  for (const ReplayOp& op : ReplayOps()) {
    for (const DatatypeRow& row : kDatatypes) {
      for (const std::uint64_t count : {1U, 5U, 16U}) {
        const DataShape shape{{.operation = op.operation, .count = count, .datatype = row.type, .root = 1, .peer = 2},
                              op.needs_peer ? 2 : 1,
                              3};
        CAPTURE(op.name, row.name, count);
        Bytes output = op.needs_redop || op.operation == Operation::kBarrier ? Summed(shape) : Moved(shape);
        REQUIRE(output.size() == BytesOut(shape));
        CHECK_FALSE(VerifyOutput(shape, 3, output));
        const std::size_t at = output.size() - 1;
        output[at] ^= std::byte{0x10};
        const auto wrong = VerifyOutput(shape, 3, output);
        REQUIRE(wrong);
        CHECK(wrong->elements == 1);
        CHECK(wrong->first == at / row.bytes);
        CHECK(wrong->wanted != wrong->got);
        SpoilOutput(output);
        CHECK(VerifyOutput(shape, 3, output)->elements >= output.size() / row.bytes / 2);
      }
    }
  }
}

TEST_CASE("replay data: floats of every width, there and back", "[unit][replay]") {
  for (const Datatype type : {Datatype::kFloat16, Datatype::kBfloat16, Datatype::kFloat32, Datatype::kFloat64,
                              Datatype::kFloat8E4M3, Datatype::kFloat8E5M2}) {
    for (int value = 0; value <= 7; ++value) {
      CAPTURE(Name(type), value);
      CHECK(FloatOf(type, BitsOf(type, value)) == value);
      CHECK(FloatBits(type, value) == BitsOf(type, value));
    }
  }
  CHECK(ElementText(Datatype::kInt8, reinterpret_cast<const std::byte*>("\xff")) == "-1");
  CHECK(FloatBits(Datatype::kBfloat16, 255.9) == FloatBits(Datatype::kBfloat16, 256));
}

TEST_CASE("replay data: an average is what adding in the type itself and dividing gives", "[unit][replay]") {
  const auto shape = [](Datatype type, int nranks) {
    return DataShape{
        {.operation = Operation::kAllReduce, .count = 10, .datatype = type, .redop = RedOp::kAvg}, 0, nranks};
  };
  for (const int nranks : {3, 25, 26, 40, 127}) {
    CAPTURE(nranks);
    Bytes output(10);
    for (std::size_t i = 0; i < output.size(); ++i) {
      std::int8_t sum = 0;
      for (int rank = 0; rank < nranks; ++rank)
        sum = static_cast<std::int8_t>(sum + ReducedInput(RedOp::kAvg, rank, nranks, 3, i));
      output[i] = static_cast<std::byte>(sum / nranks);
    }
    CHECK_FALSE(VerifyOutput(shape(Datatype::kInt8, nranks), 3, output));
    output[9] ^= std::byte{1};
    CHECK(VerifyOutput(shape(Datatype::kInt8, nranks), 3, output)->elements == 1);
  }
  // So many ranks leave little of a float of 8 bits: half of it passes, memory that nobody wrote does not.
  const DataShape small = shape(Datatype::kFloat8E4M3, 64);
  Bytes output(10);
  CHECK(VerifyOutput(small, 3, output)->elements == 10);
  for (std::size_t i = 0; i < output.size(); ++i)
    output[i] = static_cast<std::byte>(FloatBits(small.call.datatype, 0.5));
  CHECK_FALSE(VerifyOutput(small, 3, output));
}

}  // namespace host_data_test
