"""`inquest replay` as a user calls it: exit status, text, and JSON against its schema."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import schemas

inquest, gloo = sys.argv[1], sys.argv[2] == "1"
call = ["--op", "broadcast", "--count", "1000", "--ranks", "3"]


def run(*arguments):
    engine = () if "--engine" in arguments else ("--engine", "gloo")
    return subprocess.run([inquest, "replay", *engine, *arguments], capture_output=True, text=True, timeout=120)


def document(*arguments):
    done = run("--format", "json", *arguments)
    found = json.loads(done.stdout)
    schemas.validate(found, "replay")
    return done.returncode, found


def could_not_run(*arguments, says):
    done = run(*arguments)
    assert done.returncode == 3 and done.stdout == "" and says in done.stderr, (arguments, done)


status, plan = document(*call, "--dry-run")
assert status == 0 and plan["outcome"] == "dry-run" and plan["trials"] == []
assert plan["plan"]["count"]["basis"] == "given" and plan["plan"]["dtype"]["basis"] == "assumed"
assert plan["plan"]["redop"] is None
assert plan["nccl_tests"] == "timeout 60 ./build/broadcast_perf -g 3 -b 4000 -e 4000 -d float -r 0 -w 1 -n 5"
text = run(*call, "--dry-run").stdout
assert "assumed: the commonest" in text and "given by --count" in text, text

could_not_run(says="--op, --count and --ranks")
could_not_run("--op", "broadcast", "--ranks", "3", says="the number of elements is not known")
could_not_run("--op", "broadcast", "--count", "3", says="number of ranks")
could_not_run(*call, "--root", "3", says="root 3 is none of 3 ranks")
could_not_run(*call, "--timeout", "soon", says="--timeout")
could_not_run(*call, "--fault", "9:hang", says="bad fault")
could_not_run(*call, "--fault", "1:dance", says="bad fault")

# The arguments come from a log, or from the verdict that it gives; both say from which line.
with tempfile.TemporaryDirectory() as folder:
    log = pathlib.Path(folder) / "job.log"
    log.write_text("".join(f"[E ProcessGroupNCCL.cpp:523] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=BROADCAST, "
                           f"NumelIn=5000, NumelOut=5000, Timeout(ms)=600000) ran for 60041{rank} milliseconds before timing out.\n" for rank in range(3)) + "args: world_size=3\n")
    verdict = pathlib.Path(folder) / "verdict.json"
    verdict.write_text(subprocess.run([inquest, "--format", "json", str(log)], capture_output=True, text=True, timeout=120).stdout)
    for path in log, verdict:
        status, plan = document(str(path), "--dry-run")
        count = plan["plan"]["count"]
        assert status == 0 and (count["value"], count["basis"], count["source"], count["line"]) == (5000, "observed", str(log), 1), plan
        assert plan["plan"]["root"]["tried"] == [0, 1, 2] and plan["plan"]["ranks"]["value"] == 3, plan
    status, plan = document(str(log), "--dry-run", "--root", "1", "--dtype", "bfloat16")
    assert plan["plan"]["root"] | {"rule": None} == {"value": 1, "basis": "given", "rule": None, "source": None, "line": None, "tried": []}, plan
    if gloo:
        status, tried = document(str(log), "--dtype", "float32")
        assert status == 0 and [trial["call"][-1] for trial in tried["trials"]] == ["0", "1", "2"], tried
        assert tried["conclusion"] == "It did not come back with any of 3 combinations of what is assumed.", tried
        # A table first; then the picture of the first that broke alone, or of all.
        text = run(str(log), "--dtype", "float32").stdout
        assert text.startswith("It did not come back with any of 3") and re.search(r"^  root +verdict +time +bus GB/s\n(  [012] +passed +[\d.]+ ms +[\d.]+\n){3}", text, re.M), text
        assert "PASSED" not in text and "Seconds until" not in text, text
        text = run(str(log), "--dtype", "float32", "--fault", "1:root=1").stdout
        assert text.startswith("2 of 3 combinations of what is assumed did not pass.") and text.count("REPRODUCED") == 1 and "PASSED" not in text, text
        text = run(str(log), "--dtype", "float32", "--fault", "1:root=1", "--verbose").stdout
        assert text.count("REPRODUCED") == 2 and text.count("PASSED") == 1, text
        status, one = document(str(log), "--dtype", "float32", "--root", "0")
        assert one["conclusion"] == "It did not come back with the observed arguments.", one["conclusion"]
    log.write_text("nothing of the kind\n")
    could_not_run(str(log), says="speak of no collective")
    could_not_run(folder + "/nowhere", says="nowhere")

# Without NCCL the engine says so, and names the way out.
done = run(*call, "--engine", "nccl", "--nccl-lib", "/nowhere/libnccl.so.2")
assert done.returncode == 3 and done.stdout == "" and re.search("libnccl|libcuda.so.1", done.stderr) and re.search("--nccl-lib|--engine gloo", done.stderr), done

# The active Python environment's libnccl comes before the system's, and after the one that is named.
with tempfile.TemporaryDirectory() as folder:
    library = pathlib.Path(folder) / "lib" / "python3.11" / "site-packages" / "nvidia" / "nccl" / "lib" / "libnccl.so.2"
    library.parent.mkdir(parents=True)
    library.touch()
    for variable, engine, named, wanted in (("VIRTUAL_ENV", "nccl", [], str(library)), ("CONDA_PREFIX", "nccl", [], str(library)), ("VIRTUAL_ENV", "gloo", [], None),
                                            ("VIRTUAL_ENV", "nccl", ["--nccl-lib", "/other.so"], "/other.so"), ("OTHER_ENV", "nccl", [], None)):
        environment = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "CONDA_PREFIX")} | {variable: folder}
        done = subprocess.run([inquest, "replay", "--engine", engine, "--format", "json", "--dry-run", *call, *named], capture_output=True, text=True, timeout=120, env=environment)
        assert json.loads(done.stdout)["plan"]["options"].get("library") == wanted, (variable, engine, done)

if not gloo:
    could_not_run(*call, says="libgloo-dev")
    sys.exit(0)

done = run(*call)
assert done.returncode == 0 and done.stdout.startswith("PASSED"), done
assert "not NVLink" in done.stdout and "bus bandwidth" in done.stdout
could_not_run(*call, "--interface", "nosuch0", says="nosuch0")

status, passed = document(*call, "--iterations", "3")
assert status == 0 and passed["outcome"] == "passed"
assert passed["conclusion"] is None
assert all(len(rank["times_s"]) == 3 for rank in passed["trials"][0]["ranks"])
assert passed["trials"][0]["bandwidth"]["bytes"] == 4000
# The first iteration stands apart.
slowest = [max(rank["times_s"][i] for rank in passed["trials"][0]["ranks"]) for i in range(3)]
told = passed["trials"][0]["bandwidth"]
assert told["first_s"] == slowest[0] and told["best_s"] == min(slowest[1:]) and abs(told["mean_s"] - sum(slowest[1:]) / 2) < 2e-6, (told, slowest)
assert "; the first, apart, " in run(*call, "--iterations", "2").stdout and "apart" not in done.stdout

status, hung = document(*call, "--timeout", "2", "--fault", "2:hang@enqueued")
trial = hung["trials"][0]
assert status == 1 and hung["outcome"] == "reproduced" and trial["verdict"] == "hung"
assert trial["blamed"] == [{"rank": 2, "to": None}]
assert trial["decided_s"] - trial["event_s"] < 2
picture = run(*call, "--timeout", "2", "--fault", "2:hang@enqueued").stdout
assert re.search(r"^ +2( +\d+\.\d\d){9}( +-){5}  1$", picture, re.M), picture

status, wrong = document(*call, "--fault", "1:corrupt")
assert status == 1 and wrong["trials"][0]["ranks"][1]["wrong_data"]["elements"] == 1

# Who breaks it, in text and JSON.
status, isolated = document("--op", "all-reduce", "--count", "1000", "--ranks", "4", "--isolate", "--timeout", "1", "--fault", "2:hang@completed")
found = isolated["isolation"]
assert status == 1 and isolated["outcome"] == "reproduced" and "Rank 2 passes with no other rank" in found["finding"], found["finding"]
assert {tuple(pair["ranks"]): pair["state"] for pair in found["pairs"]} | {(0, 1): "passed", (0, 3): "passed", (1, 3): "passed"} == {
    tuple(pair["ranks"]): pair["state"] for pair in found["pairs"]} and len(found["pairs"]) == 6, found["pairs"]
assert all(pair["state"] != "passed" for pair in found["pairs"] if 2 in pair["ranks"]) and 2 in found["part"], found
assert found["named_s"] <= found["took_s"] and found["deadlines"] >= 2, found
assert run(*call, "--isolate").stdout.startswith("Passes 5 of 5")

# Bandwidths: kept, and held against what is kept.
with tempfile.TemporaryDirectory() as folder:
    good = pathlib.Path(folder) / "good.json"
    speeds = ["--ranks", "3", "--sizes", "4K:64K"]
    status, kept = document(*speeds, "--save-baseline", str(good))
    assert status == 0 and kept["outcome"] == "passed" and kept["speeds"]["saved"] == str(good) and kept["speeds"]["baseline"] is None, kept["speeds"]
    assert [(link["from"], link["to"]) for link in kept["speeds"]["links"]] == [(a, b) for a in range(3) for b in range(3) if a != b]
    assert all([sample["bytes"] for sample in link["samples"]] == [4096, 65536] for link in kept["speeds"]["links"])
    before = json.loads(good.read_text())
    for link in before["links"]:
        for sample in link["samples"]:
            sample["median_s"], sample["mad_s"] = (sample["median_s"] / 1000, 0) if (link["from"], link["to"]) == (2, 0) else (sample["median_s"] * 1000, 0)
    good.write_text(json.dumps(before))
    status, slow = document(*speeds, "--baseline", str(good))  # a thousand times slower: no noise reaches that far
    assert status == 1 and slow["outcome"] == "slow" and slow["speeds"]["finding"].startswith("Link 2->0 is slower than it was: "), slow["speeds"]["finding"]
    assert [(link["from"], link["to"]) for link in slow["speeds"]["links"] if link["slow"]] == [(2, 0)]
    text = run(*speeds, "--baseline", str(good)).stdout
    assert re.search(r"^  2->0 +65\.5 kB +[\d.e+-]+ +[\d.e+-]+$", text, re.M) and "GB/s at 65.5 kB, from row to column" in text, text
    # With an isolation, behind a baseline that passes.
    status, both = document(*call, "--isolate", "--sizes", "4K:4K", "--save-baseline", str(good))
    assert status == 0 and both["isolation"]["finding"].startswith("Passes 5 of 5") and len(both["speeds"]["links"]) == 6, both["speeds"]
    could_not_run("--ranks", "2", "--baseline", str(good), says="the baseline is of 3 ranks, and these are 2")
    good.write_text("{}")
    could_not_run(*speeds, "--baseline", str(good), says="this is no baseline")
    could_not_run(*speeds, "--baseline", folder + "/nowhere.json", says="nowhere.json: the baseline cannot be read")
    could_not_run("--ranks", "3", "--baseline", str(good), "--sizes", "8", says="--sizes")
    status, unwritten = document(*speeds, "--save-baseline", folder + "/nowhere/good.json")
    assert status == 0 and "could not be written" in unwritten["speeds"]["notes"][0], unwritten["speeds"]["notes"]
