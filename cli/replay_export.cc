// Writes a plan down as a script for torchrun, or as a command of nccl-tests.
#include "cli/replay_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "replay/ops.h"
#include "rules/remedy.h"

namespace inquest {
namespace {

/// Any bytes as an expression of Python that is a str: what is no ASCII goes the way os.environ goes.
std::string PyText(std::string_view text) {
  const bool plain = std::ranges::all_of(text, [](unsigned char c) { return c < 0x80; });
  std::string literal = plain ? "\"" : "os.fsdecode(b\"";
  for (const char each : text) {
    const auto c = static_cast<unsigned char>(each);
    if (c == '"' || c == '\\')
      literal += fmt::format("\\{}", static_cast<char>(c));
    else if (c >= 0x20 && c < 0x7f)
      literal += static_cast<char>(c);
    else
      literal += fmt::format("\\x{:02x}", c);
  }
  return literal + (plain ? "\"" : "\")");
}

/// Any text in a line of a comment, for Python and for a shell.
std::string Remark(std::string_view text) {
  std::string line;
  for (const char c : text) line += c >= 0x20 && c < 0x7f ? c : '?';
  return line;
}

/// torch's name of the type on the wire, and why it is another; NCCL moves unsigned words as it moves signed ones.
std::string_view TorchType(Datatype type) {
  switch (type) {
    case Datatype::kInt8:
      return "int8";
    case Datatype::kUint8:
      return "uint8";
    case Datatype::kInt32:
    case Datatype::kUint32:
      return "int32";
    case Datatype::kInt64:
    case Datatype::kUint64:
      return "int64";
    case Datatype::kFloat16:
      return "float16";
    case Datatype::kFloat32:
      return "float32";
    case Datatype::kFloat64:
      return "float64";
    case Datatype::kBfloat16:
      return "bfloat16";
    case Datatype::kFloat8E4M3:
      return "float8_e4m3fn";
    case Datatype::kFloat8E5M2:
      return "float8_e5m2";
  }
  return "float32";
}

std::string_view TorchReduction(RedOp op) {
  constexpr std::string_view kNames[] = {"SUM", "PRODUCT", "MAX", "MIN", "AVG"};
  return kNames[static_cast<std::size_t>(op)];
}

std::string Tuple(const std::vector<std::uint64_t>& numbers) {
  std::string text = "(";
  for (const auto number : numbers) text += fmt::format("{}, ", number);
  return text + ")";
}

std::string Settings(const std::map<std::string, std::string>& env) {
  std::string text = "{";
  for (const auto& [name, value] : env) text += fmt::format("{}: {}, ", PyText(name), PyText(value));
  if (!env.empty()) text.resize(text.size() - 2);
  return text + "}";
}

std::size_t HostsOf(const Plan& plan) {
  std::set<std::string> hosts;
  for (const RankPlace& place : plan.places)
    if (!place.was.host.empty()) hosts.insert(place.was.host);
  const auto nodes = static_cast<std::size_t>(std::max(plan.nodes.value, 1));
  return std::max({hosts.size(), nodes, std::size_t{1}});
}

/// Where the ranks were, and how the arguments are known: for whoever reads it.
std::string Remarks(const Plan& plan) {
  std::string text = fmt::format("# {}, {} ranks.\n", Remark(TitleOf(plan)), plan.ranks.value);
  for (const ArgumentLine& line : Arguments(plan)) {
    text += Remark(fmt::format("#   {:<7} {:<14} {}", line.name, line.value, line.origin)) + "\n";
    if (line.sweep.size() > 1)
      text += Remark(fmt::format("#   {:<7} {:<14} others could be: {}", "", "", fmt::join(line.sweep, ", "))) + "\n";
  }
  for (std::size_t rank = 0; rank < plan.places.size(); ++rank) {
    const JobPlace& was = plan.places[rank].was;
    if (was.host.empty() && was.bus_id.empty() && !was.rank) continue;
    text += Remark(fmt::format("#   rank {}{}{}{}", rank, was.rank ? fmt::format(" was {} of the job", *was.rank) : "",
                               was.host.empty() ? "" : " on " + was.host,
                               was.bus_id.empty() ? "" : ", GPU " + was.bus_id)) +
            "\n";
  }
  for (const std::string& note : plan.notes) text += "# Note: " + Remark(note) + "\n";
  for (const std::string& why : plan.cannot) text += "# It cannot show what happened: " + Remark(why) + "\n";
  return text;
}

constexpr std::string_view kHead = R"py(#!/usr/bin/env python3
# Made by `{mark}`, inquest {version}: needs PyTorch, and nothing of inquest.
#
#   torchrun --standalone --nproc-per-node {ranks} {name}                                    on one host
#   torchrun --nnodes {hosts} --nproc-per-node {per_host} --node-rank I --master-addr HOST --master-port 29500 {name}    on each of {hosts}
#
# BACKEND=gloo runs it on CPUs, TIMEOUT=SECONDS (60) is for each pass, PASSES=N (1) how often. It ends with 1 where a
# call does not come through, and says which; the data is not verified.
#
{remarks}import datetime
import os
import sys
import threading

RANK, WORLD, LOCAL = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
# What the job set for NCCL: of all ranks, and of one alone. What is set already stays.
SETTINGS = {settings}
OF_RANK = {of_rank}
for name, value in {{**SETTINGS, **OF_RANK.get(RANK, {{}})}}.items():
    os.environ.setdefault(name, value)

import torch
import torch.distributed as dist

BACKEND = os.environ.get("BACKEND", "nccl")
TIMEOUT = float(os.environ.get("TIMEOUT", "60"))
PASSES = int(os.environ.get("PASSES", "1"))

# Communicators: what the logs call them, and their ranks.
GROUPS = [
{groups}]
# Calls: operation, elements as NCCL counts them, type, reduction, root or sender, receiver, splits, in place. Roots and
# peers are numbers in the group.
CALLS = [
{calls}]
# Of each rank in its order: group, call, stream, group call (0: none).
STEPS = {{
{steps}}}
)py";

constexpr std::string_view kBody = R"py(
assert WORLD == len(STEPS), f"{len(STEPS)} ranks are needed, and there are {WORLD}"
cuda = BACKEND == "nccl"
device = torch.device("cuda", LOCAL) if cuda else torch.device("cpu")
if cuda:
    torch.cuda.set_device(device)
dist.init_process_group(BACKEND, timeout=datetime.timedelta(seconds=10 * TIMEOUT + 600))
# Every rank makes every group, in one order: PyTorch asks for that.
groups = [dist.group.WORLD if ranks == list(range(WORLD)) else dist.new_group(ranks) for _, ranks in GROUPS]


def words(step):
    group, call, stream, batch = step
    return f"{CALLS[call][0]} of {CALLS[call][1]} {CALLS[call][2]} on {GROUPS[group][0]}"


class Prepared:
    """One step with its buffers."""

