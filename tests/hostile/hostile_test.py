#!/usr/bin/env python3
"""Feeds inquest what no program should be fed: it must end with a verdict or a clear refusal, and count every byte.

hostile_test.py BINARY CORPUS_DIR [unittest options]
"""

import concurrent.futures
import json
import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

SEED = 20310219
VERDICTS = (0, 1, 2)
REFUSED = 3
binary = ""
corpus = pathlib.Path()


def corpus_logs() -> list[pathlib.Path]:
    """Every log of the corpus, the longest first."""
    logs = [path for path in corpus.glob("*/*") if path.suffix in (".log", ".txt", ".out", ".err")]
    return sorted(logs, key=lambda path: (-path.stat().st_size, str(path)))


class HostileTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="inquest-hostile-"))
        self.addCleanup(shutil.rmtree, self.folder, True)

    def run_inquest(self, *arguments, **options):
        return subprocess.run([binary, "--format", "json", *map(str, arguments)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=300, check=False, **{"stdin": subprocess.DEVNULL, **options})

    def check(self, done, sizes: list[int], name: str) -> dict:
        """The verdict's document, after checking the exit status and the bytes accounted for; `sizes`: of the inputs."""
        self.assertIn(done.returncode, VERDICTS, f"{name}: {done.stderr[-4000:].decode(errors='replace')}")
        document = json.loads(done.stdout.decode("ascii"))
        inputs = document["inputs"]
        self.assertEqual(sorted(entry["bytes"] for entry in inputs), sorted(sizes), name)
        for entry in inputs:
            self.assertEqual(entry["claimed"] + entry["plain"] + entry["damaged"], entry["bytes"], f"{name}: {entry}")
        self.assertEqual(done.returncode == 0, document["outcome"] == "healthy", name)
        return document

    def feed(self, content: bytes, name: str, counted: int | None = None) -> dict:
        """As a file, on one thread and on four, and through a pipe: always the same verdict. `counted`: bytes, where text is
        counted as it is read and not as it lies there."""
        counted = len(content) if counted is None else counted
        path = self.folder / f"{name}.log"
        path.write_bytes(content)
        done = self.run_inquest(path)
        document = self.check(done, [counted], name)
        for threads in (1, 4):
            again = self.run_inquest("--threads", threads, path)
            self.assertEqual(again.stdout, done.stdout, f"{name}, {threads} threads")
        with open(path, "rb") as file:
            cat = subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE)
            piped = self.run_inquest("-", stdin=cat.stdout)
            cat.stdout.close()
            cat.wait()
        from_pipe = self.check(piped, [counted], f"{name} through a pipe")
        self.assertEqual(from_pipe["verdict"]["cause"], document["verdict"]["cause"], name)
        path.unlink()
        return document

    def some_log(self) -> bytes:
        return next(path for path in corpus_logs() if path.stat().st_size < 1 << 20).read_bytes()

    def test_random_bytes(self):
        self.feed(random.Random(SEED).randbytes(4 << 20), "random")

    def test_fresh_random_bytes(self):
        path = self.folder / "urandom.log"
        path.write_bytes(os.urandom(4 << 20))
        done = self.run_inquest(path)
        if done.returncode not in VERDICTS:
            kept = pathlib.Path(tempfile.gettempdir()) / "inquest-hostile-urandom.log"
            shutil.copy(path, kept)
            self.fail(f"ended with {done.returncode}; the bytes are kept in {kept}")
        self.check(done, [4 << 20], "urandom")

    def test_cut_anywhere(self):
        logs = [path.read_bytes() for path in corpus_logs() if 0 < path.stat().st_size < 1 << 20][:20]
        chance = random.Random(SEED)
        jobs = []
        for number in range(200):
            log = logs[number % len(logs)]
            offset = chance.randrange(len(log))
            path = self.folder / f"cut-{number}.log"
            path.write_bytes(log[:offset] if number % 2 else log[offset:])
            jobs.append(path)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for path, done in zip(jobs, pool.map(self.run_inquest, jobs)):
                self.check(done, [path.stat().st_size], path.name)

    def test_two_logs_shuffled(self):
        chance = random.Random(SEED)
        logs = [path for path in corpus_logs() if path.stat().st_size < 1 << 20]
        for number in range(5):
            sides = [log.read_bytes().splitlines(keepends=True) for log in chance.sample(logs, 2)]
            lines = []
            while any(sides):
                side = chance.choice([side for side in sides if side])
                lines.append(side.pop(0))
            # A name that could be a host's would tell whose table of GPUs it is, which a pipe does not.
            self.feed(b"".join(lines), f"shuffled_{number}")

    def test_line_without_end(self):
        self.feed(b"x" * (64 << 20), "long-line")

    def test_log_after_line_without_end(self):
        self.feed(b"y" * (3 << 20) + b"\n" + self.some_log(), "log-after-long-line")

    def test_nul_bytes(self):
        self.feed(bytes(1 << 20), "nul")
        self.feed(self.some_log().replace(b" ", b"\0"), "nul-for-blank")

    def test_only_line_ends(self):
        self.feed(b"\n" * (1 << 20), "newlines")
        self.feed(b"\r" * (1 << 20), "carriage-returns")
        self.feed(b"\r\n" * (1 << 19), "both")

    def test_empty(self):
        (self.folder / "empty.log").write_bytes(b"")
        self.assertEqual(self.run_inquest(self.folder / "empty.log").returncode, REFUSED)
        self.feed(b"\n", "one-newline")
        self.feed(b"\xef\xbb\xbf", "byte-order-mark")

    def test_line_ends_of_windows(self):
        log = self.some_log()
        plain = self.feed(log, "unix")
        self.assertEqual(self.feed(log.replace(b"\n", b"\r\n"), "windows")["verdict"]["cause"], plain["verdict"]["cause"])

    def test_colours(self):
        log = self.some_log()
        plain = self.feed(log, "plain")
        coloured = b"".join(b"\x1b[36m" + line + b"\x1b[0m\n" for line in log.splitlines())
        self.assertEqual(self.feed(coloured, "coloured")["verdict"]["cause"], plain["verdict"]["cause"])
        self.feed(b"\x1b[" * (1 << 19), "escapes-without-end")

    def test_invalid_utf8(self):
        chance = random.Random(SEED)
        log = bytearray(self.some_log())
        for _ in range(len(log) // 50):
            log[chance.randrange(len(log))] = chance.randrange(0x80, 0x100)
        self.feed(bytes(log), "invalid-utf8")

    def test_utf16(self):
        text = self.some_log().decode(errors="replace")
        self.feed(text.encode("utf-16"), "utf16", len(text.encode()))

    def test_a_failure_in_a_flood(self):
        """Before and behind it everything is new: processes and communicators, or the texts of warnings."""
        def starts(number):
            head = f"h{number // 8}:{number}:{number} [{number % 8}] NCCL INFO ncclCommInitRank comm 0x{0x55000000 + 64 * number:x} rank {number % 64} nranks 64"
            tail = f"cudaDev {number % 8} nvmlDev {number % 8} busId 1b000 commId 0x{0x9e3779b97f4a7c15 * (number + 7) % 2**64:x} - Init"
            return f"{head} {tail} START\n{head} {tail} COMPLETE\n"

        def warnings(number):
            return f"\nh{number // 8}:{number}:{number} [{number % 8}] misc/socket.cc:{number} NCCL WARN something is new about {number}\n"

        failure = (corpus / "dp-timeout-follows-tp-timeout-follows-oom" / "job.log").read_bytes()
        for flood, what in ((starts, "comm-init"), (warnings, "nccl-warn")):
            before = "".join(map(flood, range(1000, 31000))).encode()
            behind = "".join(map(flood, range(100000, 130000))).encode()
            content = before + failure + behind
            path = self.folder / "flood.log"
            path.write_bytes(content)
            document = self.check(self.run_inquest(path), [len(content)], what)
            verdict = document["verdict"]
            self.assertEqual((verdict["cause"], [culprit["rank"] for culprit in verdict["culprits"]]), ("cuda-oom", [1]), what)
            first = before.count(b"\n")
            self.assertTrue(all(first < line["line"] <= first + failure.count(b"\n") for line in verdict["evidence"]), verdict["evidence"])
            self.assertIn(what, {row["what"] for row in document["left_out"]})

    def judge_bounded(self, text: str, name: str) -> dict:
        """A verdict in 1 GiB of address space, told in less than 1 MiB of JSON, within 10 s."""
        path = self.folder / f"{name}.log"
        path.write_text(text)
        limits = lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        started = os.times().children_user
        done = self.run_inquest("--threads", 1, path, preexec_fn=limits)
        self.assertLess(os.times().children_user - started, 10, name)
        self.assertLess(len(done.stdout), 1 << 20, name)
        return self.check(done, [path.stat().st_size], name)

    def test_a_line_of_many_pieces(self):
        """Each is drawn over the one before: what stands near one of them was looked for from its line's first to its last."""
        self.judge_bounded("\r" * (1 << 22), "returns")
        self.judge_bounded("Error: x\r" * (1 << 17), "errors")
        self.judge_bounded("Traceback (most recent call last):\r" * (1 << 15), "tracebacks")

    def test_a_call_of_each_of_many_processes(self):
        """Of none of them the birth was seen: whether it has one communicator was asked of all the others, for each."""
        many = 100_000
        path = self.folder / "processes.log"
        path.write_text("".join(
            f"alder04:{many + rank}:{many + rank} [{rank}] NCCL INFO AllReduce: opCount 5 sendbuff 0x7f3a recvbuff 0x7f3b count 64 "
            f"datatype 7 op 0 root 0 comm 0x55d0{rank:06x} [nranks={many}] stream 0x55d0\n" for rank in range(many)))
        started = os.times().children_user
        done = self.run_inquest("--threads", 1, path)
        self.assertLess(os.times().children_user - started, 10)
        self.assertIn(done.returncode, VERDICTS)

    def test_a_rank_that_nothing_supports(self):
        """Neither what a line calls itself nor a size that it names is a size of ours."""
        work = "WorkNCCL(SeqNum=4410, OpType=ALLREDUCE, NumelIn=25264128, NumelOut=25264128, Timeout(ms)=600000)"
        def timed_out(prefix, group_rank, group=""):
            return (f"[rank{prefix}]:[E0314 05:23:20.116263684 ProcessGroupNCCL.cpp:632] [{group}Rank {group_rank}] Watchdog caught collective operation timeout: "
                    f"{work} ran for 600088 milliseconds before timing out.\n")
        for claim in (1_000_000_000, 999_990, 2147483647):
            document = self.judge_bounded(timed_out(claim, 6) * 2 + timed_out(3, 3), "one")
            self.assertLess(len(document["verdict"]["culprits"]), 3)
        for size in ("world_size=1000000000", "world_size=1048576", "world_size=2147483647"):
            self.judge_bounded(f"args: {size}\n" + timed_out(0, 0) + timed_out(1, 1) + "[rank2]: loss 3\n", "size")
        groups = "".join(timed_out(rank, rank, f"PG ID {group} PG GUID {group}(pg{group}) ") for group in range(200) for rank in (3, 999_990))
        self.judge_bounded(groups, "groups")
        gathers = "".join(timed_out(rank, rank, f"PG ID {group} PG GUID {group}(pg{group}) ").replace("ALLREDUCE", "_ALLGATHER_BASE").replace("NumelIn=25264128", "NumelIn=1")
                          for group in range(200) for rank in (3, 5))
        self.judge_bounded(gathers, "gathers")

    def test_calls_of_a_communicator_whose_birth_was_not_seen(self):
        path = self.folder / "calls.log"
        path.write_text("".join(f"h:{pid}:{pid} [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 4 datatype 7 op 0 root 0 comm 0x5 [nranks=2] stream 0x6\n" for pid in (1, 2)))
        document = self.check(self.run_inquest(path), [path.stat().st_size], "calls")
        self.assertEqual([member["rank"] for member in document["job"]["communicators"][0]["members"]], [None, None])

    def test_evidence_that_would_write_to_the_terminal(self):
        log = b"[rank0]: RuntimeError: \x1b]0;title\x07 \x1b[2J \xe2\x80\xae reversed\n"
        path = self.folder / "terminal.log"
        path.write_bytes(log)
        done = subprocess.run([binary, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
        self.assertIn(done.returncode, VERDICTS)
        self.assertNotIn(b"\x1b", done.stdout)
        self.assertNotIn(b"\xe2\x80\xae", done.stdout)

    def test_folder(self):
        contents = {"random.log": os.urandom(100000), "empty.log": b"", "rank0/job.log": self.some_log()}
        for name, content in contents.items():
            path = self.folder / "job" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        (self.folder / "job" / "loop").symlink_to(self.folder / "job")
        (self.folder / "job" / "dangling").symlink_to(self.folder / "nowhere")
        done = self.run_inquest(self.folder / "job")
        self.assertIn(done.returncode, VERDICTS, done.stderr)
        inputs = json.loads(done.stdout)["inputs"]
        for entry in inputs:
            self.assertEqual(entry["claimed"] + entry["plain"] + entry["damaged"], entry["bytes"])
        self.assertIn(len(contents["rank0/job.log"]), [entry["bytes"] for entry in inputs])

    def test_empty_folder(self):
        (self.folder / "nothing").mkdir()
        self.assertEqual(self.run_inquest(self.folder / "nothing").returncode, REFUSED)

    def test_missing_file(self):
        done = self.run_inquest(self.folder / "missing.log")
        self.assertEqual(done.returncode, REFUSED)
        self.assertIn(b"missing.log", done.stderr)

    def test_unreadable_file(self):
        # Root reads everything, so that the reader is somebody else then; who also has to reach the binary.
        copy = self.folder / "inquest"
        shutil.copy(binary, copy)
        copy.chmod(0o755)
        self.folder.chmod(0o755)
        path = self.folder / "secret.log"
        path.write_bytes(self.some_log())
        path.chmod(0)
        somebody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        done = subprocess.run([copy, "--format", "json", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60, check=False, **somebody)
        self.assertEqual(done.returncode, REFUSED)
        self.assertIn(b"secret.log", done.stderr)

    def test_named_pipe(self):
        path = self.folder / "pipe"
        os.mkfifo(path)
        log = self.folder / "job.log"
        log.write_bytes(self.some_log())
        writer = subprocess.Popen(["sh", "-c", 'cat "$1" >"$2"', "sh", log, path], stderr=subprocess.DEVNULL)
        try:
            done = self.run_inquest(path)
        finally:
            writer.kill()
            writer.wait()
        self.assertIn(done.returncode, (*VERDICTS, REFUSED))
        if done.returncode in VERDICTS:
            for entry in json.loads(done.stdout)["inputs"]:
                self.assertEqual(entry["claimed"] + entry["plain"] + entry["damaged"], entry["bytes"])
        else:
            self.assertTrue(done.stderr)

    def test_reader_goes_away(self):
        path = self.folder / "job.log"
        path.write_bytes(self.some_log())
        child = subprocess.Popen([binary, "--format", "json", str(path)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        child.stdout.close()
        self.assertNotIn(-child.wait(60), (6, 11))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    binary, corpus = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
