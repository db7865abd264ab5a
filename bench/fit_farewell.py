#!/usr/bin/env python3
"""Fits the weights of rules/farewell.yaml to labelled cases.

bench/fit_farewell.py SIGNS CASES_DIR... [--written DIR] [--write]

SIGNS is the built program inquest_farewell_signs (configure with -DINQUEST_BUILD_BENCH=ON); a case is a folder with one log
and a case.json (docs/case-format.md). Of those that nothing but their last lines decides, it fits log odds of a good end:
logistic regression with a ridge. Cases for which both `healthy` and `unknown` are accepted count for less, and so do logs
that it cuts at a random line itself, one of each case: a job that hangs leaves such a log. Cases of --written (corpus/) were
made up to be hard to tell: they count for little and in no figure. Prints what came out where every tenth of the sources was
left out of the fit in its turn: how many good ends are found, how many others are taken for one, and how many of the logs
that were cut. --write puts the weights into rules/farewell.yaml.
"""

import argparse
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile

RIDGE = 3.3
HALF_SURE, MADE_UP, CUT = 0.4, 0.6, 0.3  # what such a case counts for
FOLDS = 10
TABLE = pathlib.Path(__file__).resolve().parent.parent / "rules" / "farewell.yaml"


def solve(matrix: list, vector: list) -> list:
    n = len(vector)
    rows = [row[:] + [value] for row, value in zip(matrix, vector)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(i + 1, n):
            share = rows[k][i] / rows[i][i]
            if share:
                rows[k] = [a - share * b for a, b in zip(rows[k], rows[i])]
    out = [0.0] * n
    for i in reversed(range(n)):
        out[i] = (rows[i][n] - sum(rows[i][k] * out[k] for k in range(i + 1, n))) / rows[i][i]
    return out


def odds(weights: list, signs: dict) -> float:
    return sum(weights[k] * value for k, value in signs.items())


def fit(cases: list, names: int) -> list:
    """Newton's method; the first sign, any-log, is not held down."""
    weights = [0.0] * names
    for _ in range(25):
        gradient = [-(RIDGE if k else 1e-6) * weights[k] for k in range(names)]
        hessian = [[(RIDGE if i else 1e-6) if i == k else 0.0 for k in range(names)] for i in range(names)]
        for case in cases:
            share = 1 / (1 + math.exp(-odds(weights, case["signs"])))
            for i, a in case["signs"].items():
                gradient[i] += case["weight"] * (case["well"] - share) * a
                for k, b in case["signs"].items():
                    hessian[i][k] += case["weight"] * share * (1 - share) * a * b
        step = solve(hessian, gradient)
        weights = [a + b for a, b in zip(weights, step)]
        if max(map(abs, step)) < 1e-6:
            break
    return weights


def cut(file: pathlib.Path, folder: pathlib.Path) -> pathlib.Path | None:
    """The log up to a line in its middle, the same for the same name; None: it is too short, or long."""
    lines = file.read_bytes().splitlines(keepends=True) if file.stat().st_size < 8 << 20 else []
    if len(lines) < 30:
        return None
    at = random.Random(file.name).randint(len(lines) // 5, len(lines) * 19 // 20)
    path = folder / f"{len(list(folder.iterdir())):05d}_{file.name}"
    path.write_bytes(b"".join(lines[:at]))
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("signs")
    parser.add_argument("cases", type=pathlib.Path, nargs="+")
    parser.add_argument("--written", type=pathlib.Path, default=[], action="append")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    names, cases = ["any-log"], []
    with tempfile.TemporaryDirectory() as folder:
        labels = {}
        for root, path in ((root, path) for root in args.cases + args.written for path in sorted(root.glob("*/case.json"))):
            files = [file for file in path.parent.iterdir() if file != path and file.is_file()]
            if len(files) != 1:
                continue
            label = json.loads(path.read_text())
            both = {"healthy", "unknown"} <= set(label["causes"])
            written = root in args.written
            case = {"well": label["causes"][0] == "healthy", "source": str(label.get("source", path.parent)), "kind": "written" if written else "whole", "weight": MADE_UP if written else HALF_SURE if both else 1.0}
            labels[str(files[0])] = case
            if not written and (shorter := cut(files[0], pathlib.Path(folder))):
                labels[str(shorter)] = case | {"well": False, "kind": "cut", "weight": CUT}
        said = subprocess.run([args.signs, *labels], check=True, capture_output=True, text=True).stdout
    for row in said.splitlines():
        file, _, *signs = row.split("\t")
        numbered = {}
        for sign in signs:
            name, value = sign.rsplit("=", 1)
            if name not in names:
                names.append(name)
            numbered[names.index(name)] = float(value)
        cases.append(labels[file] | {"signs": numbered})
    if not cases:
        print("no case is left to its last lines", file=sys.stderr)
        return 3
    fold = {source: number % FOLDS for number, source in enumerate(sorted({case["source"] for case in cases}))}
    for number in range(FOLDS):
        weights = fit([case for case in cases if fold[case["source"]] != number], len(names))
        for case in cases:
            if fold[case["source"]] == number:
                case["said"] = 1 / (1 + math.exp(-odds(weights, case["signs"])))
    groups = {
        "good ends": [case for case in cases if case["kind"] == "whole" and case["well"]],
        "others": [case for case in cases if case["kind"] == "whole" and not case["well"]],
        "cut": [case for case in cases if case["kind"] == "cut"],
    }
    print("threshold", *(f"{name + f' of {len(group)}':>18}" for name, group in groups.items()), "   others not arguable")
    for threshold in (0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7):
        taken = {name: [case for case in group if case["said"] >= threshold] for name, group in groups.items()}
        print(f"{threshold:9.2f}", *(f"{len(group):18d}" for group in taken.values()), f"{sum(case['weight'] == 1 for case in taken['others']):12d}")
    weights = dict(zip(names, fit(cases, len(names))))
    for name, weight in sorted(weights.items(), key=lambda row: row[1]):
        print(f"{weight:+.2f} {name}")
    if args.write:
        sign, lines = "", []
        for line in TABLE.read_text().splitlines():
            if match := re.match(r"- sign: (\S+)", line):
                sign = match[1]
            elif match := re.match(r"  (last|before): ", line):
                line = f"  {match[1]}: {weights.get(sign + ('-before' if match[1] == 'before' else ''), 0):.2f}"
            lines.append(line)
        TABLE.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
