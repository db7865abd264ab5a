// A job whose ranks make calls on their groups, run until nothing goes on: what their Flight Recorders then hold.
#include "tests/support/recorded_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/result.h"

namespace inquest {

/// What waits on a rank's device, and what was recorded.
struct RecordedJob::Device {
  struct Launched {
    RecordedStep step;
    std::vector<std::size_t> entries;  ///< of the recorder, its own last
  };
  std::deque<Launched> queue;
  std::size_t next = 0;  ///< of the rank's program
  std::vector<DumpEntry> entries;
  std::map<std::string, std::int64_t> seq, p2p_seq, op_id;
};

RecordedJob::RecordedJob(int ranks) : ranks_(ranks), programs_(static_cast<std::size_t>(ranks)) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  AddGroup("0", "default_pg", all);
}

void RecordedJob::AddGroup(const std::string& name, const std::string& desc, std::vector<int> ranks) {
  groups_.push_back({name, desc, std::move(ranks)});
}

void RecordedJob::All(const RecordedStep& step) {
  for (const int rank : GroupOf(step.group).ranks) On(rank, step);
}

void RecordedJob::On(int rank, const RecordedStep& step) { programs_[static_cast<std::size_t>(rank)].push_back(step); }

const DumpGroup& RecordedJob::GroupOf(const std::string& name) const {
  const auto it = std::ranges::find(groups_, name, &DumpGroup::name);
  INQUEST_CHECK(it != groups_.end());
  return *it;
}

bool RecordedJob::Ends(const std::vector<Device>& devices, int rank) const {
  const RecordedStep& step = devices[static_cast<std::size_t>(rank)].queue.front().step;
  const auto front_of = [&](int other) -> const RecordedStep* {
    const auto& queue = devices[static_cast<std::size_t>(other)].queue;
    return queue.empty() || queue.front().step.group != step.group ? nullptr : &queue.front().step;
  };
  const auto answers = [&](const RecordedStep& one, const RecordedStep& other) {
    return other.peer == rank && ((one.op == "send" && other.op == "recv" && one.inputs == other.outputs) ||
                                  (one.op == "recv" && other.op == "send" && one.outputs == other.inputs));
  };
  const auto met = [&](const RecordedStep& one) {
    const RecordedStep* other = front_of(one.peer);
    if (other == nullptr) return false;
    if (other->batch.empty()) return answers(one, *other);
    return std::ranges::any_of(other->batch, [&](const RecordedStep& part) { return answers(one, part); });
  };
  if (step.peer >= 0) return met(step);
  if (!step.batch.empty() && step.batch.front().peer >= 0) return std::ranges::all_of(step.batch, met);
  const auto uneven = step.op == "all_to_all";
  return std::ranges::all_of(GroupOf(step.group).ranks, [&](int member) {
    const RecordedStep* other = front_of(member);
    return other != nullptr && other->op == step.op && (uneven || other->inputs == step.inputs);
  });
}

