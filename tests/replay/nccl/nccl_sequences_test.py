"""Sequences on the NCCL engine, with worker processes over the fake libcuda, which LD_LIBRARY_PATH names, and the fake
libnccl: a stream runs its kernels in order, and each blocks until all ranks have launched theirs.

Arguments: inquest, its worker beside it, the fake libnccl."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

program, library = sys.argv[1:3]
schema = json.loads((pathlib.Path(__file__).resolve().parents[3] / "docs" / "replay.schema.json").read_text())
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


def replay(communicators, calls, *arguments, status):
    log.write_text(lines(communicators, calls))
    done = subprocess.run([program, "replay", log, "--nccl-lib", library, "--timeout", "3", "--format", "json", *arguments], capture_output=True, text=True, timeout=120,
                          env=os.environ | {"TMPDIR": place.name})
    assert done.returncode == status, (done.returncode, done.stdout[-3000:], done.stderr)
    found = json.loads(done.stdout)
    jsonschema.validate(found, schema)
    return found["trials"][0]


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

# A call that is missing, and one that is another.
trial = replay(pair, [[a, b], [a]], "--last", "1", status=1)
assert "Rank 1 never makes all-reduce #0 of comm 0x8f3d2ab4c1e90002, in which rank 0 waits; rank 1 is through." in trial["sentence"], trial["sentence"]
trial = replay(pair, [[a, b], [a, (2, "AllGather", 0, 0, 0x10)]], "--last", "1", status=0)
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
