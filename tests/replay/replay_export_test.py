"""What --export writes: a script that any Python takes and that makes the plan's calls, here on a torch that only
records them; and nccl-tests' command. What a log says can stand in neither as code."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

inquest = sys.argv[1]

TORCH = '''
import json, os, sys
calls = []
def record(*what):
    calls.append(list(what))
class Tensor:
    def __init__(self, n): self.n = int(n)
    def to(self, dtype): self.dtype = dtype; return self
    def chunk(self, n): return [Tensor(self.n // n) for _ in range(n)]
    def __getitem__(self, part): return Tensor(part.stop - part.start)
def ones(n, dtype=None, device=None): return Tensor(n)
class Device:
    def __init__(self, *of): self.of = of
device = Device
for name in ("int8", "uint8", "int32", "int64", "float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2"):
    globals()[name] = name
class Event:
    def record(self): record("event")
    def query(self): return True
class Stream: pass
class Within:
    def __init__(self, stream): self.stream = stream
    def __enter__(self): record("stream", id(self.stream))
    def __exit__(self, *_): pass
class cuda:
    Event, Stream = Event, Stream
    set_device = staticmethod(lambda device: None)
    stream = staticmethod(Within)
    synchronize = staticmethod(lambda: record("synchronize"))
'''
DISTRIBUTED = '''
import json, os
from torch import calls, record
class ReduceOp: SUM, PRODUCT, MAX, MIN, AVG = "SUM", "PRODUCT", "MAX", "MIN", "AVG"
class group: WORLD = "world"
class Work:
    def wait(self): pass
class P2POp:
    def __init__(self, op, tensor, peer, group): self.op, self.tensor, self.peer, self.group = op, tensor, peer, group
def init_process_group(backend, timeout=None): record("init", backend)
def new_group(ranks): return "group" + str(ranks)
def broadcast(t, root, group=None): record("broadcast", t.n, t.dtype, root, group)
def all_reduce(t, op=None, group=None): record("all_reduce", t.n, t.dtype, op, group)
def reduce(t, root, op=None, group=None): record("reduce", t.n, t.dtype, root, op, group)
def all_gather_into_tensor(out, t, group=None): record("all_gather", t.n, out.n, t.dtype, group)
def reduce_scatter_tensor(out, t, op=None, group=None): record("reduce_scatter", t.n, out.n, t.dtype, op, group)
def all_to_all_single(out, t, out_sizes=None, in_sizes=None, group=None): record("all_to_all", t.n, out.n, t.dtype, group)
def gather(t, parts, root, group=None): record("gather", t.n, parts and [p.n for p in parts], root, group)
def scatter(t, parts, root, group=None): record("scatter", t.n, parts and [p.n for p in parts], root, group)
def isend(t, peer, group=None): record("send", t.n, peer, group); return Work()
def irecv(t, peer, group=None): record("recv", t.n, peer, group); return Work()
def batch_isend_irecv(ops):
    record("batch", len(ops))
    return [op.op(op.tensor, op.peer, group=op.group) for op in ops]
def barrier(group=None): record("barrier", group)
def destroy_process_group():
    record("env", {k: v for k, v in os.environ.items() if k.startswith("NCCL_")})
    open(os.environ["RECORD"], "w").write(json.dumps(calls))
'''


def replay(*arguments, **options):
    return subprocess.run([inquest, "replay", *arguments], capture_output=True, text=True, timeout=60, **options)


def run(script, rank, world, folder, **env):
    out = folder / f"calls.{rank}.json"
    ran = subprocess.run([sys.executable, script], env={**os.environ, "PYTHONPATH": str(folder / "stub"), "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world),
                                                         "RECORD": str(out), **env}, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return json.loads(out.read_text())


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "stub" / "torch").mkdir(parents=True)
    (folder / "stub" / "torch" / "__init__.py").write_text(TORCH)
    (folder / "stub" / "torch" / "distributed.py").write_text(DISTRIBUTED)
    script = folder / "repro.py"

    # ---- every operation, as PyTorch has it ----
    rows = {
        "broadcast": (["--root", "2"], {0: ["broadcast", 12, "float32", 2, "world"]}),
        "all-reduce": (["--redop", "avg", "--dtype", "bfloat16"], {1: ["all_reduce", 12, "bfloat16", "AVG", "world"]}),
        "reduce": (["--root", "1", "--redop", "max"], {0: ["reduce", 12, "float32", 1, "MAX", "world"]}),
        "all-gather": ([], {2: ["all_gather", 12, 36, "float32", "world"]}),
        "reduce-scatter": (["--dtype", "float8e4m3"], {2: ["reduce_scatter", 36, 12, "float8_e4m3fn", "SUM", "world"]}),
        "all-to-all": (["--dtype", "uint32"], {1: ["all_to_all", 36, 36, "int32", "world"]}),
        "gather": (["--root", "1"], {0: ["gather", 12, None, 1, "world"], 1: ["gather", 12, [12, 12, 12], 1, "world"]}),
        "scatter": ([], {0: ["scatter", 12, [12, 12, 12], 0, "world"], 2: ["scatter", 12, None, 0, "world"]}),
        "send-recv": (["--root", "2", "--peer", "0"], {2: ["send", 12, 0, "world"], 0: ["recv", 12, 2, "world"], 1: None}),
        "barrier": ([], {0: ["barrier", "world"]}),
    }
    for op, (options, wanted) in rows.items():
        done = replay("--op", op, "--count", "12", "--ranks", "3", *options, "--export", script)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), (op, done)
        for rank, call in wanted.items():
            made = [c for c in run(script, rank, 3, folder) if c[0] not in ("init", "env", "event", "stream", "synchronize", "batch")]
            made = [c for c in made if c != ["barrier", None]]
            assert made == ([call] if call else []), (op, rank, made)
    calls = run(script, 0, 3, folder, PASSES="4", BACKEND="gloo")
    assert sum(c == ["barrier", "world"] for c in calls) == 4 and calls[0] == ["init", "gloo"], calls
    assert len(run(script, 0, 3, folder)) > 3 and f"torchrun --standalone --nproc-per-node 3 {script.name}" in script.read_text()

    # ---- a file that is no script of ours stays, one that is gives way ----
    other = folder / "train.py"
    other.write_text("print('mine')\n")
    refused = replay("--op", "barrier", "--ranks", "2", "--export", other)
    assert refused.returncode == 3 and other.read_text() == "print('mine')\n", refused
    log = folder / "job.py"
    log.write_text("NCCL\n")
    assert replay(log, "--op", "barrier", "--ranks", "2", "--export", log).returncode == 3 and log.read_text() == "NCCL\n"
    assert replay("--op", "barrier", "--ranks", "2", "--export", folder / "repro.sh").returncode == 3

    # ---- what a log says is data ----
    evil = "'; touch /tmp/owned #\"\"\"\\x\\"
    lines = []
    for rank in range(2):
        head = f"elm04:{5000 + rank}:{5060 + rank} [{rank}] NCCL INFO "
        lines.append(head + f"NCCL_ALGO set by environment to {evil}")
        for done in ("START", "COMPLETE"):
            lines.append(head + f"ncclCommInitRank comm 0x55d0c001{rank:02x}00 rank {rank} nranks 2 cudaDev {rank} nvmlDev {rank} busId {(0x1b + rank) << 12:x} commId 0x8f3d2ab4c1e90001 - Init {done}")
    for rank in range(2):
        lines.append(f"[rank{rank}]:[E1123 10:00:00.000000000 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=BROADCAST, "
                     f"NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.")
    job = folder / "a\nb é.log"
    job.write_text("\n".join(lines) + "\n")
    done = replay(job, "--export", script)
    assert done.returncode == 0, done.stderr
    env = run(script, 1, 2, folder)[-1][1]
    assert env["NCCL_ALGO"] == evil, env
    assert run(script, 1, 2, folder, NCCL_ALGO="Ring")[-1][1]["NCCL_ALGO"] == "Ring", "what is set already stays"
    shell = replay(job, "--export", "nccl-tests")
    assert shell.returncode == 0, shell.stderr
    command = [line for line in shell.stdout.splitlines() if line.startswith("mpirun")]
    assert len(command) == 1 and all(line.startswith(("#", "mpirun")) for line in shell.stdout.splitlines()), shell.stdout
    words = shlex.split(command[0])
    assert f"NCCL_ALGO={evil}" in words and words[words.index(f"NCCL_ALGO={evil}") - 1] == "-x", words
    assert not os.path.exists("/tmp/owned")

    # ---- a sequence: groups, the order of each rank, streams and group calls ----
    lines = []
    for number, ranks in ((1, [0, 1, 2]), (2, [0, 1])):
        for done in ("START", "COMPLETE"):
            for place, rank in enumerate(ranks):
                lines.append(f"elm04:{5000 + rank}:{5060 + rank} [{rank}] NCCL INFO ncclCommInitRank comm 0x55d0c0{number:02x}{rank:02x}00 rank {place} nranks {len(ranks)} cudaDev {rank} nvmlDev {rank} "
                             f"busId {(0x1b + rank) << 12:x} commId 0x8f3d2ab4c1e9{number:04x} - Init {done}")
    def logged(rank, number, op, root, op_count, stream):
        lines.append(f"elm04:{5000 + rank}:{5060 + rank} [{rank}] NCCL INFO {op}: opCount {op_count:x} sendbuff 0x7f00 recvbuff 0x7f00 count 96 datatype 7 op 0 root {root} "
                     f"comm 0x55d0c0{number:02x}{rank:02x}00 [nranks={3 if number == 1 else 2}] stream {stream:#x}")
    for rank in range(3):
        logged(rank, 1, "Recv", (rank + 2) % 3, 0, 0x10)
        logged(rank, 1, "Send", (rank + 1) % 3, 0, 0x10)
        if rank == 0:
            logged(rank, 2, "Broadcast", 1, 0, 0x20)
        logged(rank, 1, "AllReduce", 0, 1, 0x10)
        if rank == 1:
            logged(rank, 2, "Broadcast", 1, 0, 0x20)
    (folder / "calls.log").write_text("\n".join(lines) + "\n")
    done = replay(folder / "calls.log", "--last", "1", "--export", script)
    assert done.returncode == 0, done.stderr
    def ran(rank, **env):
        return [c for c in run(script, rank, 3, folder, **env) if c[0] not in ("init", "env", "event", "stream", "synchronize") and c != ["barrier", None]]
    assert ran(0) == [["batch", 2], ["recv", 96, 2, "world"], ["send", 96, 1, "world"], ["broadcast", 96, "float32", 1, "group[0, 1]"], ["all_reduce", 96, "float32", "SUM", "world"]], ran(0)
    assert ran(1)[3:] == [["all_reduce", 96, "float32", "SUM", "world"], ["broadcast", 96, "float32", 1, "group[0, 1]"]], ran(1)
    assert len(ran(2)) == 4 and len({c[1] for c in run(script, 0, 3, folder) if c[0] == "stream"}) == 2

    # ---- nccl-tests: sizes as it counts them ----
    for op, options, wanted in [
        ("all-reduce", ["--redop", "max", "--dtype", "float16"], "./build/all_reduce_perf -t 1 -g 1 -b 8192 -e 8192 -d half -o max"),
        ("broadcast", ["--root", "2"], "./build/broadcast_perf -t 1 -g 1 -b 16384 -e 16384 -d float -r 2"),
        ("reduce", ["--root", "1", "--redop", "avg"], "./build/reduce_perf -t 1 -g 1 -b 16384 -e 16384 -d float -o avg -r 1"),
        ("all-gather", [], "./build/all_gather_perf -t 1 -g 1 -b 65536 -e 65536 -d float"),
        ("reduce-scatter", ["--dtype", "float8e5m2"], "./build/reduce_scatter_perf -t 1 -g 1 -b 16384 -e 16384 -d f8e5m2 -o sum"),
        ("all-to-all", [], "./build/alltoall_perf -t 1 -g 1 -b 65536 -e 65536 -d float"),
        ("gather", ["--root", "3"], "./build/gather_perf -t 1 -g 1 -b 65536 -e 65536 -d float -r 3"),
        ("scatter", [], "./build/scatter_perf -t 1 -g 1 -b 65536 -e 65536 -d float -r 0"),
        ("send-recv", [], "./build/sendrecv_perf -t 1 -g 1 -b 16384 -e 16384 -d float"),
        ("barrier", [], "./build/all_reduce_perf -t 1 -g 1 -b 4 -e 4 -d float"),
    ]:
        printed = replay("--op", op, "--count", "4096", "--ranks", "4", *options, "--export", "nccl-tests").stdout
        assert f"mpirun -np 4 --map-by ppr:4:node {wanted} -w 1 -n 5 -c 1\n" in printed, (op, printed)
        assert re.search(r"^# or: srun --nodes=1 --ntasks=4 .*" + re.escape(wanted), printed, re.M), printed
    assert "rounds each rank's part of 20 bytes" in replay("--op", "all-gather", "--count", "5", "--ranks", "4", "--export", "nccl-tests").stdout
print("ok")
