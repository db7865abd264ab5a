// One collective call: what each rank asks the library for, in NCCL's meaning of every field.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace inquest {

/// The values are NCCL's ncclDataType_t.
enum class Datatype : std::uint8_t {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64,
  kBfloat16,
  kFloat8E4M3,
  kFloat8E5M2
};
struct DatatypeRow {
  Datatype type;
  std::string_view name;        ///< ours: `float32`
  std::string_view nccl_tests;  ///< its `-d` value
  std::string_view torch;       ///< as a Flight Recorder dump prints it: `Float`
  std::size_t bytes;
};
/// In the order of the enumerators.
inline constexpr std::array kDatatypes = {
    DatatypeRow{Datatype::kInt8, "int8", "int8", "Char", 1},
    DatatypeRow{Datatype::kUint8, "uint8", "uint8", "Byte", 1},
    DatatypeRow{Datatype::kInt32, "int32", "int32", "Int", 4},
    DatatypeRow{Datatype::kUint32, "uint32", "uint32", "UInt32", 4},
    DatatypeRow{Datatype::kInt64, "int64", "int64", "Long", 8},
    DatatypeRow{Datatype::kUint64, "uint64", "uint64", "UInt64", 8},
    DatatypeRow{Datatype::kFloat16, "float16", "half", "Half", 2},
    DatatypeRow{Datatype::kFloat32, "float32", "float", "Float", 4},
    DatatypeRow{Datatype::kFloat64, "float64", "double", "Double", 8},
    DatatypeRow{Datatype::kBfloat16, "bfloat16", "bfloat16", "BFloat16", 2},
    DatatypeRow{Datatype::kFloat8E4M3, "float8e4m3", "f8e4m3", "Float8_e4m3fn", 1},
    DatatypeRow{Datatype::kFloat8E5M2, "float8e5m2", "f8e5m2", "Float8_e5m2", 1},
};
constexpr const DatatypeRow& RowOf(Datatype type) { return kDatatypes[static_cast<std::size_t>(type)]; }
constexpr std::string_view Name(Datatype type) { return RowOf(type).name; }
constexpr std::size_t BytesOf(Datatype type) { return RowOf(type).bytes; }

/// The values are NCCL's ncclRedOp_t.
enum class RedOp : std::uint8_t { kSum, kProd, kMax, kMin, kAvg };
inline constexpr std::array<std::string_view, 5> kRedOps = {"sum", "prod", "max", "min", "avg"};
constexpr std::string_view Name(RedOp op) { return kRedOps[static_cast<std::size_t>(op)]; }

enum class Operation : std::uint8_t {
  kBroadcast,
  kAllReduce,
  kReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kGather,
  kScatter,
  kSendRecv,
  kBarrier
};

/// Fields that an operation does not use stay at their defaults, so that calls compare with ==.
struct Call {
  Operation operation = Operation::kAllReduce;
  std::uint64_t count = 0;  ///< elements, as NCCL counts them for that operation; see ReplayOp
  Datatype datatype = Datatype::kFloat32;
  RedOp redop = RedOp::kSum;
  int root = 0;  ///< of send/recv: the rank that sends
  int peer = 0;  ///< of send/recv: the rank that receives
  std::vector<std::uint64_t> splits =
      {};  ///< all-to-all: elements to each rank, alike on all ranks; empty: `count` each
  bool in_place = false;
  bool operator==(const Call&) const = default;
};

/// `broadcast of 253440000 float32, root 0`.
std::string Describe(const Call& call);
/// What differs, named by field: `count 5 instead of 7`; empty: nothing.
std::string Difference(const Call& call, const Call& expected);

}  // namespace inquest
