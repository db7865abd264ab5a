#!/usr/bin/env python3
"""Runs the program as a user would: exit statuses, help, errors, colour, standard input, completions.

cli_test.py BINARY [unittest options]
"""

import json
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAILED, UNDECIDED, COULD_NOT_RUN = 1, 2, 3
OUT_OF_MEMORY = (
    b"[rank3]: Traceback (most recent call last):\n"
    b'[rank3]:   File "/app/train.py", line 84, in main\n'
    b"[rank3]:     loss.backward()\n"
    b"[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of "
    b"79.11 GiB of which 1.02 GiB is free. Including non-PyTorch memory, this process has 78.08 GiB memory in use.\n"
)
binary = ""


def run(*arguments, stdin=b"", **environment):
    clean = {"PATH": os.environ["PATH"], "TERM": "xterm", **environment}
    result = subprocess.run([binary, *map(str, arguments)], input=stdin, capture_output=True, timeout=60, env=clean)
    return result.returncode, result.stdout.decode(), result.stderr.decode()


def run_on_terminal(arguments, stdin=None, **environment):
    """Standard output and error on one terminal of 90 columns; all that appears there."""
    leader, follower = pty.openpty()
    clean = {"PATH": os.environ["PATH"], "TERM": "xterm", "PAGER": "cat", **environment}
    with subprocess.Popen([binary, *map(str, arguments)], stdin=follower if stdin is None else stdin, stdout=follower, stderr=follower, env=clean) as process:
        os.close(follower)
        shown = b""
        while True:
            ready, _, _ = select.select([leader], [], [], 60)
            try:
                piece = os.read(leader, 65536) if ready else b""
            except OSError:
                piece = b""
            if not piece:
                break
            shown += piece
        os.close(leader)
        status = process.wait(timeout=60)
    return status, shown.decode()


class CliTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="inquest-cli-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.log = self.folder / "job.log"
        self.log.write_bytes(OUT_OF_MEMORY)

    def refused(self, *arguments, **more):
        status, out, err = run(*arguments, **more)
        self.assertEqual((status, out), (COULD_NOT_RUN, ""), err)
        self.assertTrue(err.startswith("inquest: "), err)
        return err

    def test_a_terminal_has_a_pager(self):
        mark = "sed 's/^/P:/'"
        for environment in ({"PAGER": mark}, {"PAGER": "false", "INQUEST_PAGER": mark}):
            with self.subTest(environment):
                status, shown = run_on_terminal([self.log], **environment)
                self.assertEqual(status, FAILED)
                self.assertIn("cuda-oom", shown)
                self.assertTrue(all(line.startswith("P:") for line in shown.splitlines()), shown)
        plain = run_on_terminal([self.log])
        for arguments, environment in ((["--no-pager"], {"PAGER": mark}), ([], {"PAGER": ""}), ([], {"PAGER": mark, "INQUEST_PAGER": "cat"})):
            with self.subTest((arguments, environment)):
                self.assertEqual(plain, run_on_terminal([*arguments, self.log], **environment))
        # Left at once, it has shown enough; one that is not there costs nobody the report.
        status, shown = run_on_terminal([self.log], PAGER="head -n 1")
        self.assertEqual((status, len(shown.splitlines())), (FAILED, 1))
        status, shown = run_on_terminal([self.log], PAGER="no-such-pager")
        self.assertEqual(status, FAILED)
        self.assertTrue(shown.endswith(plain[1]), shown)
        self.assertNotIn("P:", run(self.log, PAGER=mark)[1])

    def test_a_cause_that_was_found(self):
        status, out, err = run(self.log)
        self.assertEqual((status, err), (FAILED, ""))
        self.assertIn("cuda-oom", out)
        self.assertIn("job.log:4", out)
        self.assertNotIn("\x1b", out)

    def test_standard_input(self):
        for arguments in ([], ["-"], ["--", "-"]):
            with self.subTest(arguments=arguments):
                status, out, _ = run(*arguments, stdin=OUT_OF_MEMORY)
                self.assertEqual(status, FAILED)
                self.assertIn("cuda-oom", out)

    def test_undecided(self):
        status, out, _ = run(stdin=b"hello\n")
        self.assertEqual(status, UNDECIDED)
        self.assertTrue(out.startswith("UNDECIDED"))

    def test_folder_and_files_give_the_same_bytes(self):
        (self.folder / "other.log").write_bytes(b"nothing of note\n")
        one = run("--format=json", self.log, self.folder / "other.log")
        two = run("-fjson", "-j1", self.folder / "other.log", self.log)
        three = run("-f", "json", "--threads", "4", self.folder)
        self.assertEqual(one, two)
        self.assertEqual(one, three)

    def test_html_is_written_beside_the_text(self):
        page = self.folder / "why.html"
        status, text, errors = run(self.log, "--html", page)
        self.assertEqual((FAILED, run(self.log)[1], ""), (status, text, errors))
        whole = page.read_text()
        self.assertTrue(whole.startswith("<!doctype html>") and whole.rstrip().endswith("</html>"))
        self.assertIn("GPU out of memory", whole)
        self.assertEqual((FAILED, "", ""), run("-q", self.log, "--html", page), "a page of ours is written anew")
        self.assertEqual(whole, page.read_text(), "the same, to the byte")
        # It lies among the logs, and counts for nothing there.
        beside = run("--format", "json", self.log, page)
        self.assertEqual(FAILED, beside[0])
        self.assertEqual([str(page)], [one["path"] for one in json.loads(beside[1])["inputs"] if one["form"]], "it is known to be no log")

    def test_html_overwrites_no_input(self):
        before = self.log.read_bytes()
        for inputs in ([self.log], [self.folder]):
            status, text, errors = run(*inputs, "--html", self.log)
            self.assertEqual((COULD_NOT_RUN, ""), (status, text))
            self.assertIn("overwrite one of the inputs", errors)
        self.assertEqual(before, self.log.read_bytes())

    def test_html_that_cannot_be_written_is_an_error_behind_the_verdict(self):
        status, text, errors = run(self.log, "--html", self.folder / "no-such-folder" / "why.html")
        self.assertEqual((COULD_NOT_RUN, run(self.log)[1]), (status, text))
        self.assertIn("why.html: No such file or directory", errors)
        self.assertIn("a value that is not empty", run(self.log, "--html", "")[2])

    def test_several_reports_of_one_run(self):
        files = [self.folder / name for name in ("why.json", "why.txt", "again.json")]
        json_too, text_too = run(self.log, "-f", "json")[1], run(self.log)[1]
        together = run(self.log, "-f", "json", "-o", files[0], "--format=text", f"--output={files[1]}", "--html", self.folder / "why.html", "-f", "text")
        self.assertEqual((FAILED, text_too, ""), together)
        self.assertEqual([json_too, text_too], [file.read_text() for file in files[:2]])
        self.assertTrue((self.folder / "why.html").exists())
        self.assertEqual((FAILED, "", ""), run(self.log, "-o", files[2], "-f", "json"), "all that is asked for is in the file")
        self.assertEqual((FAILED, "", ""), run("-q", self.log, "-f", "json", "-o", files[2], "-f", "text"))
        self.assertEqual(json_too, files[2].read_text(), "a report of ours is written anew")
        self.assertEqual((FAILED, text_too, ""), run(self.log, "-o", "-"))
        self.assertEqual((FAILED, "", ""), run(self.log, "-o", files[1], COLUMNS="40"))
        self.assertEqual(text_too, files[1].read_text(), "a file is as wide on every machine")
        self.assertEqual(sorted(["job.log", "why.html", *(file.name for file in files)]), sorted(path.name for path in self.folder.iterdir()), "nothing else is left")

    def test_reports_beside_the_logs_count_for_nothing(self):
        (self.folder / "rank1.log").write_bytes(b"[rank1]: step 10 of 20\n")
        before = json.loads(run("--format", "json", self.folder)[1])
        names = ("json", "jsonl", "markdown", "junit", "sarif")
        run(self.folder, *(word for name in names for word in ("-f", name, "-o", self.folder / f"why.{name}")), "--html", self.folder / "why.html")
        after = json.loads(run("--format", "json", self.folder)[1])
        self.assertEqual({f"why.{name}" for name in (*names, "html")}, {pathlib.Path(one["path"]).name for one in after["inputs"] if one["form"] and one["form"]["name"] == "inquest-report"})
        for key in ("verdict", "findings", "job", "timeline", "lifelines"):
            self.assertEqual(before[key], after[key])

    def test_reports_have_a_place_each(self):
        out = self.folder / "out"
        for arguments, part in ((["-f", "json", "-f", "text"], "only one report can go to standard output, and --format text is the second"),
                                (["-o", out, "-f", "json", "-o", self.folder / "more"], "more: there is no --format for it"),
                                (["-f", "json", "-o", out, "-f", "text", "-o", out], "out: two reports would be written to one file"),
                                (["--html", out, "-o", out], "out: two reports would be written to one file"),
                                (["--html", out, "--perfetto", out], "out: two reports would be written to one file"),
                                (["--perfetto", self.log], "job.log: the report would overwrite one of the inputs"),
                                (["-o", self.folder], "--output names a folder"),
                                (["-o", self.log], "job.log: the report would overwrite one of the inputs"),
                                (["-o", ""], "the name of a file, or -")):
            with self.subTest(part=part):
                self.assertIn(part, self.refused(self.log, *arguments))
                self.assertFalse(out.exists())
        self.assertEqual(OUT_OF_MEMORY, self.log.read_bytes())
        self.assertIn("overwrite one of the inputs", self.refused(self.folder, "-f", "json", "-o", self.log))

    def test_a_report_that_cannot_be_written_leaves_what_is_there(self):
        status, out, err = run(self.log, "-f", "json", "-o", self.folder / "none" / "why.json", "-f", "text")
        self.assertEqual((COULD_NOT_RUN, run(self.log)[1]), (status, out))
        self.assertIn("none/why.json: No such file or directory\n  the report of --output was not written; its folder must be there", err)
        status, _, err = run(self.log, "-f", "json", "-o", "/dev/full")
        self.assertEqual(COULD_NOT_RUN, status)
        self.assertIn("No space left", err)

    def test_a_report_keeps_links_rights_and_pipes(self):
        file, link = self.folder / "why.json", self.folder / "latest.json"
        run(self.log, "-f", "json", "-o", file)
        file.chmod(0o640)
        link.symlink_to(file.name)
        self.assertEqual((FAILED, "", ""), run("--attempt", "1", self.log, "-f", "json", "-o", link))
        self.assertTrue(link.is_symlink())
        self.assertEqual(0o640, file.stat().st_mode & 0o777)
        self.assertEqual((FAILED, run(self.log, "-f", "json")[1], ""), run(self.log, "-f", "json", "-o", "/dev/stdout"))

    def test_quiet_says_it_by_the_status(self):
        self.assertEqual(run("-q", self.log), (FAILED, "", ""))

    def test_help_and_version(self):
        for arguments in (["--help"], ["-h"], ["rules", "--help"], ["explain", "-h"], ["completion", "--help"]):
            with self.subTest(arguments=arguments):
                status, out, err = run(*arguments)
                self.assertEqual((status, err), (0, ""))
                for part in ("Usage:", "Examples:", "Options:", "--help"):
                    self.assertIn(part, out)
        self.assertRegex(run("--version")[1], r"^inquest \d+\.\d+\.\d+(\+g[0-9a-f]+)?\n$")
        self.assertEqual(run("-V"), run("--version"))
        self.assertEqual(run("version"), run("--version"))
        self.assertEqual(run("help"), run("--help"))
        self.assertEqual(run("help", "replay"), run("replay", "--help"))
        self.assertIn("did you mean inquest help replay?", run("help", "repay")[2])

    def test_manual_pages(self):
        for command in ([], ["rules"], ["explain"], ["collect"], ["replay"], ["triage"], ["evidence"], ["completion"], ["help"], ["version"]):
            with self.subTest(command):
                status, out, _ = run("help", *command, "--man")
                self.assertEqual(status, 0)
                self.assertTrue(out.startswith(".TH INQUEST"))
                for section in ("NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES"):
                    self.assertIn(f".SH {section}\n", out)
                self.assertIn("\\-\\-help", out)
        self.assertIn("|\\:float16|", run("help", "replay", "--man")[1])  # else no line can hold them all

    def test_word_that_is_nearly_a_command(self):
        status, _, err = run("exlain")
        self.assertEqual(status, 3)
        self.assertIn("did you mean inquest explain?", err)

    def test_explain_of_a_number_alone(self):
        self.assertEqual(run("explain", "79"), run("explain", "xid", "79"))
        self.assertEqual(run("explain", "20034"), run("explain", "sxid", "20034"))

    def test_nothing_and_a_terminal(self):
        status, shown = run_on_terminal([])
        self.assertEqual(status, COULD_NOT_RUN)
        self.assertIn("nothing to read", shown)
        self.assertIn("Usage:", shown)

    def test_what_cannot_run_says_why(self):
        missing = self.refused(self.folder / "missing.log")
        self.assertIn("missing.log", missing)
        self.assertIn("did you mean --format?", self.refused("--fromat", "json", self.log))
        self.assertIn("unknown option '-z'", self.refused("-z", self.log))
        self.assertIn("one of text, json, jsonl, markdown, junit, github, sarif", self.refused("--format", "xml", self.log))
        self.assertIn("a number", self.refused("--threads", "many", self.log))
        self.assertIn("a number", self.refused("--threads", "-1", self.log))
        self.assertIn("PATH=NAME", self.refused("--host", "dmesg.txt=", self.log))
        self.assertIn("--format", self.refused(self.log, "--format"))
        self.assertIn("one of list, show, test, lint", self.refused("rules"))
        self.assertIn("one of bash, zsh, fish", self.refused("completion", "tcsh"))
        self.assertIn("/nonexistent", self.refused("--rules", "/nonexistent", self.log))

    def test_nothing_came(self):
        empty = self.folder / "empty"
        empty.mkdir()
        self.assertIn("there is no file in it", self.refused(empty))
        (empty / ".hidden").write_bytes(OUT_OF_MEMORY)
        self.assertIn("hidden files are passed over", self.refused(empty))
        (empty / "a.log").write_bytes(b"")
        self.assertIn("a.log: it is empty", self.refused(empty))
        (empty / "b.log").write_bytes(b"")
        self.assertIn("all 2 files", self.refused(empty))
        self.assertEqual(run(empty, self.log)[0], FAILED)
        self.assertIn("2>&1 | inquest", self.refused(stdin=b""))
        self.assertIn("2>&1 | inquest", self.refused("-", stdin=b""))

    def test_what_is_no_log_is_named(self):
        core = self.folder / "core.4123"
        core.write_bytes(b"\x7fELF\x02\x01" + bytes(10) + b"\x04\x00" + bytes(4096) + OUT_OF_MEMORY)
        status, out, err = run(core)
        self.assertEqual(status, UNDECIDED, err)
        self.assertIn("No log: ", out)
        self.assertIn("core.4123: a core dump, which is not read", out.replace("\n  ", " "))
        (self.folder / "run.ipynb").write_text('{"cells": [{"cell_type": "code", "outputs": [{"text": ["step 1"]}]}], "nbformat": 4}')
        inputs = {pathlib.Path(one["path"]).name: one for one in json.loads(run("--format", "json", self.folder)[1])["inputs"]}
        forms = {name: one["form"] and one["form"]["name"] for name, one in inputs.items()}
        self.assertEqual(forms, {"core.4123": "core-dump", "job.log": None, "run.ipynb": "jupyter-notebook"})
        for one in inputs.values():
            self.assertEqual(one["claimed"] + one["plain"] + one["damaged"], one["bytes"])

    def test_flight_recorder(self):
        case = ROOT / "corpus/tensor-group-behind-a-pipeline"
        status, table, _ = run("fr", case)
        self.assertEqual(status, FAILED)
        self.assertIn("Who waits for whom", table)
        self.assertIn("for rank 6: no call of theirs is open", table)
        self.assertTrue(all(len(line) <= 100 for line in table.splitlines()))
        self.assertNotIn("\x1b", table)
        status, text, _ = run("fr", case, "--format", "json")
        document = json.loads(text)
        self.assertEqual((status, document["verdict"]["culprits"][0]["rank"]), (FAILED, 6))
        self.assertEqual(document["recorded"]["ranks"], list(range(8)))
        waits = document["recorded"]["waits"]
        self.assertIn([6], [wait["idle"] for wait in waits])
        self.assertEqual(run(case, "--format", "json")[1], text, "the analysis and fr print one document")
        self.assertEqual(run("fr", case, "-q"), (FAILED, "", ""))
        table, page = self.folder / "fr.txt", self.folder / "fr.md"
        self.assertEqual((FAILED, text, ""), run("fr", case, "-o", table, "-f", "text", "-f", "markdown", "-o", page, "-f", "json"))
        self.assertEqual(run("fr", case)[1], table.read_text())
        self.assertEqual(run(case, "-f", "markdown")[1], page.read_text())
        table.unlink()
        page.unlink()
        self.assertIn("name the dumps", self.refused("fr"))
        for which in ("verdict", "events", "triage", "evidence", "replay"):
            self.assertEqual(run("schema", which)[1], (ROOT / "docs" / f"{which}.schema.json").read_text())
        self.assertIn("one of verdict, events, triage, evidence, replay", self.refused("schema", "other"))
        self.assertIn("no dump of a Flight Recorder", self.refused("fr", ROOT / "corpus/oom-on-one-rank-others-time-out"))
        counted = ROOT / "corpus/ras-json-shows-who-is-behind-behind-who-waits"
        table = run("fr", counted)[1]
        self.assertIn("Communicator 0xd40b6a11f7c29032, AllReduce as NCCL's RAS counted what was launched: 2 ranks", table)
        self.assertIn("counts that are the same on all ranks", table)
        groups = json.loads(run("fr", counted, "--format", "json")[1])["recorded"]["groups"]
        self.assertEqual({group["counted_by"] for group in groups}, {"nccl-ras"})
        one = (ROOT / "corpus/rank-5-never-gathers/nccl_trace_rank_0").read_bytes()
        self.assertIn("which rank wrote them", self.refused("fr", "-", stdin=one))
        (self.folder / "nccl_trace_rank_0").write_bytes(one[:2] + b"cposix\nsystem\n" + one[2:])
        status, text, _ = run(self.folder, "--format", "json")
        problems = [entry["problem"] for entry in json.loads(text)["inputs"]]
        self.assertEqual(problems, [None, "GLOBAL at byte 2 would call what the file names, which is refused"])

    def test_two_dashes_end_the_options(self):
        (self.folder / "-dash.log").write_bytes(OUT_OF_MEMORY)
        (self.folder / "rules").write_bytes(OUT_OF_MEMORY)
        for name in ("-dash.log", "rules"):
            result = subprocess.run([binary, "--", name], cwd=self.folder, capture_output=True, timeout=60)
            self.assertEqual(result.returncode, FAILED, result.stderr)

    def test_one_missing_file_among_others_stops_the_run(self):
        self.refused(self.log, self.folder / "missing.log")

    def test_names_of_files_are_sanitised(self):
        err = self.refused(self.folder / "\x1b[31m\u202ered")
        self.assertNotIn("\x1b", err)
        self.assertNotIn("\u202e", err)

    def test_colour(self):
        cases = [
            ([], {}, True),
            ([], {"NO_COLOR": "1"}, False),
            ([], {"NO_COLOR": ""}, True),
            ([], {"TERM": "dumb"}, False),
            (["--no-color"], {}, False),
            (["--color", "never"], {}, False),
            (["--color=always"], {"NO_COLOR": "1"}, True),
        ]
        for arguments, environment, wanted in cases:
            with self.subTest(arguments=arguments, environment=environment):
                status, shown = run_on_terminal([*arguments, self.log], **environment)
                self.assertEqual(status, FAILED)
                self.assertEqual("\x1b[" in shown, wanted, shown)
        self.assertIn("\x1b[", run("--color", "always", self.log)[1])

    def test_timeline(self):
        case = ROOT / "corpus/oom-on-one-rank-others-time-out"
        status, picture, _ = run(case, "--timeline", COLUMNS="90", LC_ALL="C.UTF-8")
        self.assertEqual(status, FAILED)
        self.assertTrue(all(len(line) <= 90 for line in picture.splitlines()))
        self.assertIn("ranks 1, 3, 4, 6, 7 ", picture)
        self.assertIn("─ waiting", picture)
        self.assertIn("- waiting", run(case, "--timeline", LC_ALL="C")[1])
        self.assertEqual(run(case, "--timeline", "--format", "json")[1], run(case, "--format", "json")[1])

    def test_width(self):
        prompt = re.compile(r" +\S*[$#] ")  # commands are never wrapped
        shown = [line for line in run(self.log, COLUMNS="60")[1].splitlines() if not prompt.match(line)]
        self.assertLessEqual(max(map(len, shown)), 100)
        wide = run(self.log, COLUMNS="400")[1]
        self.assertIn("79.11 GiB of which 1.02 GiB is free", wide)

    def test_reader_that_goes_away(self):
        read, write = os.pipe()
        os.close(read)
        result = subprocess.run(["bash", "-c", f'"{binary}" --format json "{self.log}"; echo "status $?" >&2'], stdout=write, stderr=subprocess.PIPE, timeout=60)
        os.close(write)
        self.assertEqual(result.stderr.decode(), f"status {FAILED}\n")

    def test_full_disk(self):
        if not os.path.exists("/dev/full"):
            return
        with open("/dev/full", "wb") as full:
            result = subprocess.run([binary, self.log], stdout=full, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(result.returncode, COULD_NOT_RUN)
        self.assertIn("standard output", result.stderr.decode())

    def test_explain(self):
        status, out, _ = run("explain")
        self.assertEqual(status, 0)
        self.assertIn("p2p-transport", out)
        status, out, _ = run("explain", "cuda-oom")
        self.assertEqual(status, 0)
        for part in ("What to do", "What to collect", "Signatures"):
            self.assertIn(part, out)
        self.assertIn("did you mean cuda-oom?", self.refused("explain", "cuda-omm"))

    def test_explain_numbers(self):
        status, out, _ = run("explain", "xid", "79")
        self.assertEqual(status, 0)
        for part in ("Xid 79", "gpu-fault", "What to do", "What it needs", "Source"):
            self.assertIn(part, out)
        status, out, _ = run("explain", "sxid", "20034", "xid", "31")
        self.assertEqual(status, 0)
        self.assertIn("nvlink-fault", out)
        self.assertIn("cuda-kernel-fault", out)
        status, out, _ = run("explain", "xid")
        self.assertGreater(len(out.splitlines()), 80)
        self.assertIn("inquest explain sxid lists all", self.refused("explain", "sxid", "1"))

    def test_rules(self):
        status, out, _ = run("rules", "list")
        self.assertEqual(status, 0)
        ids = [line.split()[0] for line in out.splitlines()]
        self.assertEqual(len(ids), len(set(ids)))
        of_cause = run("rules", "list", "--cause", "cuda-oom")[1].splitlines()
        self.assertTrue(of_cause)
        self.assertTrue(all(line.split()[1] == "cuda-oom" for line in of_cause))
        status, out, _ = run("rules", "show", of_cause[0].split()[0])
        self.assertEqual(status, 0)
        self.assertIn("Does not match", out)
        self.assertIn("did you mean", self.refused("rules", "show", ids[0] + "x"))
        self.assertIn("did you mean cuda-oom?", self.refused("rules", "list", "--cause", "cuda-oon"))
        status, out, _ = run("rules", "lint")
        self.assertEqual(status, 0, out)
        status, out, _ = run("rules", "test")
        self.assertEqual(status, 0, out)
        self.assertIn(" 0 failed", out)

    def test_rules_of_a_folder(self):
        rule = self.folder / "mine" / "signatures" / "storage-stall" / "blue-disk.yaml"
        rule.parent.mkdir(parents=True)
        good = (
            "summary: The blue disk stopped.\ntext: 'blue disk stopped turning'\nstrength: decisive\nreferences: [ours]\n"
            "samples:\n  match: ['E: blue disk stopped turning']\n  differ: ['E: blue disk started turning']\n"
        )
        rule.write_text(good)
        mine = self.folder / "mine"
        self.assertEqual(run("rules", "lint", "--rules", mine)[0], 0)
        self.assertEqual(run("--rules", mine, "rules", "test")[0], 0)
        status, out, _ = run("--rules", mine, stdin=b"E: blue disk stopped turning\n")
        self.assertEqual(status, FAILED, out)
        self.assertIn("storage-stall", out)
        rule.write_text(good.replace("decisive", "sure").replace("started", "stopped"))
        status, out, _ = run("rules", "lint", "--rules", mine)
        self.assertEqual(status, 1)
        self.assertIn("blue-disk.yaml:3: bad strength 'sure'; one of hint, supporting, decisive\n", out)
        status, _, err = run("--rules", mine, self.log)
        self.assertEqual(status, COULD_NOT_RUN)
        self.assertIn("blue-disk.yaml:3: ", err)
        rule.write_text(good.replace("started", "stopped"))
        status, out, _ = run("rules", "test", "--rules", mine)
        self.assertEqual(status, 1)
        self.assertIn("must not match: 'E: blue disk stopped turning'\n  it holds 'blue disk stopped turning'\n", out)
        rule.write_text(good.replace("'E: blue disk stopped turning'", "'E: blue disk stopped', 'I: no disk'"))
        status, out, _ = run("rules", "test", "--rules", mine)
        self.assertEqual(status, 1)
        self.assertIn("does not match: 'E: blue disk stopped'\n  the line has 'blue disk stopped', but not ' turning' behind it\n", out)
        self.assertIn("does not match: 'I: no disk'\n  not even the beginning of its expression is in the line\n", out)
        rule.write_text(good.replace("'blue disk", "'^E: blue disk").replace("'E: blue", "'[rank3]: E: blue").replace("strength: decisive", "strength: decisive\nwhere: {component: nccl}"))
        status, out, _ = run("rules", "test", "--rules", mine)
        self.assertEqual(status, 1)
        self.assertIn("the rule is for component nccl, the line is of none", out)

    def test_lint_names_a_covered_rule(self):
        folder = self.folder / "twice" / "signatures" / "storage-stall"
        folder.mkdir(parents=True)
        for name, text, words in (("blue-disk", "blue disk stopped", "blue disk stopped turning"), ("any-disk", "disk stopped", "red disk stopped")):
            (folder / f"{name}.yaml").write_text(
                f"summary: A disk stopped.\ntext: '{text}'\nstrength: decisive\nreferences: [ours]\n"
                f"samples:\n  match: ['E: {words}']\n  differ: ['E: disk started']\n"
            )
        status, out, _ = run("rules", "lint", "--rules", self.folder / "twice")
        self.assertEqual(status, 0)
        self.assertIn("blue-disk.yaml: note: any-disk reads all of its samples", out)
        self.assertNotIn("any-disk.yaml: note:", out)

    def test_completions(self):
        for shell in ("bash", "zsh", "fish"):
            with self.subTest(shell=shell):
                status, script, _ = run("completion", shell)
                self.assertEqual(status, 0)
                for word in ("format", "no-color", "explain", "lint", "json"):
                    self.assertIn(word, script)
                if shutil.which(shell):
                    check = subprocess.run([shell, "-n"], input=script.encode(), capture_output=True, timeout=60)
                    self.assertEqual((check.returncode, check.stderr), (0, b""))

    def complete(self, line):
        words = line.split(" ")
        script = run("completion", "bash")[1]
        script += f"COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}; _inquest 2>/dev/null\n"
        script += 'printf "%s\\n" "${COMPREPLY[@]}"\n'
        path = f"{pathlib.Path(binary).parent}:{os.environ['PATH']}"
        result = subprocess.run(["bash"], input=script.encode(), capture_output=True, cwd=self.folder, timeout=60, env={"PATH": path})
        return result.stdout.decode().split()

    def test_bash_completes(self):
        self.assertEqual(self.complete("inquest --form"), ["--format"])
        self.assertEqual(self.complete("inquest --format j"), ["json", "jsonl", "junit"])
        self.assertEqual(self.complete("inquest expl"), ["explain"])
        self.assertEqual(self.complete("inquest jo"), ["job.log"])
        self.assertEqual(self.complete("inquest explain cuda-o"), ["cuda-oom"])
        self.assertEqual(self.complete("inquest rules l"), ["list", "lint"])
        self.assertTrue(self.complete("inquest rules show collective-t"))
        self.assertEqual(self.complete("inquest rules list --cau"), ["--cause"])

    def test_progress_only_on_a_terminal(self):
        self.assertEqual(run(self.log)[2], "")
        slow = subprocess.Popen(["bash", "-c", "sleep 1.2; echo done"], stdout=subprocess.PIPE)
        status, shown = run_on_terminal(["--no-color", "-"], stdin=slow.stdout)
        slow.stdout.close()
        slow.wait(timeout=60)
        self.assertEqual(status, UNDECIDED)
        self.assertIn("\r\x1b[K", shown)
        self.assertIn("UNDECIDED", shown)


if __name__ == "__main__":
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
