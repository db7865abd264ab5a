#!/usr/bin/env python3
"""Writes a tar of generated logs to standard output, one folder for each node: a log of its ranks, and its journal.

pack.py GENERATOR BYTES NODES

BYTES is what the logs together have, to within their endings. No more than one of them lies on disk at a time.
"""

import pathlib
import subprocess
import sys
import tarfile
import tempfile


def main() -> None:
    generator, size, nodes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    each = size // nodes // 2
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        path = pathlib.Path(folder) / "log"
        for node in range(nodes):
            for name, kind in (("ranks.log", "mixed"), ("journal.json", "journal")):
                options = ["--kind", kind, "--bytes", str(each), "--seed", str(node + 1), "--culprit", "37", "--out", str(path)]
                subprocess.run([generator, *options], check=True)
                member = tarfile.TarInfo(f"job/node{node:03}/{name}")
                member.size = path.stat().st_size
                with path.open("rb") as file:
                    tar.addfile(member, file)


if __name__ == "__main__":
    main()
