#!/usr/bin/env python3
"""Writes a tar of generated logs to standard output: the log of a job, and the journal of each of its nodes.

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
    members = [("job/ranks.log", "mixed", size // 2, 1)]
    members += [(f"job/node{node:03}/journal.json", "journal", size // 2 // nodes, node + 1) for node in range(nodes)]
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        path = pathlib.Path(folder) / "log"
        for name, kind, count, seed in members:
            options = ["--kind", kind, "--bytes", str(count), "--seed", str(seed), "--culprit", "37", "--out", str(path)]
            subprocess.run([generator, *options], check=True)
            member = tarfile.TarInfo(name)
            member.size = path.stat().st_size
            with path.open("rb") as file:
                tar.addfile(member, file)


if __name__ == "__main__":
    main()