std::map<int, FlightDump> RecordedJob::Run() {
  std::vector<Device> devices(static_cast<std::size_t>(ranks_));
  std::int64_t clock = 1933040000000000000;
  const auto record = [&](int rank, const RecordedStep& step, std::int64_t seq, std::int64_t p2p_seq) {
    Device& device = devices[static_cast<std::size_t>(rank)];
    const DumpGroup& group = GroupOf(step.group);
    const auto number = [&](int member) { return std::ranges::find(group.ranks, member) - group.ranks.begin(); };
    DumpEntry entry;
    entry.record = device.entries.size();
    entry.group = group.name;
    entry.desc = group.desc;
    entry.seq = seq;
    entry.p2p_seq = p2p_seq;
    entry.op_id = ++device.op_id[step.group];
    entry.is_p2p = step.peer >= 0;
    entry.name = "nccl:" + step.op;
    if (step.op == "send") entry.name += fmt::format(" {}->{}", number(rank), number(step.peer));
    if (step.op == "recv") entry.name += fmt::format(" {}<-{}", number(rank), number(step.peer));
    entry.created_ns = clock + static_cast<std::int64_t>(device.entries.size()) * 20'000'000 + rank * 1000;
    entry.inputs = step.inputs;
    entry.outputs = step.outputs;
    entry.dtype = step.dtype;
    entry.function = step.function;
    entry.line = step.line;
    entry.nested = step.nested;
    entry.state = "scheduled";
    entry.retired = false;
    device.entries.push_back(std::move(entry));
    return device.entries.size() - 1;
  };
  const auto launch = [&](int rank) {
    Device& device = devices[static_cast<std::size_t>(rank)];
    const RecordedStep& step = programs_[static_cast<std::size_t>(rank)][device.next++];
    const bool pairwise = step.peer >= 0 || (!step.batch.empty() && step.batch.front().peer >= 0);
    const bool numbered = !pairwise || (blocks_take_numbers_ && !step.batch.empty());
    std::int64_t& counter = (numbered ? device.seq : device.p2p_seq)[step.group];
    ++counter;
    Device::Launched launched{step, {}};
    for (const RecordedStep& part : step.batch)
      launched.entries.push_back(record(rank, part, device.seq[step.group], device.p2p_seq[step.group]));
    launched.entries.push_back(record(rank, step, device.seq[step.group], device.p2p_seq[step.group]));
    if (!step.batch.empty()) device.entries.back().is_p2p = pairwise && !blocks_take_numbers_;
    device.queue.push_back(std::move(launched));
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < ranks_; ++rank) {
      Device& device = devices[static_cast<std::size_t>(rank)];
      while (device.next < programs_[static_cast<std::size_t>(rank)].size() && device.queue.size() < ahead_) {
        launch(rank);
        moved = true;
      }
    }
    std::vector<int> ending;
    for (int rank = 0; rank < ranks_; ++rank)
      if (!devices[static_cast<std::size_t>(rank)].queue.empty() && Ends(devices, rank)) ending.push_back(rank);
    for (const int rank : ending) {
      Device& device = devices[static_cast<std::size_t>(rank)];
      // Parts of a block are never seen to end.
      DumpEntry& entry = device.entries[device.queue.front().entries.back()];
      entry.state = "completed";
      entry.retired = true;
      device.queue.pop_front();
      moved = true;
    }
  }
  std::map<int, FlightDump> out;
  for (int rank = 0; rank < ranks_; ++rank) {
    Device& device = devices[static_cast<std::size_t>(rank)];
    if (gave_up_ && !device.queue.empty()) device.entries[device.queue.front().entries.back()].retired = true;
    FlightDump& dump = out[rank];
    dump.version = version_;
    for (const DumpGroup& group : groups_)
      if (std::ranges::find(group.ranks, rank) != group.ranks.end()) dump.groups.push_back(group);
    dump.entries = device.entries;
    dump.progress = ProgressOf(dump);
    const std::size_t kept = std::min(ring_, device.entries.size());
    dump.entries.assign(device.entries.end() - static_cast<std::ptrdiff_t>(kept), device.entries.end());
  }
  return out;
}

