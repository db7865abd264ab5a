"""Verdicts over many changed jobs: a folder each, judged together by `inquest triage`, whose run loads the rules once."""

import concurrent.futures
import functools
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

TOGETHER = 200  # jobs a run


def name_of(number: int) -> str:
    """Of letters alone: digits in a path can name a rank or a host."""
    letters = ""
    while number or not letters:
        number, digit = divmod(number, 26)
        letters = chr(ord("a") + digit) + letters
    return "job-" + letters


@functools.cache
def files_of(case: pathlib.Path) -> dict:
    """The case's logs by their paths in it, in order; read once, for thousands of jobs."""
    found = sorted(path for path in case.rglob("*") if path.is_file() and path.name != "case.json")
    return {str(path.relative_to(case)): path.read_bytes() for path in found}


def write_files(folder: pathlib.Path, files: dict) -> bool:
    """A write() of judge_all, where that has made the folder."""
    for name, content in files.items():
        if "/" in name:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with open(f"{folder}/{name}", "wb", buffering=0) as file:
            file.write(content)
    return True


def copy_case(case: pathlib.Path, folder: pathlib.Path) -> bool:
    """A write() of judge_all: the case's files as they are."""
    return write_files(folder, files_of(case))


def triaged(binary: str, folder: pathlib.Path) -> dict:
    """Of each job by name: {"cause", "ranks", "hosts"}."""
    done = subprocess.run([binary, "triage", "--threads", "1", "--format", "jsonl", str(folder)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600, check=False)
    if done.returncode not in (0, 1, 2):
        raise RuntimeError(f"exit {done.returncode}: {done.stderr[-400:]!r}")
    out = {}
    for line in done.stdout.splitlines():
        row = json.loads(line)
        if row["problem"]:
            raise RuntimeError(f"{row['name']}: {row['problem']}")
        ranks, hosts = ({culprit[key] for culprit in row["culprits"]} - {None} for key in ("rank", "host"))
        out[row["name"]] = {"cause": row["cause"], "ranks": sorted(ranks), "hosts": sorted(hosts)}
    return out


def in_memory() -> str | None:
    """Where thousands of small files cost nothing; None: there is no room."""
    shared = "/dev/shm"
    return shared if os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > 1 << 30 else None


def judge_some(binary: str, jobs: list, write) -> list:
    with tempfile.TemporaryDirectory(prefix="inquest-", dir=in_memory()) as name:
        names = []
        for number, job in enumerate(jobs):
            folder = pathlib.Path(name) / "jobs" / name_of(number)
            folder.mkdir(parents=True)
            names.append(folder.name if write(job, folder) else None)
            if names[-1] is None:
                shutil.rmtree(folder)
        verdicts = triaged(binary, pathlib.Path(name) / "jobs") if any(names) else {}
        return [name and verdicts[name] for name in names]


def judge_all(binary: str, jobs, write):
    """Yields for each job, in order, its verdict; None where write(job, folder) returned False, with nothing to judge."""
    jobs = iter(jobs)
    batches = iter(lambda: list(itertools.islice(jobs, TOGETHER)), [])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for verdicts in pool.map(lambda batch: judge_some(binary, batch, write), batches):
            yield from verdicts