    def __init__(self, step):
        self.step = step
        group, call, self.stream, self.batch = step
        self.op, self.count, type_name, redop, self.root, self.peer, self.splits, self.in_place = CALLS[call]
        self.group, self.ranks = groups[group], GROUPS[group][1]
        self.me, n = self.ranks.index(RANK), len(GROUPS[group][1])
        self.redop = getattr(dist.ReduceOp, redop)
        dtype = getattr(torch, type_name)
        own, every = self.count, self.count * n
        into = {"reduce_scatter": every, "all_to_all": sum(self.splits) if self.splits else every, "scatter": every}.get(self.op, own)
        outof = {"all_gather": every, "all_to_all": n * self.splits[self.me] if self.splits else every, "gather": every}.get(self.op, own)
        self.input = torch.ones(into, dtype=torch.float32, device=device).to(dtype)
        alone = self.op in ("all_reduce", "broadcast", "reduce", "send", "recv", "barrier")
        if alone:
            self.output = self.input
        elif self.in_place and self.op == "all_gather":
            self.output = torch.ones(outof, dtype=torch.float32, device=device).to(dtype)
            self.input = self.output[self.me * own : (self.me + 1) * own]
        elif self.in_place and self.op == "reduce_scatter":
            self.output = self.input[self.me * own : (self.me + 1) * own]
        else:
            self.output = torch.ones(outof, dtype=torch.float32, device=device).to(dtype)

    def point_to_point(self):
        if self.op != "send_recv":
            return None
        sends = self.me == self.root
        return dist.P2POp(dist.isend if sends else dist.irecv, self.input, self.ranks[self.peer if sends else self.root], self.group)