namespace {

RecordedStep MakeStep(const std::string& op, std::int64_t in, std::int64_t out, int line,
                      const std::string& group = "0") {
  RecordedStep step;
  step.group = group;
  step.op = op;
  step.inputs = {{in}};
  step.outputs = {{out}};
  step.line = line;
  return step;
}

/// An iteration as FSDP makes it: weights gathered, gradients scattered, the norm summed.
void Iterate(RecordedJob& job, int ranks, int times, int line = 120, int nested = 0) {
  const auto all = [&](RecordedStep step) {
    step.nested = nested;
    job.All(step);
  };
  for (int i = 0; i < times; ++i) {
    all(MakeStep("_all_gather_base", 2097152, 2097152 * ranks, line));
    all(MakeStep("_reduce_scatter_base", 4194304 * ranks, 4194304, line + 27));
    all(MakeStep("all_reduce", 1, 1, line + 43));
  }
}

/// Two pipeline stages of four tensor-parallel ranks each: 0-3 and 4-7.
RecordedJob Pipeline() {
  RecordedJob job(8);
  job.AddGroup("1", "tp", {0, 1, 2, 3});
  job.AddGroup("2", "tp", {4, 5, 6, 7});
  for (int lane = 0; lane < 4; ++lane) job.AddGroup(std::to_string(3 + lane), "pp", {lane, lane + 4});
  return job;
}

RecordedStep Exchange(int lane, const std::string& op, int peer, int line) {
  RecordedStep step = MakeStep(op, 8388608, 8388608, line, std::to_string(3 + lane));
  if (op == "send")
    step.outputs.clear();
  else
    step.inputs.clear();
  step.dtype = "BFloat16";
  step.function = op == "send" ? "send_forward" : "recv_forward";
  step.peer = peer;
  return step;
}

void Forward(RecordedJob& job, int lane) {
  job.On(lane, MakeStep("all_reduce", 16777216, 16777216, 212, "1"));
  job.On(lane, Exchange(lane, "send", lane + 4, 57));
  job.On(lane + 4, Exchange(lane, "recv", lane, 41));
  job.On(lane + 4, MakeStep("all_reduce", 16777216, 16777216, 212, "2"));
}

/// Sends and receives of one rank that are launched as one.
RecordedStep Batch(std::vector<RecordedStep> parts) {
  RecordedStep block = MakeStep("coalesced", 0, 0, 66, parts.front().group);
  block.inputs.clear();
  block.outputs.clear();
  block.function = "batch_isend_irecv";
  block.batch = std::move(parts);
  return block;
}

/// On the group of all: what one rank passes to another.
RecordedStep Pass(const std::string& op, int peer, int line = 57) {
  RecordedStep step = Exchange(0, op, peer, line);
  step.group = "0";
  return step;
}

/// Sixteen ranks: two pipeline stages of four replicas of two tensor-parallel ranks. Rank = 8 stage + 2 replica + part.
struct Grid {
  RecordedJob job{16};
  static std::string Tensor(int rank) { return std::to_string(1 + rank / 2); }
  static std::string Data(int rank) { return std::to_string(9 + rank / 8 * 2 + rank % 2); }
  static std::string Pipe(int rank) { return std::to_string(13 + rank % 8); }

  Grid() {
    for (int rank = 0; rank < 16; rank += 2) job.AddGroup(Tensor(rank), "mesh_tp", {rank, rank + 1});
    for (const int rank : {0, 1, 8, 9}) job.AddGroup(Data(rank), "mesh_dp", {rank, rank + 2, rank + 4, rank + 6});
    for (int rank = 0; rank < 8; ++rank) job.AddGroup(Pipe(rank), "mesh_pp", {rank, rank + 8});
  }

  /// One iteration of one rank.
  void Iterate(int rank) {
    const auto pass = [&](const std::string& op, int line) {
      RecordedStep step = Pass(op, rank < 8 ? rank + 8 : rank - 8, line);
      step.group = Pipe(rank);
      step.function = op == "send" ? "send_forward" : "recv_forward";
      job.On(rank, step);
    };
    if (rank >= 8) pass("recv", 41);
    job.On(rank, MakeStep("all_reduce", 16777216, 16777216, 212, Tensor(rank)));
    if (rank < 8) pass("send", 57);
    job.On(rank, MakeStep("_reduce_scatter_base", 33554432, 8388608, 147, Data(rank)));
    job.On(rank, MakeStep("all_reduce", 1, 1, 163));
  }
};

/// Stages of a pipeline, one rank each: forward, then back.
void RunStages(RecordedJob& job, int ranks, int times) {
  for (int i = 0; i < times; ++i) {
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank > 0) job.On(rank, Pass("recv", rank - 1, 41));
      if (rank + 1 < ranks) job.On(rank, Pass("send", rank + 1, 57));
    }
    for (int rank = ranks; rank-- > 0;) {
      if (rank + 1 < ranks) job.On(rank, Pass("recv", rank + 1, 91));
      if (rank > 0) job.On(rank, Pass("send", rank - 1, 97));
    }
  }
}

/// Neighbours of four ranks in a row, in blocks: those in its middle in two, those at its ends in one.
void ExchangeInARow(RecordedJob& job) {
  for (int rank = 0; rank < 4; rank += 2) {
    job.On(rank, Batch({Pass("send", rank + 1, 57), Pass("recv", rank + 1, 61)}));
    job.On(rank + 1, Batch({Pass("recv", rank, 61), Pass("send", rank, 57)}));
  }
  job.On(1, Batch({Pass("send", 2, 57), Pass("recv", 2, 61)}));
  job.On(2, Batch({Pass("recv", 1, 61), Pass("send", 1, 57)}));
}

