#!/usr/bin/env python3
"""Runs `inquest evidence` over a case of the corpus and what its host's tools printed (tests/report/evidence/): every
citation is a line of a file, digests are those of sha256sum, no number stands where no line says it, nothing of a
hostile log is obeyed.

evidence_test.py BINARY CASES_DIR [unittest options]
"""

import hashlib
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

import jsonschema

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "report"))
import browser
import schemas

WRITTEN, COULD_NOT_RUN = 0, 3
SAMPLE = pathlib.Path(__file__).resolve().parents[1] / "report" / "evidence"
CASE = "xid79-on-one-of-sixteen-in-files"
EVIL = "</code><script>document.title='pwned'</script>\x1b]0;pwned\x07\u202e ::error::x $(touch pwned)"
binary, corpus = "", pathlib.Path()


def run(*arguments, cwd=None):
    result = subprocess.run([binary, "evidence", *map(os.fsencode, map(str, arguments))], cwd=cwd, capture_output=True, timeout=120)
    return result.returncode, result.stdout.decode(), result.stderr.decode()


def quotes(node):
    if isinstance(node, dict):
        if "time_basis" in node:
            yield node
        for child in node.values():
            yield from quotes(child)
    elif isinstance(node, list):
        for child in node:
            yield from quotes(child)


def lines_of(path):
    return path.read_bytes().decode(errors="replace").split("\n")


