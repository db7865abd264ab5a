"""`inquest replay --engine nccl` whole, with worker processes over the fake libcuda, which LD_LIBRARY_PATH names, and the fake libnccl.

Arguments: inquest, its worker beside it, the fake libnccl, `runs` or `isolation`."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import processes
import schemas

program, library, part = sys.argv[1:4]
place = tempfile.TemporaryDirectory()
home = pathlib.Path(place.name)
tools = home / "tools"
tools.mkdir()


def run(*arguments, **variables):
    environment = os.environ | {"TMPDIR": place.name, "PATH": f"{tools}:{os.environ['PATH']}"} | variables
    return subprocess.run([program, "replay", "--nccl-lib", library, *arguments], capture_output=True, text=True, timeout=120, env=environment, preexec_fn=processes.dies_with_us)


def document(*arguments, **variables):
    done = run("--format", "json", *arguments, **variables)
    assert done.stdout, done
    found = json.loads(done.stdout)
    schemas.validate(found, "replay")
    return done.returncode, found


def tool(name, script):
    (tools / name).write_text("#!/bin/sh\n" + script)
    (tools / name).chmod(0o755)


call = ["--op", "all-reduce", "--count", "1000", "--ranks", "3"]
hang = ["--share-gpu", "--timeout", "2", "--fault", "2:hang@enqueued"]

if part == "isolation":
    # The path that breaks it, by what the library itself says of each run.
    status, isolated = document(*call, "--isolate", "--timeout", "1", FAKE_NCCL_NEEDS="NCCL_P2P_DISABLE=1")
    finding = isolated["isolation"]["finding"]
    assert status == 1 and "Ranks 0, 1 alone break, 0 of 3 with peer-to-peer off: the GPUs' peer-to-peer path." in finding, finding
    variants = {variant["id"]: variant for variant in isolated["isolation"]["variants"]}
    assert variants["p2p-off"]["used"] == ["SHM/direct/direct"] and variants["baseline"]["used"] == ["P2P/CUMEM"], variants
    # The part that breaks is a pair that sends to one another, which has neither algorithm nor protocol to choose.
    assert isolated["isolation"]["part"] == [0, 1] and not {"proto-ll", "proto-no-ll128", "algo-ring", "algo-tree"} & variants.keys(), variants.keys()
    status, ports = document("--op", "broadcast", "--count", "1000", "--ranks", "2", "--isolate", "--timeout", "1", NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1",
                             FAKE_NCCL_CARDS="mlx5_0:1,mlx5_1:1", FAKE_NCCL_NEEDS="NCCL_IB_HCA==mlx5_1:1")
    assert "It breaks with RDMA port mlx5_0:1 alone, and passes with mlx5_1:1 alone" in ports["isolation"]["finding"], ports["isolation"]["finding"]
    assert "algo-tree" not in {variant["id"] for variant in ports["isolation"]["variants"]}
    status, parts = document("--op", "gather", "--count", "10", "--ranks", "18", "--isolate", "--timeout", "2", FAKE_NCCL_BAD_DEVICES="11", FAKE_CUDA_DEVICES="18")
    assert "Rank 11 passes with no other rank" in parts["isolation"]["finding"], parts["isolation"]["finding"]
    # Bandwidths, of each RDMA port too, where the ranks have several.
    saved = home / "good.json"
    speeds = ["--ranks", "2", "--sizes", "8:4K"]
    status, measured = document(*speeds, "--save-baseline", str(saved), FAKE_NCCL_CARDS="mlx5_0:1,mlx5_1:1")
    assert status == 0 and measured["outcome"] == "passed" and measured["speeds"]["saved"] == str(saved), measured["speeds"]
    assert [(link["from"], link["to"], link["port"], len(link["samples"])) for link in measured["speeds"]["links"]] == [
        (0, 1, None, 4), (1, 0, None, 4), (0, 1, "mlx5_0:1", 1), (1, 0, "mlx5_0:1", 1), (0, 1, "mlx5_1:1", 1), (1, 0, "mlx5_1:1", 1)], measured["speeds"]["links"]
    # A baseline of a machine that was a thousand times as fast.
    before = json.loads(saved.read_text())
    for link in before["links"]:
        for sample in link["samples"]:
            sample["median_s"], sample["mad_s"] = sample["median_s"] / 1000, 0
    saved.write_text(json.dumps(before))
    status, compared = document(*speeds, "--baseline", str(saved), FAKE_NCCL_CARDS="mlx5_0:1,mlx5_1:1")
    assert status == 1 and compared["outcome"] == "slow" and "slower than it was" in compared["speeds"]["finding"], compared["speeds"]["finding"]
    sys.exit(0)

# A pass, and nothing that its log seems to say against it.
status, passed = document(*call)
trial = passed["trials"][0]
assert status == 0 and trial["verdict"] == "passed" and trial["used"] == ["P2P/CUMEM"], passed
assert trial["log_says"] is None and trial["dumps"] == {}, trial

# A small call comes through and the very one does not: told as a first call, with the same picture as any hang.
status, first = document("--op", "all-reduce", "--count", "100000", "--ranks", "3", "--timeout", "2", FAKE_NCCL_LARGEST="200000")
trial = first["trials"][0]
assert status == 1 and trial["verdict"] == "hung" and trial["sentence"].startswith("All 3 ranks wait in rehearsed, none came through within 2.0 s;"), trial["sentence"]
assert "That is the first call of this size, before any is measured: little data had come through" in trial["sentence"], trial["sentence"]
assert {"ras.rank0.json", "proxy.rank2.txt"} <= trial["dumps"].keys() and all(rank["threads"] for rank in trial["ranks"]) and trial["bandwidth"] is None, trial
status, first = document("--op", "all-reduce", "--count", "1000", "--ranks", "3", "--timeout", "2", FAKE_NCCL_LARGEST="2000")
assert "wait in warmed-up" in first["trials"][0]["sentence"] and "That is the first call of all, of little data" in first["trials"][0]["sentence"], first["trials"][0]["sentence"]

# What would make every call wait, or lead ranks elsewhere, does not reach them.
status, unmoved = document(*call, NCCL_COMM_BLOCKING="1", NCCL_COMM_ID="127.0.0.1:9", CUDA_LAUNCH_BLOCKING="1")
assert status == 0 and unmoved["trials"][0]["verdict"] == "passed", unmoved

# Each rank sees its own MIG instance. Before 2.32 NCCL takes those of one GPU for one: said before any rank asks it.
for more, variables, ranks in [([], {"FAKE_NCCL_VERSION": "23203"}, 3), (["--share-gpu"], {}, 5)]:
    status, parts = document(*call, *more, "--ranks", str(ranks), CUDA_VISIBLE_DEVICES="MIG-0a,MIG-0b,MIG-0c", **variables)
    assert status == 0, parts["trials"][0]["sentence"]
    for rank, own in enumerate(["MIG-0a", "MIG-0b", "MIG-0c", "MIG-0a", "MIG-0b"][:ranks]):
        assert any(f"GPU 0: Fake GPU {own} at" in line for line in parts["trials"][0]["ranks"][rank]["notes"]), parts["trials"][0]["ranks"][rank]
status, parts = document(*call, CUDA_VISIBLE_DEVICES="MIG-0a,MIG-0b,MIG-0c")
trial = parts["trials"][0]
assert status == 3 and trial["verdict"] == "could-not-run" and "ranks 0 and 1 are both on instances (MIG) of GPU 0000:0A:00.0, and NCCL 2.28.9 takes one rank of a host on each GPU, however it is divided" in trial["sentence"], trial["sentence"]
assert "--share-gpu" in trial["sentence"], trial["sentence"]

# 8-bit floats that this NCCL or this GPU has not could not run; those that both have pass.
floats = ["--op", "all-reduce", "--count", "1000", "--ranks", "3", "--dtype", "float8e4m3"]
for variables, says in [({"FAKE_NCCL_VERSION": "22304"}, "NCCL 2.23.4 has no float8e4m3"), ({"FAKE_CUDA_CAPABILITY": "80"}, "NCCL reduces float8e4m3 on GPUs of compute capability 9.0 and later")]:
    status, none = document(*floats, **variables)
    assert status == 3 and none["trials"][0]["verdict"] == "could-not-run" and says in none["trials"][0]["sentence"], none["trials"][0]["sentence"]
assert document(*floats)[0] == 0

# More ranks than GPUs, or MIG instances, are refused before a rank is started.
for variables in {"FAKE_CUDA_DEVICES": "2"}, {"CUDA_VISIBLE_DEVICES": "MIG-0a,MIG-0b", "FAKE_CUDA_DEVICES": "1"}:
    done = run(*call, **variables)
    assert done.returncode == 3 and "3 ranks are to run on" in done.stderr and "which has 2 GPUs" in done.stderr and "--ranks 2" in done.stderr and "--share-gpu" in done.stderr, done

# A mismatch is named before anything of the call is tried.
status, mismatch = document(*call, "--fault", "1:op=all-gather")
trial = mismatch["trials"][0]
assert trial["verdict"] == "call-mismatch", trial
assert all(phase["reached_s"] is None for rank in trial["ranks"] for phase in rank["phases"] if phase["phase"] in ("warmed-up", "rehearsed")), trial["ranks"]

# A hang: RAS of every rank, and what it says through our own analyzer; kept beside NCCL's logs.
tool("nvidia-smi", """case $1 in
  -q) echo '==============NVSMI LOG==============' ;;
  nvlink) n=$(cat "$TMPDIR/count" 2>/dev/null || echo 0); echo $((n + 5)) >"$TMPDIR/count"
          printf 'GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\\n\\t Link 0: Replay Errors: 0\\n\\t Link 0: CRC Errors: %s\\n' "$n" ;;