    def run(self):
        root = self.ranks[self.root]
        if self.op == "broadcast":
            dist.broadcast(self.input, root, group=self.group)
        elif self.op == "all_reduce":
            dist.all_reduce(self.input, op=self.redop, group=self.group)
        elif self.op == "reduce":
            dist.reduce(self.input, root, op=self.redop, group=self.group)
        elif self.op == "all_gather":
            if BACKEND == "gloo":
                dist.all_gather(list(self.output.chunk(len(self.ranks))), self.input, group=self.group)
            else:
                dist.all_gather_into_tensor(self.output, self.input, group=self.group)
        elif self.op == "reduce_scatter":
            if BACKEND == "gloo":  # which has none
                dist.all_reduce(self.input, op=self.redop, group=self.group)
            else:
                dist.reduce_scatter_tensor(self.output, self.input, op=self.redop, group=self.group)
        elif self.op == "all_to_all":
            n = len(self.ranks)
            sizes = ([self.splits[self.me]] * n, list(self.splits)) if self.splits else (None, None)
            dist.all_to_all_single(self.output, self.input, *sizes, group=self.group)
        elif self.op == "gather":
            parts = list(self.output.chunk(len(self.ranks))) if self.me == self.root else None
            dist.gather(self.input, parts, root, group=self.group)
        elif self.op == "scatter":
            parts = list(self.input.chunk(len(self.ranks))) if self.me == self.root else None
            dist.scatter(self.output, parts, root, group=self.group)
        elif self.op == "barrier":
            dist.barrier(group=self.group)


def issue(steps):
    """One step, or one group call. PyTorch groups sends and receives; of other calls it has no public group call."""
    pairs = [step.point_to_point() for step in steps]
    if all(pair is not None for pair in pairs):
        for work in dist.batch_isend_irecv(pairs):
            work.wait()
        return
    for step in steps:
        pair = step.point_to_point()
        if pair is not None:
            pair.op(pair.tensor, pair.peer, group=pair.group).wait()
        else:
            step.run()


prepared = [Prepared(step) for step in STEPS[RANK]]
lanes = {step.stream for step in prepared}
# Waiting for work makes a stream of CUDA wait, not this program: what is on other streams goes on.
streams = {lane: torch.cuda.Stream() for lane in sorted(lanes)} if cuda else {}
at, ended = [0], [torch.cuda.Event() for _ in prepared] if cuda else []


def give_up(number):
    place = at[0]
    if cuda:
        waits = [i for i in range(min(place, len(prepared))) if not ended[i].query()]
        place = waits[0] if waits else place
    what = f"call {place + 1} of {len(prepared)}: {words(prepared[place].step)}" if place < len(prepared) else "the end of the pass"
    print(f"rank {RANK}: pass {number} hangs in {what}", file=sys.stderr, flush=True)
    os._exit(1)


for number in range(1, PASSES + 1):
    dist.barrier()
    watchdog = threading.Timer(TIMEOUT, give_up, (number,))
    watchdog.daemon = True
    watchdog.start()
    place = 0
    while place < len(prepared):
        at[0] = place
        last = place + 1
        while prepared[place].batch and last < len(prepared) and (prepared[last].batch, prepared[last].stream) == (prepared[place].batch, prepared[place].stream):
            last += 1
        if cuda:
            with torch.cuda.stream(streams[prepared[place].stream]):
                issue(prepared[place:last])
                for i in range(place, last):
                    ended[i].record()
        else:
            issue(prepared[place:last])
        place = last
    at[0] = len(prepared)
    if cuda:
        torch.cuda.synchronize()
    watchdog.cancel()
    if RANK == 0:
        print(f"pass {number} of {PASSES}: {len(prepared)} calls of rank 0 came through", flush=True)
dist.destroy_process_group()
)py";