class Page(html.parser.HTMLParser):
    """What a page is made of: its elements, and where its attributes point."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.targets, self.ids, self.text = [], [], set(), ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.add(value)
            if name in ("href", "src", "action"):
                self.targets.append(value)
            assert not name.startswith("on") and name != "style", (tag, name)

    def handle_data(self, data):
        self.text += data


class EvidenceTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="inquest-evidence-"))
        self.case = self.folder / "run"
        shutil.copytree(corpus / CASE, self.case, ignore=shutil.ignore_patterns("case.json"))
        for path in SAMPLE.iterdir():
            if path.name != "README.md":
                shutil.copy(path, self.case)
        self.validator = jsonschema.Draft202012Validator(schemas.strict("evidence"))

    def tearDown(self):
        shutil.rmtree(self.folder)

    def document(self, *arguments):
        status, out, err = run("-f", "json", *arguments)
        self.assertEqual((WRITTEN, ""), (status, err))
        self.assertTrue(out.isascii())
        document = json.loads(out)
        self.assertEqual([], [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in self.validator.iter_errors(document)])
        return document

    def check_quotes(self, document):
        digests = {file["path"]: file["sha256"] for file in document["files"]}
        found = list(quotes(document))
        self.assertTrue(found)
        for quote in found:
            self.assertTrue(quote["whole"], quote)
            self.assertEqual(lines_of(pathlib.Path(quote["source"]))[quote["line"] - 1].removesuffix("\r"), quote["text"])
            self.assertEqual(digests[quote["source"]], quote["sha256"])
        for path, digest in digests.items():
            self.assertEqual(hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest(), digest)

    def test_every_citation_is_that_line_and_every_digest_that_of_its_file(self):
        for part in ("node08", "node08:5d:00.0", "node07"):
            with self.subTest(part=part):
                self.check_quotes(self.document(part, self.case))

    def test_every_statement_has_lines(self):
        document = self.document("node08:5d:00.0", self.case)
        for facts in [document["host_facts"], *(gpu["facts"] for gpu in document["gpus"])]:
            for fact in facts:
                for value in fact["values"]:
                    self.assertTrue(value["lines"], fact)
                    for line in value["lines"]:  # an address has eight digits of a domain, or four
                        self.assertIn(value["value"].split()[-1].lower().removeprefix("0000"), line["text"].lower())
        self.assertTrue(document["verdict"]["blames_part"])
        self.assertTrue(document["verdict"]["lines"])
        for finding in document["verdict"]["findings"]:
            self.assertTrue(finding["lines"], finding)

    def test_what_the_part_is(self):
        document = self.document("node08:5d:00.0", self.case)
        self.assertEqual({"index": None, "bus_id": "0000:5d:00.0", "uuid": "GPU-7c1d02ee-3b40-91aa-0c4f-5e8811d0a2b7"}, document["part"]["gpu"])
        gpu = document["gpus"][0]
        self.assertTrue(gpu["asked"])
        facts = {fact["property"]: [value["value"] for value in fact["values"]] for fact in gpu["facts"]}
        self.assertEqual(["16509323000000"], facts["serial"])
        self.assertEqual(["96.00.A5.00.03", "96.00.a5.00.01"], facts["vbios_version"])
        self.assertEqual(["692-2G520-0200-500"], facts["board_part_number"])
        self.assertEqual(["G520.0200.00.05"], facts["inforom.image"])
        self.assertEqual(["1"], facts["remapped_rows.uncorrectable"])
        self.assertEqual(["vbios_version"], [fact["property"] for fact in gpu["facts"] if fact["disagree"]])
        host = {fact["property"]: [value["value"] for value in fact["values"]] for fact in document["host_facts"]}
        self.assertEqual(["Supermicro SYS-821GE-TNHR/X13DEG-OAD, BIOS 2.1 12/01/2025"], host["machine"])
        self.assertEqual(["5.15.0-119-generic"], host["kernel"])
        self.assertEqual(["560.35.03"], host["driver_version"])
        self.assertEqual([11], [process["rank"] for process in document["processes"] if process["of_part"]])
        self.assertEqual(list(range(8, 16)), sorted(process["rank"] for process in document["processes"]))

    def test_a_number_stands_only_where_a_line_says_it(self):
        def said(kind, text):
            return {int(number) for number in re.findall(kind + r" \((?:PCI:)?[0-9a-f:.]+\): (\d+)", text)}

        for part in ("node08", "node08:5d:00.0", "node08:3b:00.0"):
            document = self.document(part, self.case)
            for row in document["lines"] + [dict(row, line=row["first"], **{row["kind"]: row["number"]}) for row in document["errors"]]:
                for kind, name in (("xid", r"NVRM: Xid"), ("sxid", r"SXid")):
                    if row.get(kind) is not None:
                        self.assertEqual({row[kind]}, said(name, row["line"]["text"]))
            for form in ("text", "html"):
                out = run("-f", form, part, self.case)[1]
                text = Page(out).text if form == "html" else out
                logged = said("NVRM: Xid", text)
                self.assertTrue(logged)
                self.assertLessEqual({int(number) for number in re.findall(r"\bXid (\d+)", text)}, logged)
        # The same host without the lines that number the error.
        for path in self.case.iterdir():
            path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if "Xid (" not in line))
        document = self.document("node08:5d:00.0", self.case)
        self.assertEqual([], [row for row in document["errors"] if row["kind"] == "xid"])
        self.assertTrue(any("fallen off the bus" in line["line"]["text"] for line in document["lines"]))
        for form in ("text", "html"):
            self.assertNotRegex(run("-f", form, "node08:5d:00.0", self.case)[1], r"\bXid \d")

    def test_the_same_bytes_for_any_order_and_any_threads(self):
        files = sorted(self.case.iterdir())
        for form in ("text", "json", "html"):
            outs = {run("-f", form, "node08", *order, "-j", threads)
                    for order in (files, files[::-1], files[5:] + files[:5]) for threads in (1, 3, 16)}
            self.assertEqual(1, len(outs), form)

    def test_a_file_by_its_name(self):
        for name, begins in (("case.html", "<!doctype html>"), ("case.json", "{"), ("case.txt", "Evidence: node08"), ("case", "<!doctype html>")):
            out = self.folder / name
            self.assertEqual((WRITTEN, "", ""), run("node08", self.case, "-o", out))
            self.assertTrue(out.read_text().startswith(begins), name)
            self.assertEqual((WRITTEN, "", ""), run("node08", self.case, "-o", out))
        self.assertEqual(run("-f", "json", "node08", self.case)[1], (self.folder / "case.json").read_text())
        status, _, err = run("node08", self.case, "-o", self.folder / "case.md")
        self.assertEqual(COULD_NOT_RUN, status)
        self.assertIn("end the name with .html, .json or .txt", err)
        self.assertFalse((self.folder / "case.md").exists())
        self.assertEqual(WRITTEN, run("node08", self.case, "-f", "text", "-o", self.folder / "case.md")[0])
        log = self.case / "node08-dmesg.txt"
        before = log.read_bytes()
        status, _, err = run("node08", self.case, "-o", log)
        self.assertEqual(COULD_NOT_RUN, status)
        self.assertIn("overwrite one of the inputs", err)
        self.assertEqual(before, log.read_bytes())

    def test_its_own_file_is_no_log(self):
        before = [run("-f", "json", "node08", self.case)[1]]
        for name in ("case.html", "case.json"):
            self.assertEqual(WRITTEN, run("node08", self.case, "-o", self.case / name)[0])
        document = self.document("node08", self.case)
        for key in ("host_facts", "gpus", "errors", "lines", "verdict"):
            self.assertEqual(json.loads(before[0])[key], document[key], key)

    def test_who_is_meant(self):
        for asked in ("16509323000000", "GPU-7c1d02ee-3b40-91aa-0c4f-5e8811d0a2b7", "node08:0000:5d:00.0"):
            self.assertEqual("0000:5d:00.0", self.document(asked, self.case)["part"]["gpu"]["bus_id"])
        for asked, words in (("node99", "node07, node08"), ("0000:5d:00.0", "node07:0000:5d:00.0, node08:0000:5d:00.0"), ("node08:77:00.0", "node08:0000:5d:00.0")):
            status, out, err = run(asked, self.case)
            self.assertEqual((COULD_NOT_RUN, ""), (status, out))
            self.assertIn(words, err)
        self.assertEqual(COULD_NOT_RUN, run()[0])
        self.assertEqual(COULD_NOT_RUN, run("node08")[0])
        self.assertEqual(COULD_NOT_RUN, run("node08", self.folder / "none")[0])
        self.assertEqual(COULD_NOT_RUN, run("-f", "xml", "node08", self.case)[0])
        nameless = self.folder / "ring.txt"
        nameless.write_text("[  188.490231] NVRM: Xid (PCI:0000:5d:00): 79, GPU has fallen off the bus.\n")
        self.assertEqual(COULD_NOT_RUN, run("node42", nameless)[0])
        self.assertEqual("node42", self.document("node42", "--host", "node42", nameless)["part"]["host"])

    def test_an_archive_is_cited_by_its_members_lines_and_by_its_own_digest(self):
        packed = self.folder / "node08.tar.gz"
        with tarfile.open(packed, "w:gz") as tar:
            tar.add(self.case, arcname="node08")
        document = self.document("node08:5d:00.0", packed)
        self.assertEqual([(str(packed), hashlib.sha256(packed.read_bytes()).hexdigest())], [(file["path"], file["sha256"]) for file in document["files"]])
        for quote in quotes(document):
            self.assertTrue(quote["whole"], quote)
            member = self.case / quote["source"].removeprefix(f"{packed}:node08/")
            self.assertEqual(lines_of(member)[quote["line"] - 1], quote["text"])

    def test_times_say_how_they_are_known(self):
        lines = {line["line"]["text"]: line["line"] for line in self.document("node08", self.case)["lines"]}
        ring = next(line for text, line in lines.items() if text.startswith("[188596.490231]"))
        self.assertEqual("2026-03-14T05:13:16", ring["time"])
        self.assertTrue(ring["time_basis"].startswith("counted from boot, which is dated by"))
        dmesg = next(line for text, line in lines.items() if text.startswith("[Sat Mar 14 05:13:16 2026] NVRM: Xid"))
        self.assertEqual(("2026-03-14T05:13:16", "printed", False), (dmesg["time"], dmesg["time_basis"], dmesg["zone_known"]))

    def test_nothing_of_a_hostile_log_is_obeyed(self):
        (self.case / "node08-evil.txt").write_text(
            f"[Sat Mar 14 05:13:15 2026] NVRM: Xid (PCI:0000:5d:00): 79, {EVIL}\n"
            f"==============NVSMI LOG==============\nGPU 00000000:5D:00.0\n    Serial Number : {EVIL}\n    GPU UUID : GPU-1{EVIL}\n")
        (self.case / f"node08-{EVIL.replace('/', '')}.txt").write_text("[Sat Mar 14 05:13:15 2026] NVRM: Xid (PCI:0000:5d:00): 48, text\n")
        for part in ("node08", "node08:5d:00.0"):
            page = Page(run("-f", "html", part, self.case)[1])
            self.assertNotIn("script", page.tags)
            self.assertEqual(set(), {target for target in page.targets if not target.startswith("#file-")})
            self.assertLessEqual({target[1:] for target in page.targets}, page.ids)
            for form in ("text", "html"):
                out = run("-f", form, part, self.case)[1]
                for bad in ("\x1b", "\x07", "\u202e", "<script"):
                    self.assertTrue(bad not in out or (bad == "<script" and form == "text"), (form, bad))
        status, out, err = run(EVIL, self.case)
        self.assertEqual(COULD_NOT_RUN, status)
        self.assertNotIn("\x1b", err)

    def test_a_browser_opens_it_without_a_complaint(self):
        if not browser.find():
            self.skipTest("no Chromium")
        out = self.folder / "case.html"
        self.assertEqual(WRITTEN, run("node08:5d:00.0", self.case, "-o", out)[0])
        chromium = browser.Browser()
        self.addCleanup(chromium.close)
        page = chromium.open(out)
        self.assertEqual([], page.problems())
        self.assertEqual([out.resolve().as_uri()], page.requests(), "nothing is asked for but the page")
        self.assertIn("16509323000000", page.evaluate("document.body.innerText"))
        self.assertTrue(page.evaluate("getComputedStyle(document.querySelector('.line')).borderLeftStyle == 'solid'"), "its style holds")


if __name__ == "__main__":
    binary, corpus = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
