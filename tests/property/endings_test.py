#!/usr/bin/env python3
"""A last line acquits nobody else: no failed case becomes healthy by any known ending behind it, in front of it or beside it.

endings_test.py BINARY CASES_DIR RULES_DIR [--every N]

The endings are the samples of rules/endings, one of each rule's. --every N takes each Nth pair of case and ending.
"""

import argparse
import json
import os
import pathlib
import re
import sys

from judged import files_of, judge_all, write_files

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
    files = dict(files_of(case))
    line = ending.encode() + b"\n"
    if where == "beside":
        return write_files(folder, {**files, "zz-other.log": line})
    main = max(files, key=lambda name: len(files[name]))
    content = files[main]
    if not is_text(content):
        return False
    files[main] = content + (b"" if content.endswith(b"\n") else b"\n") + line if where == "behind" else line + content
    return write_files(folder, files)


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
    verdicts = judge_all(args.binary, jobs, lambda job, folder: with_ending(job[0], folder, *job[1:]))
    for (case, ending, where), verdict in zip(jobs, verdicts):
        ran += verdict is not None
        if verdict and verdict["cause"] == "healthy":
            wrong += 1
            print(f"{case.name}: healthy with {ending[:60]!r} {where}")
    print(f"{ran} runs over {len(cases)} failed cases and {len(known)} endings: {wrong} wrong")
    return 1 if wrong or ran < len(jobs) // 2 else 0


if __name__ == "__main__":
    sys.exit(main())
