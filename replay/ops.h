// The operations that can be replayed: one table of names, sizes, arguments and bandwidth.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "replay/call.h"

namespace inquest {

/// All that the program knows of an operation.
struct ReplayOp {
  Operation operation;
  std::string_view name;        ///< ours: `all-reduce`
  std::string_view nccl_tests;  ///< the binary that runs it; empty: none
  std::span<const std::string_view>
      printed;  ///< other spellings as FindOp compares them: NCCL's COLL lines, PyTorch's OpType and profiling names
  bool needs_root = false, needs_redop = false, needs_peer = false;
  /// Elements that rank `rank` of `nranks` hands in and gets; 0: it takes no part on that side.
  std::uint64_t (*elements_in)(const Call&, int rank, int nranks);
  std::uint64_t (*elements_out)(const Call&, int rank, int nranks);
  /// As nccl-tests defines them: algorithm bandwidth is `bandwidth_elements` * size / time, bus bandwidth that times
  /// `bus_factor`.
  std::uint64_t (*bandwidth_elements)(const Call&, int nranks);
  double (*bus_factor)(int nranks);
};

std::span<const ReplayOp> ReplayOps();
const ReplayOp& RowOf(Operation operation);
std::string_view Name(Operation operation);
/// By our name or any printed one: `AllReduce`, `_ALLGATHER_BASE`, `nccl:all_reduce`, `nccl:send 0->1`. Case, `_`, `-`
/// and a `nccl:` or `gloo:` in front do not count. nullptr: none of ours.
const ReplayOp* FindOp(std::string_view printed);
/// `float32`, `Float`, `float`, `torch.float32`; nullopt: none of ours.
std::optional<Datatype> FindDatatype(std::string_view printed);
std::optional<RedOp> FindRedOp(std::string_view printed);

/// Why the call is none: a root out of range, no elements. Empty: it is one.
std::string WhyInvalid(const Call& call, int nranks);

}  // namespace inquest
