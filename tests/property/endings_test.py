#!/usr/bin/env python3
"""A last line acquits nobody else: no failed case becomes healthy by any known ending behind it, in front of it or beside it.

endings_test.py BINARY CASES_DIR RULES_DIR [--every N]

The endings are the samples of rules/endings, one of each rule's. --every N takes each Nth pair of case and ending.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

UNDECIDED = {"healthy", "unknown"}  # in a case of these nothing failed for certain


def endings(rules: pathlib.Path) -> list:
    found = []
    for file in sorted(rules.glob("endings/*.yaml")):
        match = re.search(r"(?m)^  match:\n    - '((?:[^'\n]|'')*)'$", file.read_text())
        assert match, f"{file}: no sample"
        found.append(match.group(1).replace("''", "'"))
    return found


def is_text(content: bytes) -> bool:
    return b"\0" not in content and not content.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xff\xfe", b"\xfe\xff")) and content.lstrip()[:1] not in (b"{", b"[", b"<")


def with_ending(case: pathlib.Path, folder: pathlib.Path, ending: str, where: str) -> bool:
    files = [path for path in sorted(case.rglob("*")) if path.is_file() and path.name != "case.json"]
    for path in files:
        (folder / path.relative_to(case)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / path.relative_to(case))
    if where == "beside":
        (folder / "zz-other.log").write_text(ending + "\n")
        return True
    main = folder / max(files, key=lambda path: path.stat().st_size).relative_to(case)
    content = main.read_bytes()
    if not is_text(content):
        return False
    line = ending.encode() + b"\n"
    main.write_bytes(content + (b"" if content.endswith(b"\n") else b"\n") + line if where == "behind" else line + content)
    return True


def verdict(binary: str, case: pathlib.Path, ending: str, where: str) -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if not with_ending(case, folder, ending, where):
            return "not changed"
        files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        done = subprocess.run([binary, "--threads", "1", "--format", "json", *files], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)
        if done.returncode not in (0, 1, 2):
            return f"exit {done.returncode}: {done.stderr[-300:]!r}"
        return json.loads(done.stdout)["verdict"]["cause"]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", type=os.path.abspath)
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("rules", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=1)
    args = parser.parse_args()
    known = endings(args.rules)
    cases = [path.parent for path in sorted(args.cases.glob("*/case.json")) if not UNDECIDED & set(json.loads(path.read_text())["causes"])]
    jobs = [(case, ending, where) for case in cases for ending in known for where in ("behind", "in front", "beside")][:: args.every]
    wrong = ran = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (case, ending, where), cause in zip(jobs, pool.map(lambda job: verdict(args.binary, *job), jobs)):
            ran += cause != "not changed"
            if cause == "healthy" or cause.startswith("exit"):
                wrong += 1
                print(f"{case.name}: {cause} with {ending[:60]!r} {where}")
    print(f"{ran} runs over {len(cases)} failed cases and {len(known)} endings: {wrong} wrong")
    return 1 if wrong or ran < len(jobs) // 2 else 0


if __name__ == "__main__":
    sys.exit(main())
