// The table of operations: sizes, bandwidth as nccl-tests defines it, and the names that logs print.
#include "replay/ops.h"

#include "tests/catch.h"

using namespace inquest;

TEST_CASE("operations: elements in and out, and bandwidth", "[unit][replay]") {
  struct Row {
    Operation operation;
    int rank;
    std::uint64_t in, out, size;
    double factor;
  };
  const Row rows[] = {
      {Operation::kBroadcast, 1, 10, 10, 10, 1},
      {Operation::kBroadcast, 0, 0, 10, 10, 1},
      {Operation::kAllReduce, 0, 10, 10, 10, 1.5},
      {Operation::kReduce, 1, 10, 10, 10, 1},
      {Operation::kReduce, 0, 10, 0, 10, 1},
      {Operation::kAllGather, 0, 10, 40, 40, 0.75},
      {Operation::kReduceScatter, 0, 40, 10, 40, 0.75},
      {Operation::kAllToAll, 0, 40, 40, 40, 0.75},
      {Operation::kGather, 1, 10, 40, 40, 0.75},
      {Operation::kGather, 0, 10, 0, 40, 0.75},
      {Operation::kScatter, 1, 40, 10, 40, 0.75},
      {Operation::kScatter, 3, 0, 10, 40, 0.75},
      {Operation::kSendRecv, 1, 10, 0, 10, 1},
      {Operation::kSendRecv, 2, 0, 10, 10, 1},
      {Operation::kSendRecv, 3, 0, 0, 10, 1},
      {Operation::kBarrier, 0, 1, 1, 1, 1.5},
  };
  for (const Row& row : rows) {
    const ReplayOp& op = RowOf(row.operation);
    CAPTURE(op.name, row.rank);
    CHECK(op.operation == row.operation);
    const Call call{.operation = row.operation, .count = 10, .root = 1, .peer = 2};
    CHECK(op.elements_in(call, row.rank, 4) == row.in);
    CHECK(op.elements_out(call, row.rank, 4) == row.out);
    CHECK(op.bandwidth_elements(call, 4) == row.size);
    CHECK(op.bus_factor(4) == Approx(row.factor));
  }
}

TEST_CASE("operations: the names of NCCL, PyTorch and ourselves", "[unit][replay]") {
  const std::pair<const char*, const char*> rows[] = {
      {"AllReduce", "all-reduce"},
      {"ALLREDUCE", "all-reduce"},
      {"nccl:all_reduce", "all-reduce"},
      {"ALLREDUCE_COALESCED", "all-reduce"},
      {"_ALLGATHER_BASE", "all-gather"},
      {"nccl:_all_gather_base", "all-gather"},
      {"ReduceScatter", "reduce-scatter"},
      {"_REDUCE_SCATTER_BASE", "reduce-scatter"},
      {"nccl:_reduce_scatter_base", "reduce-scatter"},
      {"ALLTOALL_BASE", "all-to-all"},
      {"AlltoAll", "all-to-all"},
      {"nccl:send 0->1", "send-recv"},
      {"nccl:recv 1<-0", "send-recv"},
      {"Recv", "send-recv"},
      {"nccl:all_reduce_barrier", "barrier"},
      {"nccl:_broadcast_oop", "broadcast"},
      {"GATHER", "gather"},
      {"SCATTER", "scatter"},
      {"REDUCE", "reduce"},
      {"broadcast", "broadcast"},
  };
  for (const auto& [printed, name] : rows) {
    CAPTURE(printed);
    const ReplayOp* op = FindOp(printed);
    REQUIRE(op != nullptr);
    CHECK(op->name == name);
  }
  for (const char* printed : {"COALESCED", "", "nccl:", "all-reduced"}) {
    CAPTURE(printed);
    CHECK(FindOp(printed) == nullptr);
  }
  for (const ReplayOp& op : ReplayOps()) CHECK(FindOp(op.name) == &op);
  for (const DatatypeRow& row : kDatatypes) {
    CHECK(FindDatatype(row.name) == row.type);
    CHECK(FindDatatype(row.torch) == row.type);
  }
  CHECK(FindDatatype("torch.bfloat16") == Datatype::kBfloat16);
  CHECK_FALSE(FindDatatype("complex64"));
  CHECK(FindRedOp("AVG") == RedOp::kAvg);
}

TEST_CASE("calls: what differs is named by field", "[unit][replay]") {
  const Call call{.operation = Operation::kBroadcast, .count = 7};
  CHECK(Difference(call, call).empty());
  CHECK(Difference({.operation = Operation::kBroadcast, .count = 5, .root = 2}, call) ==
        "count 5 instead of 7, root 2 instead of 0");
  CHECK(Difference({.operation = Operation::kReduce, .count = 7}, call) == "operation reduce instead of broadcast");
  CHECK(WhyInvalid({.operation = Operation::kBroadcast, .count = 7, .root = 3}, 3) == "root 3 is none of 3 ranks");
  CHECK(WhyInvalid({.operation = Operation::kSendRecv, .count = 7, .root = 1, .peer = 1}, 3) ==
        "a rank cannot send to itself");
  CHECK(WhyInvalid(call, 3).empty());
  const Call average{
      .operation = Operation::kAllReduce, .count = 7, .datatype = Datatype::kUint8, .redop = RedOp::kAvg};
  CHECK(WhyInvalid(average, 255).empty());
  CHECK_FALSE(WhyInvalid(average, 512).empty());
}
