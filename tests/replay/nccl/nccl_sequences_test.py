"""Sequences on the NCCL engine, with worker processes over the fake libcuda, which LD_LIBRARY_PATH names, and the fake
libnccl: a stream runs its kernels in order, and each blocks until all ranks have launched theirs.

Arguments: inquest, its worker beside it, the fake libnccl."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import schemas

program, library = sys.argv[1:3]
place = tempfile.TemporaryDirectory()
log = pathlib.Path(place.name) / "job.log"


def lines(communicators, calls):
    """`communicators`: ranks by number. `calls`: of each rank, (number, operation, root, opCount, stream)."""
    text = []
    for number, ranks in communicators.items():
        for done in ("START", "COMPLETE"):
            for at, rank in enumerate(ranks):
                text.append(f"elm04:{5000 + rank}:{5060 + rank} [{rank}] NCCL INFO ncclCommInitRank comm 0x55d0c0{number:02x}{rank:02x}00 rank {at} nranks {len(ranks)} cudaDev {rank} nvmlDev {rank} "
                            f"busId {(10 + rank) << 12:x} commId 0x8f3d2ab4c1e9{number:04x} - Init {done}")
    for rank, made in enumerate(calls):
        for number, op, root, op_count, stream in made:
            text.append(f"elm04:{5000 + rank}:{5060 + rank} [{rank}] NCCL INFO {op}: opCount {op_count:x} sendbuff 0x7f0000000000 recvbuff 0x7f0000000000 count 1000 datatype 7 op 0 root {root} "
                        f"comm 0x55d0c0{number:02x}{rank:02x}00 [nranks={len(communicators[number])}] stream {stream:#x}")
    return "\n".join(text) + "\n"


def document(communicators, calls, *arguments, status, **variables):
    log.write_text(lines(communicators, calls))
    done = subprocess.run([program, "replay", log, "--nccl-lib", library, "--timeout", "3", "--format", "json", *arguments], capture_output=True, text=True, timeout=120,
                          env=os.environ | {"TMPDIR": place.name} | variables)
    assert done.returncode == status, (done.returncode, done.stdout[-3000:], done.stderr)
    found = json.loads(done.stdout)
    schemas.validate(found, "replay")
    return found


def replay(*arguments, **named):
    return document(*arguments, **named)["trials"][0]


pair = {1: [0, 1], 2: [0, 1]}
a, b = (1, "AllReduce", 0, 0, 0x10), (2, "AllReduce", 0, 0, 0x10)
trial = replay(pair, [[a, b], [b, a]], "--last", "1", status=1)
assert trial["verdict"] == "hung" and trial["cycle"] == [0, 1], trial["sentence"]
assert trial["sentence"].startswith("Rank 0 waits in all-reduce #0 of comm 0x8f3d2ab4c1e90001 for rank 1, which waits in all-reduce #0 of comm 0x8f3d2ab4c1e90002 for rank 0: a cycle."), trial["sentence"]
assert [(w["rank"], w["step"], w["waits_for"]) for w in trial["waiting"]] == [(0, 1, [1]), (1, 1, [0])], trial["waiting"]
assert replay(pair, [[a, b], [a, b]], "--last", "1", "--iterations", "4", status=0)["verdict"] == "passed"
replay(pair, [[a, b], [b, a]], "--last", "1", "--streams", "own", status=0)
other = (2, "AllReduce", 0, 0, 0x20)
replay(pair, [[a, other], [other, a]], "--last", "1", status=0)

# Ranks that connect in first calls would wait for one another in those: each is made once before, in one order.
replay(pair, [[a, other], [other, a]], "--last", "1", status=0, FAKE_NCCL_LAZY="1")

# The last four of eight GPUs, where there are four: they run, and the plan says on which. Where there are fewer than ranks, nothing does.
last = {1: [4, 5, 6, 7]}
made = [[]] * 4 + [[(1, "AllReduce", 0, 0, 0x10)]] * 4
found = document(last, made, "--last", "1", status=0, FAKE_CUDA_DEVICES="4")
assert [place["options"]["device"] for place in found["plan"]["places"]] == ["0", "1", "2", "3"], found["plan"]["places"]
assert any("ranks 0-3 were on GPUs 4-7 in the job, and " in note and "has 4: GPUs 0-3 are taken in that order here" in note for note in found["plan"]["notes"]), found["plan"]["notes"]
found = document(last, made, "--last", "1", status=0)
assert [place["options"]["device"] for place in found["plan"]["places"]] == ["4", "5", "6", "7"], found["plan"]["places"]

# --isolate: the fewest ranks whose own calls break, and nobody where the order does.
found = document({1: [0, 1, 2, 3]}, [[(1, "AllReduce", 0, 0, 0x10)]] * 4, "--last", "1", "--isolate", "--timeout", "1", status=1, FAKE_NCCL_BAD_DEVICES="2")["isolation"]
assert "Rank 2 passes with no other rank" in found["finding"], found["finding"]
found = document(pair, [[a, b], [b, a]], "--last", "1", "--isolate", status=1)["isolation"]
assert found["finding"].startswith("Breaks 1 of 1, by what the ranks call and in which order") and "a cycle" in found["finding"] and not found["pairs"], found["finding"]

# The data of calls that all ask for alike is verified; of others, and where the driver has no compiler, that is said.
trial = replay(pair, [[a, b], [a, b]], "--last", "1", status=0)
assert trial["sentence"].endswith("passed on 2 ranks, data verified."), trial["sentence"]
trial = replay(pair, [[a, b], [a, b]], "--last", "1", status=0, FAKE_CUDA_JIT="221")
assert trial["sentence"].endswith("passed on 2 ranks, data not verified."), trial["sentence"]
assert any("the data of the sequence is not verified, since the driver cannot compile" in note for rank in trial["ranks"] for note in rank["notes"]), trial["ranks"][0]["notes"]
# Of each communicator: the warm-up, what is made once before, the first pass, the second.
trial = replay(pair, [[a, b], [a, b]], "--last", "1", "--iterations", "2", "--streams", "own", status=1, FAKE_NCCL_WRONG="1:3")
assert trial["verdict"] == "wrong-data" and trial["blamed"] == [{"rank": 1, "to": None}], trial["sentence"]
assert trial["sentence"].startswith("Rank 1 got wrong data out of all-reduce #0 of comm 0x8f3d2ab4c1e90001 (1000 float32, sum): element 0 is something else, not ") and "1 element is wrong" in trial["sentence"], trial["sentence"]

# A call that is missing, and one that is another.
trial = replay(pair, [[a, b], [a]], "--last", "1", status=1)
assert "Rank 1 never makes all-reduce #0 of comm 0x8f3d2ab4c1e90002, in which rank 0 waits; rank 1 is through." in trial["sentence"], trial["sentence"]
trial = replay(pair, [[a, b], [a, (2, "AllGather", 0, 0, 0x10)]], "--last", "1", status=0)
assert "passed on 2 ranks, data of 2 of the calls verified" in trial["sentence"], trial["sentence"]
assert "although not all do the same: Call #0 of comm 0x8f3d2ab4c1e90002 is not the same on all ranks" in trial["sentence"], trial["sentence"]

# Group calls: on one communicator a ring of sends and receives, which alone would hang where a send waits too.
three = {1: [0, 1, 2], 2: [1, 2]}
ring = [[(1, "Recv", (rank + 2) % 3, 0, 0x10), (1, "Send", (rank + 1) % 3, 0, 0x10), (1, "Broadcast", 2, 1, 0x10)] for rank in range(3)]
ring[1].append((2, "Reduce", 1, 0, 0x20))
ring[2].insert(0, (2, "Reduce", 1, 0, 0x20))
replay(three, ring, "--last", "2", "--iterations", "2", status=0)
alone = [[(1, "Recv", (rank + 1) % 2, 0, 0x10), (1, "Send", (rank + 1) % 2, 1, 0x10)] for rank in range(2)]
trial = replay({1: [0, 1]}, alone, "--last", "1", status=1)
assert trial["cycle"] == [0, 1], trial["sentence"]
print("ok")
