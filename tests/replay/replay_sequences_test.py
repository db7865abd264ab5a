"""The last calls of several communicators, from real text to the real worker: what hung as the job made it hangs again
and is named, and the same calls in one order pass."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import processes
import schemas

inquest = sys.argv[1]
if sys.argv[2] == "0":
    sys.exit(77)


class Job:
    """Lines as NCCL 2.21 prints them, of one host."""

    def __init__(self):
        self.lines, self.op_count = [], {}

    def nccl(self, rank, text):
        self.lines.append(f"elm04:{5000 + rank}:{5060 + rank} [{rank}] NCCL INFO {text}")
        return self

    def comm(self, number, ranks):
        for done in ("START", "COMPLETE"):
            for place, rank in enumerate(ranks):
                self.nccl(rank, f"ncclCommInitRank comm 0x55d0c0{number:02x}{rank:02x}00 rank {place} nranks {len(ranks)} cudaDev {rank} nvmlDev {rank} "
                                f"busId {(0x1b + 4 * rank) << 12:x} commId 0x8f3d2ab4c1e9{number:04x} - Init {done}")
        return self

    def call(self, rank, number, op="AllReduce", count=64, dtype=7, redop=0, root=0, nranks=2, stream=0x55d0bf0000, op_count=None):
        at = self.op_count.get((rank, number), 0) if op_count is None else op_count
        self.op_count[rank, number] = at + 1
        return self.nccl(rank, f"{op}: opCount {at:x} sendbuff 0x7f0000000000 recvbuff 0x7f0000000000 count {count} datatype {dtype} op {redop} root {root} "
                               f"comm 0x55d0c0{number:02x}{rank:02x}00 [nranks={nranks}] stream {stream:#x}")


def two(*orders, streams=None):
    """Two communicators of ranks 0 and 1: what each rank calls, as a string of their letters."""
    job = Job().comm(1, [0, 1]).comm(2, [0, 1])
    for _ in range(3):
        for rank in (0, 1):
            job.call(rank, 1).call(rank, 2)
    for rank, order in enumerate(orders):
        for letter in order:
            number = "ab".index(letter) + 1
            job.call(rank, number, count=1000 + number, stream=0x55d0bf0000 + (0x100 * number if streams else 0))
    return job


def recorder(rank, groups, calls, version="2.9"):
    """A Flight Recorder dump as PyTorch 2.6 writes it: (group, op, seq, elements, state)."""
    entries = [{"frames": [{"name": "step", "filename": "train.py", "line": 10 + i}], "record_id": i, "pg_id": int(g), "process_group": [g, f"pg{g}"], "collective_seq_id": seq, "p2p_seq_id": 0,
                "op_id": i, "profiling_name": f"nccl:{op}", "time_created_ns": 1_700_000_000_000_000_000 + i * 1_000_000, "input_sizes": [[n]], "input_dtypes": ["Float"],
                "output_sizes": [[n]], "output_dtypes": ["Float"], "state": state, "time_discovered_started_ns": None, "time_discovered_completed_ns": None, "retired": state == "completed",
                "timeout_ms": 600000, "is_p2p": False} for i, (g, op, seq, n, state) in enumerate(calls)]
    return json.dumps({"version": version, "pg_config": {g: {"name": g, "desc": f"pg{g}", "ranks": json.dumps(ranks)} for g, ranks in groups.items()},
                       "pg_status": {g: {"last_enqueued_collective": max([c[2] for c in calls if c[0] == g], default=-1), "last_started_collective": -1,
                                         "last_completed_collective": max([c[2] for c in calls if c[0] == g and c[4] == "completed"], default=-1)} for g in groups},
                       "entries": entries})


folder = pathlib.Path(tempfile.mkdtemp())


def replay(*arguments, status, timeout="3"):
    ran = subprocess.run([inquest, "replay", *arguments, "--engine", "gloo", "--timeout", timeout, "--format", "json"], capture_output=True, text=True, timeout=120, cwd=folder)
    assert ran.returncode == status, (ran.returncode, ran.stdout[-3000:], ran.stderr)
    document = json.loads(ran.stdout)
    schemas.validate(document, "replay")
    return document


def of(job, *arguments, status, **options):
    path = folder / "job.log"
    path.write_text("\n".join(job.lines) + "\n")
    return replay(path, *arguments, status=status, **options)


def order(document):
    return [[(step["communicator"], step["number"], step["stream"]) for step in rank] for rank in document["plan"]["sequence"]["ranks"]]


try:
    # ---- opposite orders ----
    document = of(two("ab", "ba"), "--last", "1", status=1)
    trial = document["trials"][0]
    assert order(document) == [[(0, 3, 0), (1, 3, 0)], [(1, 3, 0), (0, 3, 0)]], order(document)
    assert trial["verdict"] == "hung" and trial["cycle"] == [0, 1], trial["sentence"]
    assert trial["sentence"].startswith("Rank 0 waits in all-reduce #3 of comm 0x8f3d2ab4c1e90001 for rank 1, which waits in all-reduce #3 of comm 0x8f3d2ab4c1e90002 for rank 0: a cycle."), trial["sentence"]
    assert [(w["rank"], w["step"], w["waits_for"]) for w in trial["waiting"]] == [(0, 1, [1]), (1, 1, [0])], trial["waiting"]
    assert trial["waiting"][0]["line"] == len(two("ab", "ba").lines) - 3 and trial["waiting"][0]["source"].endswith("job.log"), trial["waiting"]

    # ---- the same order; and each communicator on a stream of its own ----
    document = of(two("ab", "ab"), "--last", "2", "--iterations", "5", status=0)
    assert document["trials"][0]["verdict"] == "passed" and len(order(document)[0]) == 4
    document = of(two("ab", "ba"), "--last", "1", "--streams", "own", status=0)
    assert order(document) == [[(0, 3, 0), (1, 3, 1)], [(1, 3, 0), (0, 3, 1)]]
    document = of(two("ab", "ba", streams=True), "--last", "1", status=0)
    assert len({stream for _, _, stream in order(document)[0]}) == 2
    assert of(two("ab", "ba", streams=True), "--last", "1", "--streams", "one", status=1)["trials"][0]["cycle"] == [0, 1]

    # ---- whose fault it is: nobody's, where the order is the cause ----
    isolation = of(two("ab", "ba"), "--last", "1", "--isolate", status=1, timeout="2")["isolation"]
    assert isolation["finding"].startswith("Breaks 1 of 1, by what the ranks call and in which order") and isolation["pairs"] == [] and isolation["deadlines"] == 1, isolation
    isolation = of(two("ab", "ab"), "--last", "1", "--isolate", status=0)["isolation"]
    assert isolation["finding"].startswith("Passes 5 of 5: the machines can do these calls in this order now."), isolation

    # ---- three ranks in a ring of three communicators ----
    job = Job().comm(1, [0, 1]).comm(2, [1, 2]).comm(3, [0, 2])
    for rank, calls in enumerate(([1, 3], [2, 1], [3, 2])):
        for number in calls:
            job.call(rank, number)
    trial = of(job, "--last", "1", status=1)["trials"][0]
    assert sorted(trial["cycle"]) == [0, 1, 2] and trial["sentence"].count("which waits in") == 2, trial["sentence"]

    # ---- a call that one rank never makes ----
    trial = of(two("aab", "ab"), "--last", "1", status=1)["trials"][0]
    assert trial["cycle"] == [] and trial["blamed"] == [{"rank": 1, "to": None}], trial["sentence"]
    assert "never makes all-reduce #4 of comm 0x8f3d2ab4c1e90001" in trial["sentence"], trial["sentence"]

    # ---- what is not the same on all is made as it was, and named ----
    job = two("ab", "a")
    job.call(1, 2, op="Broadcast", count=1002)
    document = of(job, "--last", "1", status=1)
    trial = document["trials"][0]
    wanted = "Call #3 of comm 0x8f3d2ab4c1e90002 is not the same on all ranks: rank 0 all-reduce of 1002 float32, sum, rank 1 broadcast of 1002 float32, root 0."
    assert wanted in trial["sentence"] and trial["blamed"] == [{"rank": 1, "to": None}], trial["sentence"]
    assert document["plan"]["sequence"]["differences"] == [wanted]
    job = two("ab", "a")
    job.call(1, 2, count=7)
    trial = of(job, "--last", "1", status=1)["trials"][0]
    assert trial["verdict"] in ("rank-died", "hung", "engine-error", "wrong-data") and "Call #3 of comm 0x8f3d2ab4c1e90002 is not the same" in trial["sentence"], trial["sentence"]

    # ---- group calls: a ring of sends and receives, which would hang one after the other ----
    ring = Job().comm(1, [0, 1, 2])
    for rank in range(3):
        ring.call(rank, 1, op="Recv", root=(rank - 1) % 3, nranks=3, op_count=0).call(rank, 1, op="Send", root=(rank + 1) % 3, nranks=3, op_count=0)
        ring.call(rank, 1, nranks=3, op_count=1)
    document = of(ring, "--last", "1", status=0)
    assert all(rank[0]["group_call"] == rank[1]["group_call"] == 1 and rank[2]["group_call"] is None for rank in document["plan"]["sequence"]["ranks"]), document["plan"]["sequence"]["ranks"]
    alone = Job().comm(1, [0, 1])
    for rank in range(2):
        alone.call(rank, 1, op="Recv", root=1 - rank, op_count=0).call(rank, 1, op="Send", root=1 - rank, op_count=1)
    trial = of(alone, "--last", "1", status=1)["trials"][0]
    assert trial["cycle"] == [0, 1] and "send from rank 1 to rank 0 #1" in trial["sentence"], trial["sentence"]

    # ---- every operation ----
    job = Job().comm(1, [0, 1, 2])
    for rank in range(3):
        for op, root in (("AllReduce", 0), ("Broadcast", 2), ("Reduce", 1), ("AllGather", 0), ("ReduceScatter", 0)):
            job.call(rank, 1, op=op, root=root, nranks=3, count=96, redop=0)
    document = of(job, "--last", "5", "--iterations", "3", status=0)
    assert len(document["plan"]["sequence"]["ranks"][2]) == 5

    # ---- recorders' dumps ----
    dumps = folder / "dumps"
    dumps.mkdir()
    groups = {"0": [0, 1, 2], "1": [0, 1]}
    def dump(orders):
        for rank, calls in enumerate(orders):
            (dumps / f"nccl_trace_rank_{rank}").write_text(recorder(rank, groups, calls))
    done = [("0", "all_reduce", 1, 64, "completed")]
    last = {"a": ("0", "all_reduce", 2, 100, "scheduled"), "b": ("1", "all_reduce", 1, 200, "scheduled")}
    dump([done + [last["b"], last["a"]], done + [last["a"], last["b"]], done + [last["a"]]])
    document = replay(dumps, "--last", "1", status=1)
    trial = document["trials"][0]
    assert sorted(trial["cycle"]) == [0, 1] and "all-reduce #2 of group 0 (pg0)" in trial["sentence"], trial["sentence"]
    dump([done + [last["a"], last["b"]], done + [last["a"], last["b"]], done + [last["a"]]])
    replay(dumps, "--last", "1", status=0)
    dump([done + [last["a"], last["b"]], done + [last["b"]], done + [last["a"]]])
    trial = replay(dumps, "--last", "1", status=1)["trials"][0]
    assert "never makes all-reduce #2 of group 0 (pg0)" in trial["sentence"] and trial["blamed"] == [{"rank": 1, "to": None}], trial["sentence"]
    (dumps / "nccl_trace_rank_1").unlink()
    ran = subprocess.run([inquest, "replay", dumps, "--last", "1", "--engine", "gloo"], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 3 and "nothing shows the calls of rank 1 of group" in ran.stderr, ran

    # ---- again and again ----
    good, bad = folder / "good.log", folder / "bad.log"
    good.write_text("\n".join(two("ab", "ab").lines) + "\n")
    bad.write_text("\n".join(two("ab", "ba").lines) + "\n")
    document = replay(bad, "--last", "1", "--until-fails", "--state", "bad.json", status=1, timeout="1")
    soak = document["soak"]
    assert (soak["iterations"], soak["failed"], soak["first_failed"], soak["verdicts"]) == (1, 1, 1, {"hung": 1}), soak
    document = replay(good, "--last", "1", "--for", "2s", "--iterations", "10", "--state", "good.json", status=0)
    soak = document["soak"]
    assert soak["failed"] == 0 and soak["iterations"] >= 20 and soak["low"] == 0 and 0 < soak["high"] < 0.2 and soak["time_s"] >= 2 and not soak["resumed"], soak
    # An interrupt keeps what was counted; the same command goes on, another is refused.
    command = [inquest, "replay", good, "--last", "1", "--engine", "gloo", "--for", "4s", "--state", "kept.json", "--format", "json"]
    running = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, preexec_fn=processes.dies_with_us)
    for _ in range(200):
        time.sleep(0.05)
        if (folder / "kept.json").exists() and json.loads((folder / "kept.json").read_text())["passed"] >= 2:
            break
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=30)
    assert running.returncode == 2 and json.loads(out)["soak"]["interrupted"], (running.returncode, out[-500:])
    before = json.loads((folder / "kept.json").read_text())
    refused = subprocess.run([inquest, "replay", bad, *command[3:]], cwd=folder, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 3 and "state of another replay" in refused.stderr, refused
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    soak = json.loads(ran.stdout)["soak"]
    assert ran.returncode == 0 and soak["resumed"] and soak["iterations"] > before["passed"] and 4 <= soak["time_s"] < 8, (ran, before)
    assert json.loads((folder / "kept.json").read_text())["over"] is True

    # ---- said beforehand, and written down for others ----
    text = subprocess.run([inquest, "replay", bad, "--last", "1", "--dry-run", "--engine", "gloo"], capture_output=True, text=True, timeout=60)
    assert text.returncode == 0 and "rank 0 calls all-reduce #3 of comm 0x8f3d2ab4c1e90001; all-reduce #3 of comm 0x8f3d2ab4c1e90002;" in " ".join(text.stdout.split()), text
    script = folder / "repro.py"
    assert subprocess.run([inquest, "replay", bad, "--last", "1", "--export", script], timeout=60).returncode == 0
    compile(script.read_text(), "repro.py", "exec")
    assert "    0: [(0, 0, 0, 0), (1, 1, 0, 0)],\n    1: [(1, 1, 0, 0), (0, 0, 0, 0)],\n" in script.read_text()
    refused = subprocess.run([inquest, "replay", bad, "--last", "1", "--export", "nccl-tests"], capture_output=True, text=True, timeout=60)
    assert refused.returncode == 3 and "one operation on one communicator" in refused.stderr, refused
    for arguments in (["--last", "0"], ["--last", "2", "--op", "barrier"], ["--until-fails", "--isolate"], ["--last", "1", "--fault", "1:count=5"], ["--last", "1", "--fault", "1:corrupt"]):
        assert subprocess.run([inquest, "replay", bad, *arguments, "--engine", "gloo"], capture_output=True, timeout=60).returncode == 3, arguments
finally:
    subprocess.run(["rm", "-rf", folder])
print("ok")
