#!/usr/bin/env python3
"""Runs the shell of action.yml and of examples/ as far as a machine without their services can, on logs that try to inject.

places_test.py BINARY [unittest options]
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import yaml
except ImportError:
    sys.exit(77)
if shutil.which("jq") is None:
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
EVIL = "$(touch pwned) `touch pwned` ; touch pwned ' \" \\n%0A::set-output name=cause::evil ::error::evil \u2028cause=evil \x1b[31m"
LOG = (
    "::set-output name=cause::evil\ncause=evil\n"
    f"[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. {EVIL}\n"
    f"node07$(touch pwned):41:41 [0] NCCL INFO comm 0x1 rank 3 nranks 8 cudaDev 0 busId 4e000 - Init COMPLETE {EVIL}\n"
)
binary = ""


class PlacesTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="inquest-places-"))
        self.tools = self.folder / "tools"
        self.tools.mkdir()
        (self.tools / "inquest").symlink_to(binary)
        self.work = self.folder / "work"
        self.work.mkdir()
        self.tool("torchrun", f"cat '{self.folder}/printed'; exit \"$(cat '{self.folder}/status')\"")
        self.program(LOG, 1)

    def tearDown(self):
        self.assertEqual([], [str(path) for path in self.folder.rglob("pwned")])
        shutil.rmtree(self.folder)

    def tool(self, name, script):
        (self.tools / name).write_text(f"#!/bin/bash\n{script}\n")
        (self.tools / name).chmod(0o755)

    def program(self, printed, status):
        (self.folder / "printed").write_text(printed)
        (self.folder / "status").write_text(str(status))

    def shell(self, script, *flags, **variables):
        clean = {"PATH": f"{self.tools}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", **{key: str(value) for key, value in variables.items()}}
        return subprocess.run(["bash", *flags, "-c", script], cwd=self.work, env=clean, capture_output=True, timeout=60)

    # ---- README.md

    def test_requeue_outlives_the_signal_that_it_brings(self):
        script = (ROOT / "README.md").read_text().split("A requeue that looks first:\n\n```sh\n")[1].split("```")[0]
        # Slurm ends a batch script that requeues its own job, and takes excluded hosts of pending jobs alone.
        self.tool("scontrol", f"echo \"$@\" >> '{self.folder}/asked'\n[[ $1 != requeue* ]] || kill -TERM $PPID; sleep 0.2")
        logs = self.work / "logs"
        logs.mkdir()
        (logs / "node08.log").write_text("node08:2113:2200 [4] NCCL INFO comm 0x55d0 rank 0 nranks 1 cudaDev 4 busId 4e000 - Init COMPLETE\n"
                                         "[rank0]: RuntimeError: CUDA error: unspecified launch failure\n")
        (logs / "node08-dmesg.txt").write_text("[Sat Apr  5 12:00:03 2031] NVRM: Xid (PCI:0000:4e:00): 79, pid=2113, GPU has fallen off the bus.\n")
        self.shell(script, SLURM_JOB_ID=88123)
        self.assertEqual(["requeuehold 88123", "update JobId=88123 ExcNodeList=node08", "release 88123"], (self.folder / "asked").read_text().splitlines())

    # ---- action.yml

    def action(self, number):
        return yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"][number]

    def run_action(self, paths, **variables):
        step = self.action(1)
        self.assertNotIn("${{", step["run"])
        self.output, self.summary = self.folder / "output", self.folder / "summary"
        for file in (self.output, self.summary):
            file.write_text("")
        inputs = {"PATHS": paths, "INQUEST": "inquest", "VERDICT": "verdict.json", **variables}
        self.assertEqual(set(step["env"]), set(inputs))
        # As the runner calls `shell: bash`.
        return self.shell(step["run"], "--noprofile", "--norc", "-eo", "pipefail", GITHUB_OUTPUT=self.output, GITHUB_STEP_SUMMARY=self.summary, **inputs)

    def test_action_declares_what_it_gives(self):
        action = yaml.safe_load((ROOT / "action.yml").read_text())
        self.assertEqual({"cause", "culprits", "hosts", "fingerprint", "retry", "outcome"}, set(action["outputs"]))
        for name, output in action["outputs"].items():
            self.assertEqual("${{ steps.inquest.outputs.%s }}" % name, output["value"])
        for step in action["runs"]["steps"]:
            self.assertEqual("bash", step["shell"])
            self.assertNotIn("${{", step["run"])

    def test_action_gives_one_line_an_output(self):
        name = f"job {EVIL[:40]}.log".replace("/", "_")
        (self.work / name).write_text(LOG)
        result = self.run_action(f"\n  {name}  \n\n")
        self.assertEqual(0, result.returncode, result.stderr)
        outputs = [line.split("=", 1) for line in self.output.read_bytes().decode().splitlines()]
        self.assertEqual(["outcome", "cause", "culprits", "hosts", "fingerprint", "retry"], [key for key, _ in outputs])
        outputs = dict(outputs)
        verdict = json.loads((self.work / "verdict.json").read_text())["verdict"]
        self.assertEqual(("failed", "cuda-oom", verdict["fingerprint"], verdict["retry"]), tuple(outputs[key] for key in ("outcome", "cause", "fingerprint", "retry")))
        self.assertEqual(3, json.loads(outputs["culprits"])[0]["rank"])
        self.assertRegex(outputs["hosts"], r"^[A-Za-z0-9._:,-]*$")
        self.assertTrue(self.summary.read_text().startswith("<!-- inquest: cuda-oom "))
        commands = [line for line in result.stdout.decode().splitlines() if line]
        self.assertTrue(commands)
        for line in commands:
            self.assertRegex(line, "^::(error|warning|notice)[ :]")

    def test_action_names_hosts(self):
        (self.work / "job.log").write_text("node07:41:41 [0] NCCL INFO comm 0x1 rank 3 nranks 8 cudaDev 0 busId 4e000 - Init COMPLETE\n" + LOG)
        self.assertEqual(0, self.run_action("job.log").returncode)
        self.assertIn("\nhosts=node07\n", self.output.read_text())

    def test_action_fails_where_nothing_can_be_read(self):
        for paths in ("", "none.log", "--help"):
            self.assertEqual(3, self.run_action(paths).returncode, paths)
            self.assertEqual("", self.output.read_text())

    def test_action_fetches_a_version_and_nothing_else(self):
        script = self.action(0)["run"]
        self.tool("curl", 'echo "$@" > "$RUNNER_TEMP/asked"; tar -cz -C "$RUNNER_TEMP" -T /dev/null')
        path = self.folder / "path"
        variables = {"RUNNER_TEMP": self.work, "GITHUB_PATH": path, "GITHUB_SERVER_URL": "https://forge.example", "REPOSITORY": "a/inquest"}
        self.assertEqual(0, self.shell(script, "-eo", "pipefail", VERSION="0.1.0", **variables).returncode)
        self.assertRegex((self.work / "asked").read_text(), r"https://forge\.example/a/inquest/releases/download/v0\.1\.0/inquest-0\.1\.0-linux-\w+\.tar\.gz")
        self.assertRegex(path.read_text(), r"/inquest-0\.1\.0-linux-\w+/bin\n")
        (self.work / "asked").unlink()
        for version in ("../x", "1;touch pwned", "1\n2", ""):
            self.assertEqual(3, self.shell(script, "-eo", "pipefail", VERSION=version, **variables).returncode)
        self.assertFalse((self.work / "asked").exists())

    # ---- examples

    def test_gitlab(self):
        job = yaml.safe_load((ROOT / "examples/gitlab-ci.yml").read_text())["train"]
        self.assertEqual(1, self.shell("\n".join(job["script"]), "-e").returncode)
        result = self.shell("\n".join(job["after_script"]), "-e", CI_JOB_STATUS="failed")
        self.assertEqual(0, result.returncode)
        self.assertNotIn(b"\x1b", result.stdout)
        for artifact in [*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]]:
            self.assertTrue((self.work / artifact).exists(), artifact)
            (self.work / artifact).unlink()
        self.assertEqual(0, self.shell("\n".join(job["after_script"]), "-e", CI_JOB_STATUS="success").returncode)
        self.assertEqual([], list(self.work.iterdir()))

    def epilog(self, **variables):
        self.tool("scontrol", "echo node07; echo node08")
        self.tool("runuser", '[ "$1 $2 $3" = "-u ann --" ] || exit 9; shift 3; exec "$@"')
        self.tool("logger", f"printf '%s\\n' \"$@\" >> '{self.folder}/logged'")
        given = {"SLURM_JOB_ID": 88123, "SLURM_JOB_USER": "ann", "SLURM_JOB_NODELIST": "node[07-08]", "SLURMD_NODENAME": "node07",
                 "SLURM_JOB_STDOUT": self.work / "slurm-88123.out", **variables}
        result = self.shell((ROOT / "examples/slurm-epilog.sh").read_text(), **given)
        self.assertEqual(0, result.returncode, result.stderr)  # else the node is drained
        logged = self.folder / "logged"
        out = logged.read_text() if logged.exists() else ""
        logged.unlink(missing_ok=True)
        return out

    def test_epilog(self):
        (self.work / "slurm-88123.out").write_text(LOG)
        self.assertRegex(self.epilog(), r"^-t\ninquest\n--\njob=88123 cause=cuda-oom fingerprint=[0-9a-f]{16} retry=after-fix exclude=\n$")
        document = json.loads((self.work / "inquest-88123.json").read_text())
        self.assertEqual({"value": "88123", "system": "slurm", "basis": "file name"}, document["job"]["id"])
        (self.work / "inquest-88123.json").unlink()
        for variables in ({"SLURMD_NODENAME": "node08"}, {"SLURM_JOB_ID": "1;x"}, {"SLURM_JOB_STDOUT": "slurm.out"}, {"SLURM_JOB_STDOUT": "/none/x"}, {"SLURM_JOB_USER": ""}):
            self.assertEqual("", self.epilog(**variables))
        self.assertEqual(["slurm-88123.out"], [path.name for path in self.work.iterdir()])

    def container(self, name, *place):
        part = yaml.safe_load((ROOT / "examples" / name).read_text())
        for key in place:
            part = part[key]
        spec = part["spec"]
        self.assertEqual({mount["name"] for container in spec["containers"] + spec["initContainers"] for mount in container["volumeMounts"]},
                         {volume["name"] for volume in spec["volumes"]})
        container = spec["containers"][0]
        self.assertEqual(["bash", "-c"], container["command"][:2])
        return container["command"][2], {row["name"]: row["value"] for row in container["env"]}

    def test_pods_say_it_as_they_end(self):
        for name, place in (("kubernetes-job.yaml", ("spec", "template")), ("kubeflow.yaml", ("spec", "pytorchReplicaSpecs", "Worker", "template"))):
            with self.subTest(name=name):
                script, variables = self.container(name, *place)
                message, logs = self.folder / "message", self.folder / "logs"
                logs.mkdir()
                variables.update(LOGS=logs, TOOLS=self.tools, MESSAGE=message, HOSTNAME="train-worker-0")
                variables.update(SETTLE=0) if "SETTLE" in variables else None
                self.program(LOG, 1)
                self.assertEqual(1, self.shell(script, **variables).returncode)
                text = message.read_bytes()
                self.assertTrue(text.startswith(b"FAILED  cuda-oom: "), text)
                self.assertLessEqual(len(text), 4000)
                self.assertNotIn(b"\x1b", text)
                message.unlink()
                self.program("step 1\n", 0)
                self.assertEqual(0, self.shell(script, **variables).returncode)
                self.assertFalse(message.exists())
                shutil.rmtree(logs)


if __name__ == "__main__":
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
