"""scripts/gpu-check itself, over the fake libcuda, which LD_LIBRARY_PATH names, and the fake libnccl: every check, its order, its table, its bundle."""
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

script, inquest, library, gloo = sys.argv[1:4] + [sys.argv[4] == "1"]
place = tempfile.TemporaryDirectory()
home = pathlib.Path(place.name)


def run(*arguments, program=script):
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=300, env=os.environ | {"TMPDIR": place.name})


def rows(table):
    lines = [line.split("|") for line in table.read_text().splitlines() if line.startswith("|")]
    assert all(len(line) == 12 for line in lines), lines
    return [[cell.strip() for cell in line[1:-1]] for line in lines[2:]]


out = home / "out"
done = run("--inquest", inquest, "--nccl-lib", library, "--quick", "--out", str(out))
found = rows(out / "table.md")
mismatches = ["count-7", "count-200000", "root-1", "dtype-float64", "op-all-gather"]
wanted = ["one-rank", "duplicate-gpu", "broadcast-large", "all-reduce", "reduce", "all-gather", "reduce-scatter", "all-to-all", "gather", "scatter", "send-recv", "barrier",
          *(f"all-reduce-{kind}" for kind in ("int8", "uint64", "float16", "bfloat16", "float64", "avg", "float8e4m3")), "multi-rank-gpu", "never-enqueues", "never-joins", "late", "stopped", "killed",
          "corrupt", "abort-hangs", *(f"{kind}-{change}" for change in mismatches for kind in ("other", "unchecked")), "opposite-orders", "one-order", "connect-eagerly", "connect-lazily", "cpu-control"]
assert [row[0] for row in found] == wanted, found
unexpected = [row for row in found if row[3] != "yes" and (gloo or row[0] != "cpu-control")]
assert not unexpected and done.returncode == (0 if gloo else 1), (unexpected, done)
hung = next(row for row in found if row[0] == "never-enqueues")
assert "ras 3, proxy 3" in hung[8] and "Rank 2 did not enqueue #1" in hung[9], hung
with tarfile.open(out / "results.tar.gz") as archive:
    names = archive.getnames()
    assert "./table.md" in names and "./never-enqueues/result.json" in names and any("nccl.0.log" in name for name in names), names

# What is not as expected, or not run at all, shows.
assert run("--inquest", inquest, "--nccl-lib", library, "--quick", "--limit", "-1", "--out", str(home / "late")).returncode == 1
assert rows(home / "late" / "table.md")[0][2:4] == ["not run: -1 s are over", "NO"]
none = run("--inquest", inquest, "--nccl-lib", "/nowhere/libnccl.so.2", "--out", str(home / "none"))
assert none.returncode == 3 and "libnccl" in none.stderr, none

# A bundle runs without what is installed here, and can be carried.
bundle = home / "bundle"
made = run("--bundle", str(bundle), "--inquest", inquest)
assert made.returncode == 0, made
# A debug build is larger than what it carries.
own = sum(path.stat().st_size for path in (pathlib.Path(inquest), pathlib.Path(inquest).with_name("inquest-replay-worker")))
assert own > 32 << 20 or sum(path.stat().st_size for path in bundle.rglob("*")) < 64 << 20
assert not list(bundle.glob("lib/libc.so*")) and list(bundle.glob("lib/libfmt*"))
assert "--bundle" in run("--help", program=str(bundle / "gpu-check")).stdout
