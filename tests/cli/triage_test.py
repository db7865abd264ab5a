#!/usr/bin/env python3
"""Runs `inquest triage` over cases of the corpus, copied into folders: table, documents, statuses, hostile names.

triage_test.py BINARY CASES_DIR [unittest options]
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import jsonschema

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import schemas

HEALTHY, FAILED, UNDECIDED, COULD_NOT_RUN = 0, 1, 2, 3
CASES = {
    "run-1": "oom-on-one-rank-others-time-out",
    "run-2": "oom-on-one-rank-others-time-out",
    "run-3": "gpu-fell-off-the-bus-in-the-epilog",
    "run-4": "rank-5-never-gathers",
    "run-5": "scheduler-summary-says-completed",
    "run-6": "slurm-time-limit-ends-a-good-run",
}
EVIL = "a\x1b[31m\n::error::x $(touch pwned) `id` \u202e\udcff"
binary, corpus = "", pathlib.Path()


def run(*arguments):
    result = subprocess.run([binary, "triage", *map(os.fsencode, map(str, arguments))], capture_output=True, timeout=120)
    return result.returncode, result.stdout.decode(), result.stderr.decode()


class TriageTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="inquest-triage-"))
        self.runs = self.folder / "runs"
        self.runs.mkdir()
        for name, case in CASES.items():
            self.copy(name, case)
        self.validator = jsonschema.Draft202012Validator(schemas.strict("triage"))

    def tearDown(self):
        shutil.rmtree(self.folder)

    def copy(self, name, case):
        shutil.copytree(corpus / case, self.runs / name, ignore=shutil.ignore_patterns("case.json"))

    def document(self, *arguments):
        status, out, _ = run("-f", "json", *arguments)
        document = json.loads(out)
        self.assertEqual([error.message[:300] for error in self.validator.iter_errors(document)], [])
        return status, document

    def test_a_row_for_each_folder_as_the_analysis_alone_has_it(self):
        status, document = self.document(self.runs)
        self.assertEqual(FAILED, status)
        self.assertEqual(sorted(CASES), [job["name"] for job in document["jobs"]])
        for job in document["jobs"]:
            alone = json.loads(subprocess.run([binary, "-f", "json", self.runs / job["name"]], capture_output=True).stdout)
            for key in ("cause", "confidence", "fingerprint", "culprits", "retry", "exclude_hosts", "summary"):
                self.assertEqual(alone["verdict"][key], job[key], job["name"])
            self.assertEqual(alone["outcome"], job["outcome"])
            self.assertEqual({key: alone["job"][key] for key in job["job"]}, job["job"])
            self.assertEqual(alone["job"]["hosts"], job["hosts"])
        self.assertEqual(["run-1", "run-2"], document["fingerprints"][0]["jobs"])
        self.assertEqual({"host": "ember-g03", "jobs": ["run-1", "run-2"]}, document["hosts"][0])

    def test_lines_are_the_rows(self):
        _, document = self.document(self.runs)
        status, out, _ = run("-f", "jsonl", self.runs)
        self.assertEqual(FAILED, status)
        lines = [json.loads(line) for line in out.splitlines()]
        for line, job in zip(lines, document["jobs"], strict=True):
            self.validator.validate(line)
            self.assertEqual(job, {key: value for key, value in line.items() if key not in ("schema", "version")})

    def test_the_same_for_any_number_of_threads(self):
        for form in ("text", "json", "jsonl"):
            self.assertEqual(1, len({run("-f", form, "-j", threads, self.runs) for threads in (1, 2, 3, 16)}))

    def test_the_table_says_what_jobs_share(self):
        _, out, _ = run(self.runs)
        self.assertIn("2 jobs, same fingerprint ", out)
        self.assertIn("ember-g03 is the culprit of 2 jobs", out)
        self.assertIn("6 jobs: 5 failed, 1 healthy, 0 undecided", out)

    def test_exit_status(self):
        self.assertEqual(HEALTHY, run(self.runs / "run-5")[0])
        (self.folder / "stopped.log").write_text("step 1 loss 2.0\n")
        self.assertEqual(UNDECIDED, run(self.runs / "run-5", self.folder / "stopped.log")[0])
        (self.folder / "empty.log").write_text("")
        status, out, _ = run(self.runs / "run-5", self.folder / "empty.log")
        self.assertEqual(UNDECIDED, status)
        self.assertIn("not read", out)
        self.assertEqual(COULD_NOT_RUN, run(self.folder / "empty.log")[0])
        self.assertEqual(COULD_NOT_RUN, run(self.folder / "none")[0])
        self.assertEqual(COULD_NOT_RUN, run()[0])
        self.assertEqual(COULD_NOT_RUN, run("-f", "xml", self.runs)[0])

    def test_files_of_a_batch_system_are_a_job_each(self):
        logs = self.folder / "logs"
        logs.mkdir()
        for name in ("slurm-1.out", "slurm-1.err", "slurm-2.out"):
            (logs / name).write_text("[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
        _, document = self.document(logs)
        self.assertEqual([("slurm-1.out", "1"), ("slurm-2.out", "2")], [(job["name"], job["job"]["id"]["value"]) for job in document["jobs"]])
        self.assertEqual(2, len(document["jobs"][0]["paths"]))

    def test_its_own_report_is_no_job(self):
        before = run("-f", "json", self.runs)[1]
        for form, name in (("json", "triage.json"), ("jsonl", "triage.jsonl"), ("json", "triage.json")):
            self.assertEqual((FAILED, "", ""), run("-f", form, "-o", self.runs / name, self.runs))
        self.assertEqual(before, (self.runs / "triage.json").read_text())
        self.assertIn("overwrite one of the inputs", run("-o", next(path for path in (self.runs / "run-4").rglob("*") if path.is_file()), self.runs)[2])

    def test_hostile_names(self):
        self.copy(EVIL, "oom-on-one-rank-others-time-out")
        status, out, _ = run(self.runs)
        self.assertEqual(FAILED, status)
        for part in ("\x1b", "\n::", "\u202e"):
            self.assertNotIn(part, out)
        status, document = self.document(self.runs)
        self.assertEqual(7, len(document["jobs"]))
        self.assertTrue(run("-f", "jsonl", self.runs)[1].isascii())
        self.assertEqual(7, len(run("-f", "jsonl", self.runs)[1].splitlines()))


if __name__ == "__main__":
    binary, corpus = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
