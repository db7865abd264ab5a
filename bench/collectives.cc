// Init and COLL lines of NCCL 2.21 and 2.27, as NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL prints them.
#include "bench/collectives.h"

#include <algorithm>
#include <numeric>

namespace inquest::bench {
namespace {

constexpr int kLayers = 8;
constexpr std::uint64_t kWindow = 4;  // operations that a rank may be ahead of the slowest
constexpr std::string_view kBusIds[] = {"1b000", "29000", "45000", "4e000", "5d000", "9d000", "bb000", "db000"};

std::string ToHex(std::uint64_t value) {
  std::string text;
  do {
    text.insert(text.begin(), "0123456789abcdef"[value & 15]);
    value >>= 4;
  } while (value != 0);
  return text;
}

/// Of the host's process group: the ranks of one host; else of the whole job.
int SizeOf(const Job& job, bool world, int rank) { return world ? job.ranks : job.RanksOnHost(job.HostOf(rank)); }

}  // namespace

Collectives::Collectives(const Job& job) : job_(job), random_(job.seed ^ 0xc011) {
  const auto add = [this](bool world, std::string_view call, std::string_view work, std::uint64_t count, int datatype,
                          int reduction) {
    steps_.push_back({world, call, work, count, datatype, reduction});
  };
  const std::uint64_t shards = static_cast<std::uint64_t>(job.ranks);
  const auto layer_count = [&](int layer) {
    return (layer == 0 ? 525336576 : 218112000 + 8192 * (static_cast<std::uint64_t>(layer) % 3)) / shards;
  };
  for (int layer = 0; layer < kLayers; ++layer) {
    add(true, "AllGather", "_ALLGATHER_BASE", layer_count(layer), 9, 0);
    add(false, "AllReduce", "ALLREDUCE", 33554432, 9, 0);
    add(false, "AllReduce", "ALLREDUCE", 33554432, 9, 0);
  }
  for (int layer = kLayers - 1; layer >= 0; --layer) {
    add(true, "AllGather", "_ALLGATHER_BASE", layer_count(layer), 9, 0);
    add(false, "AllReduce", "ALLREDUCE", 33554432, 9, 0);
    add(false, "AllReduce", "ALLREDUCE", 33554432, 9, 0);
    add(true, "ReduceScatter", "_REDUCE_SCATTER_BASE", layer_count(layer), 7, 4);
  }
  add(true, "AllReduce", "ALLREDUCE", 1, 7, 0);
  add(false, "Broadcast", "BROADCAST", 8193, 4, 0);
  add(true, "AllReduce", "ALLREDUCE", 1, 7, 4);

  Random random(job.seed ^ 0xadd7);
  for (int r = 0; r < job.ranks; ++r) {
    Rank& rank = ranks_.emplace_back();
    const int host = job.HostOf(r), local = job.LocalRank(r);
    std::string number = std::to_string(host + 1);
    number.insert(0, number.size() < 3 ? 3 - number.size() : 0, '0');
    rank.head = "node" + number + ":" + std::to_string(job.Pid(r)) + ":" + std::to_string(job.Pid(r) + 543) + " [" +
                std::to_string(local) + "] NCCL INFO ";
    rank.world_comm = 0x55d000000000 + (random.Below(1 << 28) << 4);
    rank.host_comm = rank.world_comm + 0x6dcf390;
    rank.has_proxy = job.era == Era::kNccl221 || local == 0 || local == Job::kPerHost - 1;
    const std::string stream = ToHex(rank.world_comm - 0x1710a60);
    for (const Step& step : steps_) {
      const std::uint64_t buffer = 0x7f1c40000000 + (random.Below(1 << 16) << 21);
      const std::uint64_t target =
          step.call == "AllReduce" || step.call == "Broadcast" ? buffer : buffer + (std::uint64_t{1} << 32);
      rank.tails.push_back(" sendbuff 0x" + ToHex(buffer) + " recvbuff 0x" + ToHex(target) + " count " +
                           std::to_string(step.count) + " datatype " + std::to_string(step.datatype) + " op " +
                           std::to_string(step.reduction) + " root 0 comm 0x" +
                           ToHex(step.world ? rank.world_comm : rank.host_comm) +
                           " [nranks=" + std::to_string(SizeOf(job, step.world, r)) + "] stream 0x" + stream + "\n");
    }
  }
  order_.resize(ranks_.size());
  std::iota(order_.begin(), order_.end(), 0u);
}

void Collectives::WriteInit(LogWriter& log) const {
  const bool old = job_.era == Era::kNccl221;
  if (old) log.Text("NCCL version 2.21.5+cuda12.4\n");
  const auto init = [&](int r, bool world, bool complete) {
    const Rank& rank = ranks_[static_cast<std::size_t>(r)];
    const auto local = static_cast<std::uint64_t>(job_.LocalRank(r));
    log.Text(rank.head)
        .Text(world ? (old ? "ncclCommInitRank" : "ncclCommInitRankConfig") : "ncclCommSplit")
        .Text(" comm 0x");
    log.Hex(world ? rank.world_comm : rank.host_comm)
        .Text(" rank ")
        .Decimal(world ? static_cast<std::uint64_t>(r) : local);
    log.Text(" nranks ")
        .Decimal(static_cast<std::uint64_t>(SizeOf(job_, world, r)))
        .Text(" cudaDev ")
        .Decimal(local)
        .Text(" nvmlDev ")
        .Decimal(local);
    log.Text(" busId ").Text(kBusIds[local]);
    if (!world) {
      log.Text(" parent 0x").Hex(rank.world_comm).Text(old ? "" : " splitCount 1").Text(" color ");
      log.Decimal(static_cast<std::uint64_t>(job_.HostOf(r))).Text(" key ").Decimal(static_cast<std::uint64_t>(r));
      if (!old && !complete) {
        log.Text("- Init START\n");
        return;
      }
    }
    if (world || old) {
      const std::uint64_t id = 0x8f3d2ab4c1e90d77 + 0x1f123bb5 * job_.attempt;
      log.Text(" commId 0x").Hex(world ? id : id + 0x51ed270 * (1 + static_cast<std::uint64_t>(job_.HostOf(r))));
    }
    log.Text(complete ? " - Init COMPLETE\n" : " - Init START\n");
  };
  for (const bool world : {true, false}) {
    for (int r = 0; r < job_.ranks; ++r) {
      const std::string_view head = ranks_[static_cast<std::size_t>(r)].head;
      if (world && !old) log.Text(head).Text("NCCL version 2.27.7+cuda12.9\n");
      if (world) {
        log.Text(head)
            .Text(old ? "Bootstrap : Using eth0:10.3." : "Bootstrap: Using eth0:10.3.")
            .Decimal(static_cast<std::uint64_t>(job_.HostOf(r)) / 250)
            .Text(".");
        log.Decimal(static_cast<std::uint64_t>(job_.HostOf(r)) % 250 + 1).Text("<0>\n");
        log.Text(head)
            .Text("NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.3.0.1<0>\n")
            .Text(head)
            .Text("Using network IB\n");
      }
      init(r, world, false);
    }
    for (int r = 0; r < job_.ranks; ++r) {
      const std::string_view head = ranks_[static_cast<std::size_t>(r)].head;
      const auto rank = static_cast<std::uint64_t>(r), local = static_cast<std::uint64_t>(job_.LocalRank(r));
      const std::uint64_t next = (rank + 1) % static_cast<std::uint64_t>(job_.ranks);
      for (std::uint64_t channel = 0; world && channel < 4; ++channel) {
        const bool same_host = job_.HostOf(r) == job_.HostOf(static_cast<int>(next));
        log.Text(head)
            .Text("Channel ")
            .Decimal(channel, 2)
            .Text("/0 : ")
            .Decimal(rank)
            .Text("[")
            .Decimal(local)
            .Text("] -> ")
            .Decimal(next)
            .Text("[");
        log.Decimal(next % Job::kPerHost).Text(same_host ? "] via P2P/CUMEM\n" : "] [send] via NET/IB/0/GDRDMA\n");
      }
      log.Text(head).Text("Connected all rings\n");
      init(r, world, true);
    }
  }
}

void Collectives::WriteUntil(Rank& rank, std::uint64_t position, LogWriter& log) {
  for (; rank.position < position; ++rank.position) {
    const std::size_t index = rank.position % steps_.size();
    const Step& step = steps_[index];
    // From 2.27 on the counter advances only with proxy operations, which a communicator of one host has none of.
    const std::uint64_t count = step.world ? rank.world_calls++ : rank.host_calls++;
    const bool counts = job_.era == Era::kNccl221 || (step.world && rank.has_proxy);
    log.Text(rank.head).Text(step.call).Text(": opCount ").Hex(counts ? count : 0).Text(rank.tails[index]);
  }
}

void Collectives::WriteRound(LogWriter& log) {
  for (std::size_t i = order_.size() - 1; i > 0; --i) std::swap(order_[i], order_[random_.Below(i + 1)]);
  base_ += 2;
  for (const std::uint32_t index : order_) WriteUntil(ranks_[index], base_ + random_.Below(kWindow + 1), log);
}

Work Collectives::WriteEnd(LogWriter& log) {
  std::uint64_t last = base_ + kWindow + 1;
  while (!steps_[last % steps_.size()].world) ++last;
  const Step& step = steps_[last % steps_.size()];
  const auto culprit = static_cast<std::size_t>(job_.culprit);
  for (const std::uint32_t index : order_) WriteUntil(ranks_[index], index == culprit ? last : last + 1, log);

  const std::uint64_t all = step.count * static_cast<std::uint64_t>(job_.ranks);
  Work work{ranks_[culprit].world_calls + 1, step.work, step.count, step.count};
  if (step.call == "AllGather") work.numel_out = all;
  if (step.call == "ReduceScatter") work.numel_in = all;
  return work;
}

}  // namespace inquest::bench