using Maker = std::function<std::map<int, FlightDump>()>;

const std::map<std::string, Maker>& Makers() {
  static const std::map<std::string, Maker> kMakers = {
      {"missing-rank",
       [] {
         RecordedJob job(8);
         Iterate(job, 8, 9);
         for (int rank = 0; rank < 8; ++rank)
           if (rank != 5) job.On(rank, MakeStep("_all_gather_base", 2097152, 2097152 * 8, 120));
         return job.Run();
       }},
      {"asked-while-running",
       [] {
         RecordedJob job(8);
         Iterate(job, 8, 9);
         for (int rank = 0; rank < 8; ++rank)
           if (rank % 3 != 0) job.On(rank, MakeStep("_all_gather_base", 2097152, 2097152 * 8, 120));
         job.running();
         return job.Run();
       }},
      {"size-differs",
       [] {
         RecordedJob job(8);
         Iterate(job, 8, 7);
         for (int rank = 0; rank < 8; ++rank)
           job.On(rank, MakeStep("all_reduce", rank == 2 ? 1048064 : 1048576, rank == 2 ? 1048064 : 1048576, 171));
         return job.Run();
       }},
      {"uneven-all-to-all",
       [] {
         RecordedJob job(8);
         Iterate(job, 8, 7);
         for (int rank = 0; rank < 8; ++rank)
           job.On(rank, MakeStep("all_to_all", 65536 + 512 * rank, 65536 + 1024 * rank, 233));
         for (int rank = 0; rank < 8; ++rank)
           if (rank != 6) job.On(rank, MakeStep("all_reduce", 1, 1, 163));
         return job.Run();
       }},
      {"operation-differs",
       [] {
         RecordedJob job(4);
         Iterate(job, 4, 10);
         for (int rank = 0; rank < 4; ++rank)
           job.On(rank, rank == 0 ? MakeStep("broadcast", 262144, 262144, 301) : MakeStep("all_reduce", 1, 1, 163));
         return job.Run();
       }},
      {"order-swapped",
       [] {
         RecordedJob job(4);
         Iterate(job, 4, 10);
         for (int rank = 0; rank < 4; ++rank) {
           const RecordedStep a = MakeStep("all_reduce", 524288, 524288, 171),
                              b = MakeStep("all_reduce", 786432, 786432, 171);
           job.On(rank, rank == 3 ? b : a);
           job.On(rank, rank == 3 ? a : b);
         }
         return job.Run();
       }},
      {"dump-missing",
       [] {
         RecordedJob job(8);
         Iterate(job, 8, 9);
         for (int rank = 0; rank < 8; ++rank)
           if (rank != 6) job.On(rank, MakeStep("_all_gather_base", 2097152, 2097152 * 8, 120));
         auto dumps = job.Run();
         dumps.erase(6);
         return dumps;
       }},
      {"dump-missing-of-a-waiter",
       [] {
         RecordedJob job(8);
         Iterate(job, 8, 9);
         for (int rank = 0; rank < 8; ++rank)
           if (rank != 1) job.On(rank, MakeStep("_all_gather_base", 2097152, 2097152 * 8, 120));
         auto dumps = job.Run();
         dumps.erase(6);
         return dumps;
       }},
      {"rings-overwritten",
       [] {
         RecordedJob job = Pipeline();
         job.ring(24);
         for (int i = 0; i < 40; ++i) {
           for (int lane = 0; lane < 4; ++lane) Forward(job, lane);
           if (i % 8 == 7) job.All(MakeStep("all_reduce", 1, 1, 163));
         }
         for (int lane = 0; lane < 4; ++lane) job.On(lane, MakeStep("all_reduce", 16777216, 16777216, 212, "1"));
         for (int rank = 0; rank < 8; ++rank)
           if (rank != 4) job.On(rank, MakeStep("all_reduce", 1, 1, 163));
         return job.Run();
       }},
      {"pipeline-chain",
       [] {
         RecordedJob job = Pipeline();
         for (int i = 0; i < 10; ++i) {
           for (int lane = 0; lane < 4; ++lane) Forward(job, lane);
           job.All(MakeStep("all_reduce", 1, 1, 163));
         }
         // Rank 6 leaves its stage alone: its tensor group waits for it, the stage before for that, and all for those.
         for (int lane = 0; lane < 4; ++lane) {
           job.On(lane, MakeStep("all_reduce", 16777216, 16777216, 212, "1"));
           job.On(lane, Exchange(lane, "send", lane + 4, 57));
           job.On(lane, MakeStep("all_reduce", 1, 1, 163));
           if (lane == 2) continue;
           job.On(lane + 4, MakeStep("all_reduce", 16777216, 16777216, 212, "2"));
           job.On(lane + 4, Exchange(lane, "recv", lane, 41));
           job.On(lane + 4, MakeStep("all_reduce", 1, 1, 163));
         }
         return job.Run();
       }},
      {"cycle",
       [] {
         RecordedJob job(4);
         job.AddGroup("1", "tp", {0, 1, 2, 3});
         job.ahead(1);
         Iterate(job, 4, 10);
         for (int rank = 0; rank < 4; ++rank) {
           const RecordedStep data = MakeStep("all_reduce", 4194304, 4194304, 171),
                              tensor = MakeStep("all_reduce", 65536, 65536, 212, "1");
           job.On(rank, rank < 2 ? data : tensor);
           job.On(rank, rank < 2 ? tensor : data);
         }
         return job.Run();
       }},
      {"two-groups-and-one-is-behind",
       [] {
         RecordedJob job(4);
         job.AddGroup("1", "tp", {0, 1, 2, 3});
         job.ahead(1);
         Iterate(job, 4, 10);
         for (int rank = 0; rank < 4; ++rank) {
           if (rank == 3) continue;
           job.On(rank, MakeStep("all_reduce", 65536, 65536, 212, "1"));
           job.On(rank, MakeStep("all_reduce", 4194304, 4194304, 171));
         }
         return job.Run();
       }},
      {"coalesced-differs",
       [] {
         RecordedJob job(4);
         for (int i = 0; i < 8; ++i) {
           RecordedStep block = MakeStep("coalesced", 0, 0, 190);
           block.inputs.clear();
           block.outputs.clear();
           block.batch = {MakeStep("_all_gather_base", 1024, 4096, 188), MakeStep("_all_gather_base", 2048, 8192, 188)};
           job.All(block);
         }
         for (int rank = 0; rank < 4; ++rank) {
           RecordedStep block = MakeStep("coalesced", 0, 0, 190);
           block.inputs.clear();
           block.outputs.clear();
           block.batch = {MakeStep("_all_gather_base", 1024, 4096, 188)};
           if (rank != 1) block.batch.push_back(MakeStep("_all_gather_base", 2048, 8192, 188));
           block.inputs = {{static_cast<std::int64_t>(block.batch.size())}};  // so that it does not end
           job.On(rank, block);
         }
         auto dumps = job.Run();
         for (auto& [rank, dump] : dumps)
           for (DumpEntry& entry : dump.entries)
             if (entry.name == "nccl:coalesced") entry.inputs.clear();
         return dumps;
       }},
      {"coalesced-and-one-is-missing",
       [] {
         RecordedJob job(4);
         for (int i = 0; i < 9; ++i) {
           RecordedStep block = MakeStep("coalesced", 0, 0, 190);
           block.inputs.clear();
           block.outputs.clear();
           block.batch = {MakeStep("_all_gather_base", 1024, 4096, 188), MakeStep("_all_gather_base", 2048, 8192, 188)};
           for (int rank = 0; rank < 4; ++rank)
             if (i < 8 || rank != 2) job.On(rank, block);
         }
         return job.Run();
       }},
      {"send-without-receive",
       [] {
         RecordedJob job = Pipeline();
         for (int i = 0; i < 10; ++i)
           for (int lane = 0; lane < 4; ++lane) Forward(job, lane);
         for (int lane = 0; lane < 4; ++lane) {
           job.On(lane, Exchange(lane, "send", lane + 4, 57));
           if (lane != 1) job.On(lane + 4, Exchange(lane, "recv", lane, 41));
         }
         return job.Run();
       }},
      {"send-and-receive-differ",
       [] {
         RecordedJob job = Pipeline();
         for (int i = 0; i < 10; ++i)
           for (int lane = 0; lane < 4; ++lane) Forward(job, lane);
         for (int lane = 0; lane < 4; ++lane) {
           job.On(lane, Exchange(lane, "send", lane + 4, 57));
           RecordedStep receive = Exchange(lane, "recv", lane, 41);
           if (lane == 3) receive.outputs = {{4194304}};
           job.On(lane + 4, receive);
         }
         return job.Run();
       }},
      {"asked-while-in-step",
       [] {
         RecordedJob job(8);
         Iterate(job, 8, 9);
         job.running();
         return job.Run();
       }},
      {"pipeline-asked-while-running",
       [] {
         RecordedJob job = Pipeline();
         for (int i = 0; i < 10; ++i) {
           for (int lane = 0; lane < 4; ++lane) Forward(job, lane);
           job.All(MakeStep("all_reduce", 1, 1, 163));
         }
         for (int lane = 0; lane < 4; ++lane) {
           job.On(lane, MakeStep("all_reduce", 16777216, 16777216, 212, "1"));
           job.On(lane, Exchange(lane, "send", lane + 4, 57));
           if (lane < 2) job.On(lane + 4, Exchange(lane, "recv", lane, 41));
         }
         job.running();
         return job.Run();
       }},
      {"uneven-gather",
       [] {
         RecordedJob job(8);
         Iterate(job, 8, 7);
         for (int rank = 0; rank < 8; ++rank) {
           RecordedStep gather = MakeStep("gather", 4096, 32768, 251);
           if (rank != 0) gather.outputs.clear();
           job.On(rank, gather);
         }
         for (int rank = 0; rank < 8; ++rank)
           if (rank != 3) job.On(rank, MakeStep("all_reduce", 1, 1, 163));
         return job.Run();
       }},
      {"two-buckets-and-one-is-behind",
       [] {
         RecordedJob job(4);
         Iterate(job, 4, 10);
         for (int rank = 0; rank < 4; ++rank) {
           job.On(rank, MakeStep("all_reduce", 524288, 524288, 171));
           if (rank != 3) job.On(rank, MakeStep("all_reduce", 786432, 786432, 171));
         }
         return job.Run();
       }},
      {"one-name-for-two-groups",
       [] {
         RecordedJob job(4);
         job.AddGroup("1", "mesh_tp", {0, 1});
         job.AddGroup("2", "mesh_tp", {2, 3});
         for (int i = 0; i < 12; ++i) {
           job.All(MakeStep("all_reduce", 65536, 65536, 212, "1"));
           job.All(MakeStep("broadcast", 4096, 4096, 216, "2"));
           job.All(MakeStep("all_reduce", 1, 1, 163));
         }
         for (const int rank : {0, 1, 2}) {
           job.On(rank, rank < 2 ? MakeStep("all_reduce", 65536, 65536, 212, "1")
                                 : MakeStep("broadcast", 4096, 4096, 216, "2"));
           job.On(rank, MakeStep("all_reduce", 1, 1, 163));
         }
         auto dumps = job.Run();
         for (auto& [rank, dump] : dumps) {
           for (DumpGroup& group : dump.groups)
             if (group.name == "2") group.name = "1";
           for (DumpEntry& entry : dump.entries)
             if (entry.group == "2") entry.group = "1";
         }
         return dumps;
       }},
      {"stuck-in-the-data-loader",
       [] {
         Grid grid;
         for (int i = 0; i < 6; ++i)
           for (int rank = 0; rank < 16; ++rank)
             if (i < 5 || rank != 5) grid.Iterate(rank);
         return grid.job.Run();
       }},
      {"grid-asked-while-running",
       [] {
         Grid grid;
         for (int i = 0; i < 6; ++i)
           for (int rank = 0; rank < 16; ++rank)
             if (i < 5 || (rank / 2) % 2 == 0) grid.Iterate(rank);
         grid.job.running();
         return grid.job.Run();
       }},
      {"stage-died",
       [] {
         RecordedJob job(4);
         RunStages(job, 4, 12);
         for (const int rank : {0, 1, 3}) {
           if (rank > 0) job.On(rank, Pass("recv", rank - 1, 41));
           if (rank < 3) job.On(rank, Pass("send", rank + 1, 57));
           job.On(rank, rank < 3 ? Pass("recv", rank + 1, 91) : Pass("send", rank - 1, 97));
         }
         auto dumps = job.Run();
         dumps.erase(2);
         return dumps;
       }},
      {"stage-stopped",
       [] {
         RecordedJob job(4);
         RunStages(job, 4, 12);
         for (const int rank : {0, 1, 3}) {
           if (rank > 0) job.On(rank, Pass("recv", rank - 1, 41));
           if (rank < 3) job.On(rank, Pass("send", rank + 1, 57));
           job.On(rank, rank < 3 ? Pass("recv", rank + 1, 91) : Pass("send", rank - 1, 97));
         }
         return job.Run();
       }},
      {"ring-lost-the-call",
       [] {
         // Ranks 0 to 3 went on in a group of their own until their rings had lost the call in which 4 to 7 wait; which
         // of the eight is to blame, nobody can say any more.
         RecordedJob job(8);
         Iterate(job, 8, 10);
         for (int rank = 0; rank < 8; ++rank)
           job.On(rank, MakeStep("all_reduce", rank == 2 ? 1048064 : 1048576, rank == 2 ? 1048064 : 1048576, 171));
         auto dumps = job.Run();
         for (int rank = 0; rank < 4; ++rank) {
           FlightDump& dump = dumps[rank];
           dump.groups.push_back({"1", "experts", {0, 1, 2, 3}});
           for (int i = 0; i < 40; ++i) {
             DumpEntry entry;
             entry.record = dump.entries.size();
             entry.group = "1";
             entry.desc = "experts";
             entry.seq = entry.op_id = i + 1;
             entry.name = "nccl:all_to_all";
             entry.created_ns = dump.entries.back().created_ns + 20'000'000;
             entry.line = 233;
             dump.entries.push_back(entry);
           }
         }
         for (auto& [rank, dump] : dumps) {
           dump.progress.clear();
           dump.progress = ProgressOf(dump);
           if (dump.entries.size() > 24) dump.entries.erase(dump.entries.begin(), dump.entries.end() - 24);
         }
         return dumps;
       }},
      {"dump-of-an-earlier-job",
       [] {
         const auto run = [](int times) {
           RecordedJob job(4);
           job.ring(24);
           Iterate(job, 4, times);
           for (const int rank : {0, 2}) job.On(rank, MakeStep("_all_gather_base", 2097152, 2097152 * 4, 120));
           return job.Run();
         };
         auto dumps = run(40);
         dumps[3] = run(4)[3];
         for (DumpEntry& entry : dumps[3].entries) entry.created_ns -= std::int64_t{86'400'000'000'000};
         return dumps;
       }},
      {"pairs-in-a-circle",
       [] {
         RecordedJob job(4);
         Iterate(job, 4, 8);
         for (int rank = 0; rank < 4; ++rank) {
           job.On(rank, Pass("send", (rank + 1) % 4, 57));
           job.On(rank, Pass("recv", (rank + 3) % 4, 61));
         }
         return job.Run();
       }},
      {"circle-in-blocks",
       [] {
         RecordedJob job(4);
         Iterate(job, 4, 8);
         for (int rank = 0; rank < 4; ++rank) {
           job.On(rank, Batch({Pass("send", (rank + 1) % 4, 57), Pass("recv", (rank + 3) % 4, 61)}));
           if (rank != 2) job.On(rank, MakeStep("all_reduce", 1, 1, 163));
         }
         return job.Run();
       }},
      {"both-send-first",
       [] {
         RecordedJob job(4);
         Iterate(job, 4, 8);
         for (int rank = 0; rank < 2; ++rank) {
           job.On(rank, Pass("send", 1 - rank, 57));
           job.On(rank, Pass("recv", 1 - rank, 61));
         }
         for (int rank = 0; rank < 4; ++rank) job.On(rank, MakeStep("all_reduce", 1, 1, 163));
         return job.Run();
       }},
      {"blocks-take-numbers",
       [] {
         // The ranks in the middle of a row exchange with two neighbours, in two blocks; those at its ends in one.
         RecordedJob job(4);
         job.blocks_take_numbers();
         for (int i = 0; i < 8; ++i) {
           ExchangeInARow(job);
           job.All(MakeStep("all_reduce", 1, 1, 163));
         }
         for (const int rank : {0, 1, 2}) {
           if (rank == 0) job.On(rank, Batch({Pass("send", 1, 57), Pass("recv", 1, 61)}));
           if (rank == 1) job.On(rank, Batch({Pass("recv", 0, 61), Pass("send", 0, 57)}));
           if (rank == 2) job.On(rank, Batch({Pass("send", 3, 57), Pass("recv", 3, 61)}));
           if (rank == 1) job.On(rank, Batch({Pass("send", 2, 57), Pass("recv", 2, 61)}));
           if (rank == 2) job.On(rank, Batch({Pass("recv", 1, 61), Pass("send", 1, 57)}));
           job.On(rank, MakeStep("all_reduce", 1, 1, 163));
         }
         return job.Run();
       }},
      {"blocks-take-numbers-and-one-is-behind",
       [] {
         RecordedJob job(4);
         job.blocks_take_numbers();
         for (int i = 0; i < 9; ++i) {
           ExchangeInARow(job);
           for (int rank = 0; rank < 4; ++rank)
             if (i < 8 || rank != 1) job.On(rank, MakeStep("all_reduce", 1, 1, 163));
         }
         return job.Run();
       }},
      {"tensor-pair-behind",
       [] {
         // Rank 1 is in Python; rank 0 waits for it in their tensor group, and ranks 2 and 3 for both in the group of
         // all.
         RecordedJob job(4);
         job.AddGroup("1", "mesh_tp", {0, 1});
         job.AddGroup("2", "mesh_tp", {2, 3});
         for (int i = 0; i < 13; ++i)
           for (int rank = 0; rank < 4; ++rank) {
             if (i == 12 && rank == 1) continue;
             job.On(rank, MakeStep("all_reduce", 65536, 65536, 212, rank < 2 ? "1" : "2"));
             job.On(rank, MakeStep("all_reduce", 4194304, 4194304, 171));
           }
         return job.Run();
       }},
      {"rings-cut-blocks",
       [] {
         RecordedJob job(4);
         job.ring(20);
         for (int i = 0; i < 12; ++i) {
           for (int rank = 0; rank < 4; ++rank) {
             RecordedStep block = MakeStep("coalesced", 0, 0, 190);
             block.inputs.clear();
             block.outputs.clear();
             block.batch = {MakeStep("_all_gather_base", 1024, 4096, 188),
                            MakeStep("_all_gather_base", 2048, 8192, 188)};
             job.On(rank, block);
             // So that rings of ranks begin at other places.
             if (rank % 2 == 0 && i > 7) job.On(rank, Pass("send", rank + 1, 57));
             if (rank % 2 == 1 && i > 7) job.On(rank, Pass("recv", rank - 1, 61));
           }
         }
         for (int rank = 0; rank < 4; ++rank) {
           if (rank == 0) job.On(rank, Pass("send", 1, 57));
           if (rank == 1) job.On(rank, Pass("recv", 0, 61));
           if (rank != 3) job.On(rank, MakeStep("all_reduce", 1, 1, 163));
         }
         return job.Run();
       }},
  };
  return kMakers;
}

}  // namespace

std::map<int, FlightDump> RecordedScenario(const std::string& name) {
  if (name.starts_with("healthy-")) {
    const std::size_t dash = name.find('-', 8);
    const int ranks = std::stoi(name.substr(8)), entries = std::stoi(name.substr(dash + 1));
    RecordedJob job(ranks);
    job.ring(static_cast<std::size_t>(entries));
    for (int i = 0; i <= entries / 3; ++i) Iterate(job, ranks, 1, 512 + i % 96, 12);
    for (int rank = 0; rank < ranks; ++rank)
      if (rank != ranks / 2) job.On(rank, MakeStep("_all_gather_base", 2097152, 2097152 * ranks, 120));
    return job.Run();
  }
  const auto it = Makers().find(name);
  return it == Makers().end() ? std::map<int, FlightDump>() : it->second();
}

std::vector<std::string> RecordedScenarios() {
  std::vector<std::string> out;
  for (const auto& [name, maker] : Makers()) out.push_back(name);
  return out;
}

}  // namespace inquest
