#!/usr/bin/env python3
"""Times shell commands against each other, interleaved (A B C A B C ...), and prints their medians as a table.

measure.py --section TITLE [--bytes N] [--repeat N] [--csv FILE] NAME=COMMAND...

The first command is the one that the others are compared with. Peak memory is that of the largest process of the
command, as the kernel counted it, or of the process that {peak} stands in front of. A command may end with 0, 1 or 2 (inquest's verdicts, no match of rg); anything else
is an error. Every single run goes to the CSV: section, name, run, seconds, peak KiB, exit status.
"""

import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
import time


def run(command: str) -> tuple[float, int, int]:
    """Seconds, peak KiB and exit status of a command."""
    with tempfile.NamedTemporaryFile("r", suffix=".time") as report:
        meter = ["/usr/bin/time", "-q", "-o", report.name, "-f", "%M"]
        shell = ["bash", "-o", "pipefail", "-c", command.replace("{peak}", " ".join(meter))]
        wrapped = shell if "{peak}" in command else meter + shell
        begin = time.perf_counter()
        done = subprocess.run(wrapped, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        seconds = time.perf_counter() - begin
        if done.returncode not in (0, 1, 2):
            sys.exit(f"{command}\nended with {done.returncode}: {done.stderr.decode(errors='replace')[-2000:]}")
        return seconds, int(report.read().split()[-1]), done.returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--section", required=True)
    parser.add_argument("--bytes", type=int, default=0, help="of the input, for GB/s; 0: none")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--csv")
    parser.add_argument("commands", nargs="+", metavar="NAME=COMMAND")
    options = parser.parse_args()
    commands = [text.split("=", 1) for text in options.commands]

    runs: dict[str, list[tuple[float, int, int]]] = {name: [] for name, _ in commands}
    for _ in range(options.repeat):
        for name, command in commands:
            runs[name].append(run(command))

    print(f"\n{options.section}")
    print(f"{'':<34}{'seconds':>9}{'min..max':>16}{'GB/s':>8}{'ratio':>8}{'peak MiB':>10}")
    base = statistics.median(seconds for seconds, _, _ in runs[commands[0][0]])
    for name, _ in commands:
        times = [seconds for seconds, _, _ in runs[name]]
        median = statistics.median(times)
        rate = f"{options.bytes / median / 1e9:.2f}" if options.bytes else ""
        spread = f"{min(times):.3f}..{max(times):.3f}"
        peak = max(kib for _, kib, _ in runs[name]) / 1024
        print(f"{name:<34}{median:>9.3f}{spread:>16}{rate:>8}{median / base:>8.2f}{peak:>10.1f}", flush=True)
    if options.csv:
        new = not os.path.exists(options.csv)
        with open(options.csv, "a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            if new:
                writer.writerow(["section", "name", "run", "seconds", "peak_kib", "exit"])
            for name, _ in commands:
                for number, (seconds, kib, status) in enumerate(runs[name], 1):
                    writer.writerow([options.section, name, number, f"{seconds:.6f}", kib, status])


if __name__ == "__main__":
    main()