std::string PyOperation(Operation operation) {
  std::string name(Name(operation));
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace

std::string ReproScript(const Plan& plan, std::string_view version, std::string_view name) {
  const Sequence sequence = SequenceOf(plan);
  std::string groups, calls, steps, of_rank = "{";
  for (const SequenceCommunicator& communicator : sequence.communicators)
    groups += fmt::format("    ({}, [{}]),\n", PyText(communicator.name), fmt::join(communicator.ranks, ", "));
  for (const Call& call : sequence.calls) {
    const bool is_barrier = call.operation == Operation::kBarrier;
    calls += fmt::format("    (\"{}\", {}, \"{}\", \"{}\", {}, {}, {}, {}),\n", PyOperation(call.operation),
                         is_barrier ? 1 : call.count, TorchType(call.datatype), TorchReduction(call.redop), call.root,
                         call.peer, Tuple(call.splits), call.in_place ? "True" : "False");
  }
  for (std::size_t rank = 0; rank < sequence.steps.size(); ++rank) {
    std::string own;
    for (const SequenceStep& step : sequence.steps[rank])
      own += fmt::format("{}({}, {}, {}, {})", own.empty() ? "" : ", ", step.communicator, step.call, step.stream,
                         step.batch);
    steps += fmt::format("    {}: [{}],\n", rank, own);
  }
  for (std::size_t rank = 0; rank < plan.places.size(); ++rank)
    if (!plan.places[rank].env.empty())
      of_rank += fmt::format("{}{}: {}", of_rank.size() > 1 ? ", " : "", rank, Settings(plan.places[rank].env));
  of_rank += "}";
  const std::size_t hosts = HostsOf(plan), ranks = static_cast<std::size_t>(plan.ranks.value);
  return fmt::format(fmt::runtime(kHead), fmt::arg("mark", kReproMark), fmt::arg("version", Remark(version)),
                     fmt::arg("ranks", ranks), fmt::arg("hosts", hosts),
                     fmt::arg("per_host", (ranks + hosts - 1) / hosts), fmt::arg("name", Remark(name)),
                     fmt::arg("remarks", Remarks(plan)), fmt::arg("settings", Settings(plan.env)),
                     fmt::arg("of_rank", of_rank), fmt::arg("groups", groups), fmt::arg("calls", calls),
                     fmt::arg("steps", steps)) +
         std::string(kBody);
}

Result<std::string> NcclTestsLines(const Plan& plan) {
  if (plan.sequence)
    return Error{"nccl-tests runs one operation on one communicator", "--export repro.py writes all of them down", ""};
  const ReplayOp& op = RowOf(plan.operation.value);
  const Call call = CallOf(plan);
  const bool is_barrier = call.operation == Operation::kBarrier;
  const std::string_view binary = is_barrier ? std::string_view("all_reduce_perf") : op.nccl_tests;
  if (binary.empty())
    return Error{fmt::format("nccl-tests has no {}", op.name), "--export repro.py writes it down", ""};
  const std::uint64_t bytes =
      is_barrier ? BytesOf(Datatype::kFloat32) : op.bandwidth_elements(call, plan.ranks.value) * BytesOf(call.datatype);
  const Datatype type = is_barrier ? Datatype::kFloat32 : call.datatype;
  const std::size_t ranks = static_cast<std::size_t>(plan.ranks.value), hosts = HostsOf(plan),
                    per_host = (ranks + hosts - 1) / hosts;
  std::string command =
      fmt::format("./build/{} -t 1 -g 1 -b {} -e {} -d {}", binary, bytes, bytes, RowOf(type).nccl_tests);
  if (op.needs_redop) command += fmt::format(" -o {}", Name(call.redop));
  if (op.needs_root && !op.needs_peer) command += fmt::format(" -r {}", call.root);
  command += fmt::format(" -w 1 -n {} -c 1", std::max(plan.iterations, 5));
  std::string exported, assigned;
  for (const auto& [name, value] : plan.env) {
    const std::string setting = ShellWord(name + "=" + value);
    exported += fmt::format(" -x {}", setting);
    assigned += fmt::format(" {}", setting);
  }
  std::string text = "# nccl-tests, built with MPI=1: one process a rank.\n" + Remarks(plan);
  if (is_barrier) text += "# A barrier of PyTorch is an all-reduce of one element.\n";
  if (call.operation == Operation::kSendRecv)
    text += "# sendrecv_perf sends from each rank to the next, and not between two alone.\n";
  if (!call.splits.empty()) text += "# alltoall_perf splits evenly; the job's splits were not even.\n";
  constexpr std::uint64_t kAligned = 16;
  const bool in_parts = op.bus_factor(4) == 0.75;  // the size is that of all ranks
  if (in_parts && bytes / ranks % kAligned != 0)
    text += fmt::format("# nccl-tests rounds each rank's part of {} bytes down to a multiple of {}.\n", bytes / ranks,
                        kAligned);
  for (std::size_t rank = 0; rank < plan.places.size(); ++rank)
    for (const auto& [name, value] : plan.places[rank].env)
      text += fmt::format("# Rank {} alone had {}.\n", rank, Remark(name + "=" + value));
  text += fmt::format("mpirun -np {} --map-by ppr:{}:node{} {}\n", ranks, per_host, exported, command);
  text += fmt::format("# or: srun --nodes={} --ntasks={} --ntasks-per-node={} --gpus-per-node={} --mpi=pmix env{} {}\n",
                      hosts, ranks, per_host, per_host, assigned, command);
  return text;
}

}  // namespace inquest
