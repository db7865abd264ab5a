// The table of operations, and the names by which others know them.
#include "replay/ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <string>

#include "replay/phase.h"

namespace inquest {
namespace {

using Count = std::uint64_t;
using std::string_view;

Count Ranks(int nranks) { return static_cast<Count>(nranks); }
Count One(const Call& call, int, int) { return call.count; }
Count All(const Call& call, int, int nranks) { return call.count * Ranks(nranks); }
Count OneAtRoot(const Call& call, int rank, int) { return rank == call.root ? call.count : 0; }
Count AllAtRoot(const Call& call, int rank, int nranks) { return rank == call.root ? call.count * Ranks(nranks) : 0; }
Count OneAtPeer(const Call& call, int rank, int) { return rank == call.peer ? call.count : 0; }
Count Single(const Call&, int, int) { return 1; }
Count SplitsOut(const Call& call, int, int nranks) {
  return call.splits.empty() ? call.count * Ranks(nranks)
                             : std::accumulate(call.splits.begin(), call.splits.end(), Count{0});
}
Count SplitsIn(const Call& call, int rank, int nranks) {
  return Ranks(nranks) * (call.splits.empty() ? call.count : call.splits[static_cast<std::size_t>(rank)]);
}

Count OneRanks(const Call& call, int) { return call.count; }
Count AllRanks(const Call& call, int nranks) { return call.count * Ranks(nranks); }
Count SplitRanks(const Call& call, int nranks) { return SplitsOut(call, 0, nranks); }
Count SingleElement(const Call&, int) { return 1; }

double Whole(int) { return 1; }
double AllButOwn(int nranks) { return static_cast<double>(nranks - 1) / nranks; }
double Twice(int nranks) { return 2.0 * (nranks - 1) / nranks; }

constexpr string_view kBroadcast[] = {"broadcast", "broadcastoop", "bcast"};
constexpr string_view kAllReduce[] = {"allreduce", "allreducecoalesced"};
constexpr string_view kReduce[] = {"reduce", "reduceoop"};
constexpr string_view kAllGather[] = {"allgather", "allgatherbase", "allgathercoalesced", "allgatherintotensor",
                                      "allgatherintotensorcoalesced"};
constexpr string_view kReduceScatter[] = {"reducescatter", "reducescatterbase", "reducescattertensor",
                                          "reducescattertensorcoalesced"};
constexpr string_view kAllToAll[] = {"alltoall", "alltoallbase", "alltoallv"};
constexpr string_view kGather[] = {"gather"};
constexpr string_view kScatter[] = {"scatter"};
constexpr string_view kSendRecv[] = {"send", "recv", "sendrecv"};
constexpr string_view kBarrier[] = {"barrier", "allreducebarrier"};

constexpr std::array kOps = {
    ReplayOp{.operation = Operation::kBroadcast,
             .name = "broadcast",
             .nccl_tests = "broadcast_perf",
             .printed = kBroadcast,
             .needs_root = true,
             .elements_in = OneAtRoot,
             .elements_out = One,
             .bandwidth_elements = OneRanks,
             .bus_factor = Whole},
    ReplayOp{.operation = Operation::kAllReduce,
             .name = "all-reduce",
             .nccl_tests = "all_reduce_perf",
             .printed = kAllReduce,
             .needs_redop = true,
             .elements_in = One,
             .elements_out = One,
             .bandwidth_elements = OneRanks,
             .bus_factor = Twice},
    ReplayOp{.operation = Operation::kReduce,
             .name = "reduce",
             .nccl_tests = "reduce_perf",
             .printed = kReduce,
             .needs_root = true,
             .needs_redop = true,
             .elements_in = One,
             .elements_out = OneAtRoot,
             .bandwidth_elements = OneRanks,
             .bus_factor = Whole},
    ReplayOp{.operation = Operation::kAllGather,
             .name = "all-gather",
             .nccl_tests = "all_gather_perf",
             .printed = kAllGather,
             .elements_in = One,
             .elements_out = All,
             .bandwidth_elements = AllRanks,
             .bus_factor = AllButOwn},
    ReplayOp{.operation = Operation::kReduceScatter,
             .name = "reduce-scatter",
             .nccl_tests = "reduce_scatter_perf",
             .printed = kReduceScatter,
             .needs_redop = true,
             .elements_in = All,
             .elements_out = One,
             .bandwidth_elements = AllRanks,
             .bus_factor = AllButOwn},
    ReplayOp{.operation = Operation::kAllToAll,
             .name = "all-to-all",
             .nccl_tests = "alltoall_perf",
             .printed = kAllToAll,
             .elements_in = SplitsOut,
             .elements_out = SplitsIn,
             .bandwidth_elements = SplitRanks,
             .bus_factor = AllButOwn},
    ReplayOp{.operation = Operation::kGather,
             .name = "gather",
             .nccl_tests = "gather_perf",
             .printed = kGather,
             .needs_root = true,
             .elements_in = One,
             .elements_out = AllAtRoot,
             .bandwidth_elements = AllRanks,
             .bus_factor = AllButOwn},
    ReplayOp{.operation = Operation::kScatter,
             .name = "scatter",
             .nccl_tests = "scatter_perf",
             .printed = kScatter,
             .needs_root = true,
             .elements_in = AllAtRoot,
             .elements_out = One,
             .bandwidth_elements = AllRanks,
             .bus_factor = AllButOwn},
    ReplayOp{.operation = Operation::kSendRecv,
             .name = "send-recv",
             .nccl_tests = "sendrecv_perf",
             .printed = kSendRecv,
             .needs_root = true,
             .needs_peer = true,
             .elements_in = OneAtRoot,
             .elements_out = OneAtPeer,
             .bandwidth_elements = OneRanks,
             .bus_factor = Whole},
    ReplayOp{.operation = Operation::kBarrier,
             .name = "barrier",
             .nccl_tests = "",
             .printed = kBarrier,
             .elements_in = Single,
             .elements_out = Single,
             .bandwidth_elements = SingleElement,
             .bus_factor = Twice},
};

/// Lower case, without what joins words, without the backend in front and the ranks of `send 0->1` behind.
std::string Key(string_view printed) {
  for (const string_view backend : {"nccl:", "gloo:", "c10d::", "torch."}) {
    if (printed.starts_with(backend)) printed.remove_prefix(backend.size());
  }
  printed = printed.substr(0, printed.find(' '));
  std::string key;
  for (const char c : printed) {
    const auto byte = static_cast<unsigned char>(c);
    if (c != '_' && c != '-' && c != '.') key.push_back(static_cast<char>(std::tolower(byte)));
  }
  return key;
}

}  // namespace

std::span<const ReplayOp> ReplayOps() { return kOps; }
const ReplayOp& RowOf(Operation operation) { return kOps[static_cast<std::size_t>(operation)]; }
string_view Name(Operation operation) { return RowOf(operation).name; }

const ReplayOp* FindOp(string_view printed) {
  const std::string key = Key(printed);
  for (const ReplayOp& op : kOps) {
    if (std::ranges::find(op.printed, key) != op.printed.end()) return &op;
  }
  return nullptr;
}

std::optional<Datatype> FindDatatype(string_view printed) {
  const std::string key = Key(printed);
  for (const DatatypeRow& row : kDatatypes) {
    if (key == Key(row.name) || key == Key(row.torch) || key == Key(row.nccl_tests)) return row.type;
  }
  return std::nullopt;
}

std::optional<RedOp> FindRedOp(string_view printed) {
  const std::string key = Key(printed);
  for (std::size_t i = 0; i < kRedOps.size(); ++i) {
    if (key == kRedOps[i]) return static_cast<RedOp>(i);
  }
  return std::nullopt;
}

std::string WhyInvalid(const Call& call, int nranks) {
  const ReplayOp& op = RowOf(call.operation);
  const auto outside = [&](int rank) { return rank < 0 || rank >= nranks; };
  if (nranks < 1) return "there are no ranks";
  if (op.needs_root && outside(call.root)) return fmt::format("root {} is none of {} ranks", call.root, nranks);
  if (op.needs_peer && outside(call.peer)) return fmt::format("peer {} is none of {} ranks", call.peer, nranks);
  if (op.needs_peer && call.peer == call.root) return "a rank cannot send to itself";
  if (!call.splits.empty() && call.splits.size() != static_cast<std::size_t>(nranks))
    return fmt::format("{} splits for {} ranks", call.splits.size(), nranks);
  if (call.count == 0 && call.operation != Operation::kBarrier && call.splits.empty())
    return fmt::format("{} of no elements would move nothing", op.name);
  constexpr std::uint64_t kMostElements = std::uint64_t{1} << 48;
  if (call.count > kMostElements || std::ranges::any_of(call.splits, [](auto split) { return split > kMostElements; }))
    return "the number of elements cannot be right";
  // The libraries add in the type itself: the sum of 256 equal shares is zero whatever they did.
  const bool eight_bits = call.datatype == Datatype::kInt8 || call.datatype == Datatype::kUint8;
  if (op.needs_redop && call.redop == RedOp::kAvg && eight_bits && nranks % 256 == 0)
    return fmt::format(
        "an average of 8-bit integers over {} ranks may be zero whatever was sent, and would prove nothing", nranks);
  return "";
}

std::string Text(const Step& step) {
  return step.iteration > 0 ? fmt::format("{} #{}", Name(step.phase), step.iteration) : std::string(Name(step.phase));
}

std::string Describe(const Call& call) {
  const ReplayOp& op = RowOf(call.operation);
  if (call.operation == Operation::kBarrier) return "barrier";
  std::string text = fmt::format("{} of {} {}", op.name, call.count, Name(call.datatype));
  if (op.needs_redop) text += fmt::format(", {}", Name(call.redop));
  if (op.needs_peer)
    text += fmt::format(", rank {} to rank {}", call.root, call.peer);
  else if (op.needs_root)
    text += fmt::format(", root {}", call.root);
  return text;
}

std::string Difference(const Call& call, const Call& expected) {
  std::string text;
  const auto differ = [&](string_view field, const auto& got, const auto& wanted) {
    if (got != wanted) text += fmt::format("{}{} {} instead of {}", text.empty() ? "" : ", ", field, got, wanted);
  };
  differ("operation", Name(call.operation), Name(expected.operation));
  differ("count", call.count, expected.count);
  differ("dtype", Name(call.datatype), Name(expected.datatype));
  differ("redop", Name(call.redop), Name(expected.redop));
  differ("root", call.root, expected.root);
  differ("peer", call.peer, expected.peer);
  differ("in-place", call.in_place, expected.in_place);
  if (call.splits != expected.splits) text += text.empty() ? "splits that differ" : ", splits that differ";
  return text;
}

}  // namespace inquest
