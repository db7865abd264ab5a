#!/usr/bin/env python3
"""Makes bundles on a node of made-up programs and reads them back.

collect_test.py BINARY [unittest options]
"""

import io
import json
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

UNDECIDED, COULD_NOT_RUN = 2, 3
XID = "2031-04-05T12:01:01,000000+00:00 NVRM: Xid (PCI:0000:4e:00): 79, pid=2113, name=python, GPU has fallen off the bus."
binary = ""


class CollectTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="inquest-collect-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.programs = self.folder / "bin"
        self.programs.mkdir()
        self.bundle = self.folder / "node.tar"
        self.program("dmesg", "echo '2031-04-05T12:00:00,000000+00:00 Linux version 6.1.0'; echo '2031-04-05T12:00:01,000000+00:00 drop_caches: 3'")

    def program(self, name, script):
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def run_inquest(self, *arguments, **environment):
        clean = {"PATH": f"{self.programs}:{os.environ['PATH']}", "HOME": str(self.folder), **environment}
        result = subprocess.run([binary, *map(str, arguments)], capture_output=True, timeout=100, env=clean, cwd=self.folder)
        return result.returncode, result.stdout.decode(errors="replace"), result.stderr.decode()

    def collect(self, *arguments, **environment):
        """The members of the bundle, by their names under the host's folder, and the manifest's items."""
        self.bundle.unlink(missing_ok=True)
        status, out, err = self.run_inquest("collect", "--time-limit", "1", "-o", self.bundle, *arguments, **environment)
        self.assertEqual((status, err), (0, ""), out)
        return self.read(self.bundle.read_bytes())

    def read(self, data):
        members = {}
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            for member in tar:
                top, host, name = member.name.split("/", 2)
                self.assertEqual((top, host), ("inquest-bundle", socket.gethostname()))
                self.assertTrue(member.isfile(), member.name)
                members[name] = tar.extractfile(member).read()
        manifest = json.loads(members["manifest.json"])
        self.assertEqual(manifest["schema"], "inquest-bundle-1")
        items = {item["name"]: item for item in manifest["items"]}
        self.assertEqual({name for name, item in items.items() if item["kept"]}, set(members) - {"manifest.json"})
        return members, items

    def test_what_programs_print_and_how_they_end(self):
        self.program("nvidia-smi", 'case "$*" in -q) printf "a\\0\\377b\\n"; exit 15;; "") echo table;; *) kill -9 $$;; esac')
        members, items = self.collect()
        self.assertEqual(members["nvidia-smi.txt"], b"table\n")
        self.assertIsNone(items["nvidia-smi.txt"]["problem"])
        self.assertEqual(items["nvidia-smi.txt"]["exit_code"], 0)
        self.assertEqual(members["nvidia-smi-q.txt"], b"a\0\377b\n")
        self.assertEqual((items["nvidia-smi-q.txt"]["exit_code"], items["nvidia-smi-q.txt"]["problem"]), (15, "exit status 15"))
        self.assertEqual((items["nvidia-smi-topo.txt"]["signal"], items["nvidia-smi-topo.txt"]["problem"]), (9, "killed by signal 9"))
        self.assertGreaterEqual(items["nvidia-smi.txt"]["seconds"], 0)
        self.assertEqual(stat.S_IMODE(self.bundle.stat().st_mode), 0o600)

    def test_the_journal_stands_in_for_dmesg(self):
        self.program("dmesg", "echo 'dmesg: read kernel buffer failed: Operation not permitted' >&2; exit 1")
        self.program("journalctl", "echo from the journal")
        members, _ = self.collect()
        self.assertEqual(members["dmesg.txt"], b"from the journal\n")
        self.program("journalctl", "exit 1")
        members, items = self.collect()
        self.assertNotIn("dmesg.txt", members)
        self.assertEqual(items["dmesg.txt"]["problem"], "exit status 1")

    def test_a_program_that_hangs_is_called_twice(self):
        self.program("nvidia-smi", f"echo x >> {self.folder}/calls; echo begun; trap '' TERM INT HUP; sleep 1000 & wait; sleep 1000")
        begin = time.monotonic()
        members, items = self.collect()
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual((self.folder / "calls").read_text(), "x\nx\n")
        self.assertEqual(members["nvidia-smi.txt"], b"begun\n")
        self.assertTrue(items["nvidia-smi.txt"]["timed_out"])
        self.assertEqual(items["nvidia-smi.txt"]["problem"], "stopped after 1 s")
        self.assertEqual(items["nvidia-smi-topo.txt"]["problem"], "left out: earlier calls of the program did not end")
        left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
        self.assertNotIn(str(self.programs), left)

    def test_a_program_that_leaves_a_child_behind_ends_all_the_same(self):
        self.program("nvidia-smi", "echo table; sleep 1000 &")
        begin = time.monotonic()
        members, items = self.collect()
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual((members["nvidia-smi.txt"], items["nvidia-smi.txt"]["problem"]), (b"table\n", None))

    def test_an_interrupt_finishes_the_bundle(self):
        self.program("nvidia-smi", f"echo begun; touch {self.folder}/runs; sleep 1000")
        clean = {"PATH": f"{self.programs}:{os.environ['PATH']}", "HOME": str(self.folder)}
        given = self.folder / "job.log"
        given.write_text("a line\n")
        run = subprocess.Popen([binary, "collect", "-o", self.bundle, given], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean, cwd=self.folder)
        deadline = time.monotonic() + 60
        while not (self.folder / "runs").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        begin = time.monotonic()
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertEqual((run.returncode, err.decode()), (UNDECIDED, "inquest: interrupted; the bundle is whole, with what was gathered by then\n"))
        self.assertFalse(pathlib.Path(f"{self.bundle}.part").exists())
        members, items = self.read(self.bundle.read_bytes())
        self.assertEqual((members["nvidia-smi.txt"], items["nvidia-smi.txt"]["problem"]), (b"begun\n", "stopped: interrupted"))
        self.assertEqual([item["problem"] for name, item in items.items() if name.endswith("job.log")], ["left out: interrupted"])
        self.assertIn("stopped: interrupted", out.decode())
        left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
        self.assertNotIn(str(self.programs), left)

    def test_output_is_bounded(self):
        self.program("nvidia-smi", "yes 0123456789")
        members, items = self.collect("--time-limit", "60")
        self.assertEqual(len(members["nvidia-smi.txt"]), 32 << 20)
        self.assertTrue(items["nvidia-smi.txt"]["cut"])
        self.assertEqual(items["nvidia-smi.txt"]["problem"], "cut after 32 MiB")

    def test_secrets_stay(self):
        members, _ = self.collect(
            NCCL_DEBUG="INFO", NCCL_SECRET_THING="aaa", WANDB_API_KEY="bbb", HF_TOKEN="ccc", SLURM_JOB_ID="7", NCCL_NET_URL="http://me:ddd@proxy/",
            TORCH_HUB="ghp_eeeeeeeeeeeeeeee", NCCL_COMMENT="two\nlines=fff",
        )
        text = members["environment.txt"].decode()
        for line in ("NCCL_DEBUG=INFO", "SLURM_JOB_ID=7", "NCCL_SECRET_THING=<masked>", "NCCL_NET_URL=<masked>", "TORCH_HUB=<masked>", "NCCL_COMMENT=two lines=fff"):
            self.assertIn(line + "\n", text)
        for secret in ("aaa", "bbb", "ccc", "ddd", "eee", "WANDB", "HF_TOKEN"):
            self.assertNotIn(secret, text)

    def test_given_files(self):
        logs = self.folder / "logs"
        (logs / "deep").mkdir(parents=True)
        (logs / "rank0.log").write_text("zero\n")
        (logs / "deep/rank1.log").write_text("one\n")
        (logs / "odd\x1b[31m\nname").write_text("odd\n")
        (logs / ".hidden").write_text("hidden\n")
        (logs / "latest").symlink_to("rank0.log")
        (logs / "passwd").symlink_to("/etc/passwd")
        (logs / "up").symlink_to("/etc")
        (logs / "gone").symlink_to("nowhere")
        os.mkfifo(logs / "pipe")
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(str(logs / "socket"))
            members, items = self.collect("logs", "logs/rank0.log", "../" + self.folder.name + "/logs/deep")
        given = {name.removeprefix("files/"): data for name, data in members.items() if name.startswith("files/")}
        # A file that is there under two names is copied once.
        self.assertEqual(given, {"logs/latest": b"zero\n", "logs/odd_[31m_name": b"odd\n", f"{self.folder.name}/logs/deep/rank1.log": b"one\n"})
        problems = {name.removeprefix("files/logs/"): item["problem"] for name, item in items.items() if name.startswith("files/logs/") and item["problem"]}
        self.assertEqual(problems.pop("passwd"), "a link that leaves the folder; name its target to have it")
        self.assertEqual(problems, {"up": "a link to a folder; name its target to have it", "gone": "a link to nothing", "pipe": "a named pipe", "socket": "a socket"})

    def test_requests_that_cannot_be_met(self):
        for arguments in (["nowhere.log"], ["-"], ["-o", "bundle.zip"], ["-o", "no/such/folder/b.tar"]):
            status, out, err = self.run_inquest("collect", *arguments)
            self.assertEqual((status, out), (COULD_NOT_RUN, ""), err)
            self.assertTrue(err.startswith("inquest: "), err)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["bin"])

    def test_a_bundle_of_another_time_is_not_replaced(self):
        self.bundle.write_text("old")
        status, out, err = self.run_inquest("collect", "--time-limit", "1", "-o", self.bundle)
        self.assertEqual((status, out), (COULD_NOT_RUN, ""), err)
        self.assertIn("exists already", err)
        self.assertEqual(self.bundle.read_text(), "old")
        self.bundle.unlink()
        # Nor one that appears while this one is made.
        self.program("lspci", f"echo other > {self.bundle}; echo x")
        status, out, err = self.run_inquest("collect", "--time-limit", "1", "-o", self.bundle)
        self.assertEqual((status, out), (COULD_NOT_RUN, ""), err)
        self.assertEqual(self.bundle.read_text(), "other\n")
        self.assertFalse(self.bundle.with_suffix(".tar.part").exists())

    def test_to_standard_output(self):
        status, out, err = self.run_inquest("collect", "--time-limit", "1", "-o", "-")
        self.assertEqual(status, 0)
        self.assertIn("Nothing was sent anywhere", err)

    def test_reading_back_a_healthy_node(self):
        self.collect()
        status, out, _ = self.run_inquest(self.bundle)
        self.assertEqual(status, UNDECIDED)
        host = socket.gethostname().split(".")[0]
        self.assertIn(f"Not collected on {host}: ", out)
        self.assertIn("nvidia-smi is not installed", out)
        self.assertNotIn("Evidence", out)
        self.assertNotIn("drop_caches", out)
        document = json.loads(self.run_inquest("-f", "json", self.bundle)[1])
        manifest = next(read for read in document["inputs"] if read["path"].endswith("manifest.json"))
        self.assertEqual(manifest["kinds"], ["bundle-manifest"])
        self.assertIn({"name": "nvidia-smi.txt", "reason": "nvidia-smi is not installed"}, manifest["missing"])
        self.assertEqual([document["verdict"]["evidence"], document["findings"]], [[], []])

    def test_reading_back_a_lost_gpu(self):
        self.program("dmesg", f"echo '{XID}'")
        self.collect()
        document = json.loads(self.run_inquest("-f", "json", self.bundle)[1])
        sources = [line["source"] for finding in document["findings"] for line in finding["evidence"]]
        self.assertTrue(any(source.endswith("/dmesg.txt") for source in sources), document["findings"])
        self.assertIn(socket.gethostname().split(".")[0], {culprit["host"] for finding in document["findings"] for culprit in finding["culprits"]})


if __name__ == "__main__":
    binary = os.path.abspath(sys.argv.pop(1))
    unittest.main()
