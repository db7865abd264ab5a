#!/usr/bin/env python3
"""What changes a log on its way to us must not change the verdict: every case under every transformation.

transformed.py BINARY CASES_DIR [--only NAME,..] [--every N] [--verbose] [--check]

A verdict is `wrong` if it names another cause, or a rank or a host that the untouched case does not name; `lost` if it
became unknown or healthy, or lost its culprits. --every N takes one case of N, others for
each transformation and the same when cases are added; --check fails where a bound below is not kept.
"""

import argparse
import itertools
import json
import pathlib
import random
import re
import sys
import threading
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from judged import copy_case, files_of, judge_all, write_files  # noqa: E402
from transformations import COLLECTED, HOST, POD, TRANSFORMATIONS  # noqa: E402

# Of a hundred verdicts, how many may be wrong and how many lost, and one more; of a sample, two. The few that there are do
# not hurt: times that a collector adds contradict what the log itself says of durations.
WRONG, LOST = 1.0, 3.0
# What a job prints in between can speak against what was last heard of a rank, and steps of other runs behind a complaint
# read as work that went on.
MORE = {"noise-x10": (1.0, 5.0)}
CHANGING = threading.Lock()  # a transformation has a clock


def is_log(path: pathlib.PurePath, content: bytes) -> bool:
    """Printed line by line, and not already as a collector hands it on."""
    if path.name == "case.json" or path.suffix in (".json", ".csv", ".xml", ".gz", ".zst", ".journal", ".jsonl"):
        return False
    if re.search(rb"(?m)^\d{4}-\d\d-\d\dT\S+ std(out|err) [FP] ", content):
        return False
    return b"\0" not in content and not content.lstrip()[:1] in (b"{", b"<") and not content.startswith(b"\xff\xfe")


def compare(base: dict, got: dict, causes: list) -> str:
    hosts = set(got["hosts"]) - {HOST, POD}
    if got["cause"] != base["cause"]:
        if got["cause"] in causes and got["cause"] != "unknown":
            return "same"  # times that a collector adds can decide
        return "lost" if got["cause"] in ("unknown", "healthy") and base["cause"] != "unknown" else "wrong"
    if not set(got["ranks"]) <= set(base["ranks"]) or not hosts <= set(base["hosts"]):
        return "wrong"
    return "lost" if got["ranks"] != base["ranks"] or (base["hosts"] and not got["hosts"]) else "same"


def transform(case: pathlib.Path, name: str, folder: pathlib.Path) -> bool:
    """Writes a case's files as they are behind the transformation; False where it changes none."""
    files = dict(files_of(case))
    if name in COLLECTED and len(files) > 1:
        return False
    any_changed = False
    for path, content in files.items():
        if is_log(pathlib.PurePath(path), content):
            any_changed = True
            lines = content.split(b"\n")
            if lines[-1] == b"":
                lines.pop()
            with CHANGING:
                files[path] = TRANSFORMATIONS[name](lines, random.Random(f"{name} {case.name} {pathlib.PurePath(path).name}"))
    write_files(folder, files)
    return any_changed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    binary = str(pathlib.Path(options.binary).resolve())
    names = [name for name in TRANSFORMATIONS if not options.only or name in options.only.split(",")]
    cases = sorted(path.parent for path in options.cases.glob("*/case.json"))
    base = dict(zip(cases, judge_all(binary, cases, copy_case)))
    causes = {case: json.loads((case / "case.json").read_text())["causes"] for case in cases}
    chosen = [(name, case) for name in names for case in cases if zlib.crc32(f"{name} {case.name}".encode()) % options.every == 0]
    got = zip(chosen, judge_all(binary, chosen, lambda pair, folder: transform(pair[1], pair[0], folder)))
    broken = []
    print(f"{'transformation':20} {'cases':>5} {'same':>5} {'lost':>5} {'wrong':>5}")
    for name, verdicts in itertools.groupby(got, lambda pair_and_verdict: pair_and_verdict[0][0]):
        tally = {"same": 0, "lost": 0, "wrong": 0}
        notes = []
        for (_, case), verdict in verdicts:
            if verdict is None:
                continue
            was = base[case]
            outcome = compare(was, verdict, causes[case])
            tally[outcome] += 1
            if outcome != "same":
                notes.append(f"  {outcome:5} {case.name}: {was['cause']} {was['ranks']} {was['hosts']} -> {verdict['cause']} {verdict['ranks']} {verdict['hosts']}")
        count = sum(tally.values())
        print(f"{name:20} {count:5} {tally['same']:5} {tally['lost']:5} {tally['wrong']:5}", flush=True)
        if options.verbose:
            print("\n".join(notes), flush=True)
        wrong, lost = MORE.get(name, (WRONG, LOST))
        spare = 1 if options.every == 1 else 2
        if tally["wrong"] > spare + wrong * count / 100 or tally["lost"] > spare + lost * count / 100:
            broken.append(name)
            if options.check:
                print("\n".join(notes))
    if broken:
        print("too many wrong or lost:", ", ".join(broken))
    return 1 if options.check and broken else 0


if __name__ == "__main__":
    sys.exit(main())