esac
""")
logs = home / "logs"
status, hung = document(*call, *hang, "--logs", str(logs))
trial = hung["trials"][0]
assert status == 1 and trial["verdict"] == "hung" and trial["blamed"] == [{"rank": 2, "to": None}], trial
for rank in range(3):
    assert '"collective_counts"' in trial["dumps"][f"ras.rank{rank}.json"], trial["dumps"]
    assert (logs / "run-1" / f"ras.rank{rank}.json").read_text() == trial["dumps"][f"ras.rank{rank}.json"]
    assert "ACTIVE OPS" in trial["dumps"][f"proxy.rank{rank}.txt"], trial["dumps"]
    assert trial["ranks"][rank]["signal"] is None and "ACTIVE OPS" not in (trial["ranks"][rank]["output"] or ""), trial["ranks"][rank]
assert "NVSMI LOG" in trial["dumps"]["nvidia-smi-q.txt"]
assert trial["log_says"].startswith("rank-absent: Rank 2 had launched fewer AllReduce operations"), trial["log_says"]
assert any("GPU 0 link 0 CRC Errors rose by 5" in note for note in trial["notes"]), trial["notes"]
text = run(*call, *hang).stdout
assert "ras.rank0.json (" in text and re.search(r"^proxy.rank0.txt$\n^  ACTIVE OPS$", text, re.M) and "FREE OPS" not in text and "Its log says rank-absent" in text, text

# Before NCCL has asked for it the signal ends nobody, and nothing is sent that we do not know.
status, early = document(*call, "--share-gpu", "--timeout", "2", "--fault", "2:hang@libs-loaded")
trial = early["trials"][0]
assert trial["verdict"] == "hung" and trial["ranks"][2]["signal"] is None and not trial["ranks"][2]["exit_code"], trial["ranks"][2]
assert "proxy.rank2.txt" not in trial["dumps"], trial["dumps"].keys()
status, other = document(*call, *hang, NCCL_PROXY_DUMP_SIGNAL="15")
assert other["trials"][0]["verdict"] == "hung" and not any(name.startswith("proxy.") for name in other["trials"][0]["dumps"]), other["trials"][0]

# An address of the user's stays, and is asked once.
status, hung = document(*call, *hang, NCCL_RAS_ADDR="127.0.0.1:29871")
assert sorted(name for name in hung["trials"][0]["dumps"] if name.startswith("ras.")) == ["ras.rank0.json"], hung["trials"][0]["notes"]
status, hung = document(*call, *hang, NCCL_RAS_ENABLE="0")
assert not any(name.startswith("ras.") for name in hung["trials"][0]["dumps"])

# An nvidia-smi that never ends is left, and that is said.
tool("nvidia-smi", "case $1 in -q) exec sleep 60 ;; esac\n")
status, hung = document(*call, *hang)
assert status == 1 and any("nvidia-smi -q could not be had: it did not end within" in note for note in hung["trials"][0]["notes"]), hung["trials"][0]["notes"]
assert hung["trials"][0]["took_s"] < 20
(tools / "nvidia-smi").unlink()

# Two ranks of one host on one GPU break nothing: they could not run. Where NCCL may take them it is asked, and its words are told.
status, twice = document(*call, "--share-gpu", NCCL_HOSTID="same")
assert status == 3 and twice["trials"][0]["verdict"] == "could-not-run" and "ranks 0 and 1 are both on GPU 0000:0A:00.0, and NCCL 2.28.9 takes one rank of a host on each GPU" in twice["trials"][0]["sentence"], twice["trials"][0]["sentence"]
status, twice = document(*call, "--share-gpu", NCCL_HOSTID="same", NCCL_MULTI_RANK_GPU_ENABLE="1")
assert status == 1 and twice["trials"][0]["verdict"] == "engine-error" and "invalid usage" in twice["trials"][0]["sentence"], twice["trials"][0]["sentence"]

# Killed while it runs, while it hangs, and while it takes the picture: no worker, no tool and no folder of its own stays.
tool("nvidia-smi", "case $1 in -q) exec sleep 61.25 ;; esac\n")
own = home / "killed"
own.mkdir()
for seconds in 0.3, 1.5, 3.5:
    killed = subprocess.Popen([program, "replay", "--nccl-lib", library, *call, *hang], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=processes.dies_with_us,
                              env=os.environ | {"TMPDIR": str(own), "PATH": f"{tools}:{os.environ['PATH']}"})
    time.sleep(seconds)
    workers = processes.workers_of(killed.pid)
    assert killed.poll() is None and len(workers) == 3, (seconds, killed.poll(), workers)
    if seconds > 3:
        assert processes.become(lambda: processes.running("sleep", "61.25")), "no picture is being taken"
    killed.kill()
    killed.wait()
    left = lambda: [pid for pid in workers if os.path.exists(f"/proc/{pid}")] + processes.running("sleep", "61.25") + [path.name for path in own.iterdir() if "inquest" in path.name]
    assert processes.become(lambda: not left()), (seconds, left())
(tools / "nvidia-smi").unlink()

# Two nodes: NCCL's logs of both are read on the first, and an agent's witnesses speak of its own ranks.
def two_nodes(*arguments):
    # Each is a host of its own for NCCL, whose first GPU it has.
    of_node = [os.environ | {"TMPDIR": place.name, "PATH": f"{tools}:{os.environ['PATH']}", "INQUEST_REPLAY_TOKEN": "a token of this test alone", "NCCL_HOSTID": f"node{node}"} for node in range(2)]
    words = [program, "replay", "--nccl-lib", library, "--op", "all-reduce", "--count", "1000", "--ranks", "2", "--nnodes", "2", "--master", "127.0.0.1:29587", "--format", "json", *arguments]
    second = subprocess.Popen([*words, "--node-rank", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=of_node[1], preexec_fn=processes.dies_with_us)
    first = subprocess.run([*words, "--node-rank", "0"], capture_output=True, text=True, timeout=120, env=of_node[0])
    out, err = second.communicate(timeout=20)
    assert out == "" and second.returncode == first.returncode, (first, err)
    found = json.loads(first.stdout)
    schemas.validate(found, "replay")
    return found["trials"][0]


logs = home / "two"
trial = two_nodes("--logs", str(logs))
assert trial["verdict"] == "passed" and trial["used"] and [rank["node"] for rank in trial["ranks"]] == [0, 1], trial
assert all("NCCL INFO" in (logs / "run-1" / f"nccl.{rank}.log").read_text() for rank in range(2))
trial = two_nodes("--timeout", "2", "--fault", "1:hang@enqueued")
assert trial["verdict"] == "hung" and "Rank 1 on node 1 (" in trial["sentence"], trial["sentence"]
