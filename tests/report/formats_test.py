#!/usr/bin/env python3
"""Gives what --format prints for other programs to a program that reads it: of cases, and of logs that would like to be more
than text there.

formats_test.py BINARY CORPUS [--every N] [unittest options]
"""

import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
import xml.etree.ElementTree

import jsonschema

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import schemas

SUPPORT = pathlib.Path(__file__).resolve().parents[1] / "support"
EVIL = (
    "</script><script>evil()</script><img src=x onerror=evil()> </details> --> <!-- ]]> &amp; &#64;x \"quotes\" 'single' ``` ```` `x` ~~~ "
    "@octocat @octo-org/all octo/repo#17 #18 GH-19 !20 https://evil.example/a www.evil.example a@evil.example ![x](https://evil.example/b) [y](//evil.example) $x^2$ :tada: "
    "::error::evil ::stop-commands::evil ##[error]evil ##vso[task.complete] %0A::set-output name=evil::evil "
    "\u202egnp.exe\u202c \u2066x\u2069 \u200bx \u2028 \u05e9\u05dc \x00 \x07 \x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\ \ud83d"
)
STATUS_OF = {"healthy": 0, "failed": 1, "undecided": 2}
binary, corpus, every = "", pathlib.Path(), 1


def time_out(rank, op="ALLREDUCE"):
    return (
        f"[rank{rank}]:[E405 12:11:{rank:02}.123456789 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum=4410, OpType={op}, NumelIn=253440000, NumelOut=253440000, Timeout(ms)=600000) ran for {600000 + rank} milliseconds before timing out.\n"
    )


def out_of_memory(rank, more=""):
    return (
        f"[rank{rank}]: Traceback (most recent call last):\n[rank{rank}]:   File \"/app/train.py\", line 84, in main\n[rank{rank}]:     loss.backward()\n"
        f"[rank{rank}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.11 GiB of which 1.02 GiB is free. {more}\n"
    )


class Run:
    """One run of the program with every format."""

    def __init__(self, name, paths):
        self.name, self.paths = name, [str(path) for path in paths]
        self.status, text = self.print("json")
        self.json = json.loads(text)

    def print(self, name, *options):
        result = subprocess.run([binary, "--format", name, *options, *self.paths], stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        assert not result.stderr, result.stderr.decode()
        return result.returncode, result.stdout.decode()


class Runs:
    """Cases of the corpus, and jobs of which every text is hostile."""

    folder = None
    all = []

    @classmethod
    def get(cls):
        if cls.all:
            return cls.all
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="inquest-formats-"))
        folders = sorted(path.parent for path in corpus.glob("*/case.json"))[::every]
        cls.all = [Run(folder.name, sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "case.json")) for folder in folders]
        evil = EVIL.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        hostile = {
            "hostile": time_out(6) + "".join(time_out(rank, f"ALL{evil}REDUCE") for rank in range(6)) + out_of_memory(7, evil),
            "a line of 1 MB": out_of_memory(3, evil + "`@#" * 350_000),
            "lines that begin commands": "".join(f"{word}\n" for word in ("::error::evil", "/close", "# evil", "<!-- evil", "]]>", "```")) + out_of_memory(0, evil),
            "little": "hello\n",
        }
        for number, (name, text) in enumerate(hostile.items()):
            folder = cls.folder / str(number)
            folder.mkdir()
            # A slash in the name would be a folder.
            path = folder / f"jo\nb ::error::'\"<b>@octocat#1`` %41,x={number}\x1b[31m\u202e.log"
            path.write_text(text, encoding="utf-8")
            cls.all.append(Run(name, [path]))
        return cls.all


class FormatTest(unittest.TestCase):
    def each(self, name, check, *options):
        """Hands every run with what it prints to `check`; the exit status is that of any format."""
        for run in Runs.get():
            with self.subTest(case=run.name):
                status, text = run.print(name, *options)
                self.assertEqual((run.status, STATUS_OF[run.json["outcome"]]), (status, status))
                check(run, text)


class Rendered(html.parser.HTMLParser):
    """What cmark-gfm makes of a comment: its tags, its text outside of code, its code."""

    def __init__(self, markdown):
        super().__init__()
        self.tags, self.comments, self.open, self.prose, self.code = set(), [], [], "", []
        done = subprocess.run(["cmark-gfm", "--unsafe", "-e", "autolink", "-e", "strikethrough", "-e", "table"], input=markdown.encode(), capture_output=True, check=True, timeout=60)
        self.feed(done.stdout.decode())
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.open.append(tag)
        if tag == "code":
            self.code.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_comment(self, data):
        self.comments.append(data)

    def handle_data(self, data):
        if "code" in self.open:
            self.code[-1] += data
        else:
            self.prose += data


class MarkdownTest(FormatTest):
    TAGS = {"h3", "p", "strong", "ul", "ol", "li", "code", "pre", "details", "summary", "sub", "span", "blockquote"}

    def test_comments(self):
        def check(run, text):
            self.assertLess(len(text), 60_000)
            self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
            self.assertNotRegex(text, r"(?m)^/")
            comment = Rendered(text)
            self.assertEqual([], comment.open)
            self.assertEqual(set(), comment.tags - self.TAGS)
            self.assertEqual(1, len(comment.comments))
            # Mentions, issues, links, commands: nothing that a forge looks for in text.
            self.assertNotRegex(comment.prose, r"@\w|[#!%~]\w|GH-\d|://|www\.|:[a-z]+:|::")
            verdict = run.json["verdict"]
            plain = comment.prose.replace("\u200b", "")
            self.assertIn(verdict["title"], plain)
            if "@" not in json.dumps(verdict):
                self.assertIn(verdict["summary"], plain)
            quoted = "".join(comment.code)
            for cited in verdict["evidence"][:3]:
                self.assertIn(f":{cited['line']}", quoted)
            for remedy in verdict["remedies"] if run.json["outcome"] == "failed" else []:
                if remedy["command"] and "Not shown" not in text:
                    self.assertIn(remedy["command"] + "\n", comment.code, "a command is copied as it is")

        self.each("markdown", check)


class GithubTest(FormatTest):
    """As the runner reads lines: a command of the newer kind begins one, behind blanks; one of the older kind begins anywhere."""

    @staticmethod
    def decoded(text, more=()):
        for character, code in (("\r", "%0D"), ("\n", "%0A"), *more, ("%", "%25")):
            text = text.replace(code, character)
        return text

    def test_annotations(self):
        def check(run, text):
            self.assertNotIn("##", text)
            self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
            lines = text.split("\n")
            self.assertEqual("", lines.pop())
            self.assertLessEqual(len(lines), 10)
            levels = []
            for line in lines:
                match = re.fullmatch("::(error|warning|notice) (?:file=([^,:]+),line=([1-9][0-9]*),)?title=([^,:]+)::(.+)", line)
                self.assertIsNotNone(match, line)
                level, file, number, title, message = match.groups()
                self.assertLess(len(line), 20_000)
                levels.append(level)
                if file:
                    file = self.decoded(file, ((":", "%3A"), (",", "%2C")))
                    shown = [re.sub("[\x00-\x1f\u202e]", "?", path) for path in [*run.paths, *(read["path"] for read in run.json["inputs"])]]
                    self.assertIn(re.sub("[\u2400-\u241f]|<U\\+202E>", "?", file), shown)
                for part in self.decoded(message).split("\n"):
                    self.assertNotRegex(part, r"^\s*::")
            self.assertEqual({"failed": "error", "undecided": "warning", "healthy": "notice"}[run.json["outcome"]], levels[0])

        self.each("github", check)


class JunitTest(FormatTest):
    def test_suites(self):
        files = []

        def check(run, text):
            files.append(Runs.folder / f"{len(files)}.xml")
            files[-1].write_text(text, encoding="utf-8")
            suite = xml.etree.ElementTree.fromstring(text).find("testsuite")
            values = {each.get("name"): each.get("value") for each in suite.iter("property")}
            verdict = run.json["verdict"]
            self.assertEqual([verdict["cause"], verdict["fingerprint"], verdict["retry"]], [values.get(key) for key in ("cause", "fingerprint", "retry")])
            result = suite.find("testcase")[:]
            self.assertEqual({"failed": ["failure"], "undecided": ["error"], "healthy": []}[run.json["outcome"]], [each.tag for each in result])
            for each in result:
                self.assertEqual(verdict["cause"], each.get("type"))
                self.assertTrue(each.get("message"))
                for cited in verdict["evidence"]:
                    self.assertIn(f":{cited['line']}: ", each.text)

        self.each("junit", check)
        checked = subprocess.run(["xmllint", "--noout", "--nonet", "--schema", SUPPORT / "junit.xsd", *files], capture_output=True, text=True, timeout=120)
        self.assertEqual(0, checked.returncode, checked.stderr[-4000:])


class SarifTest(FormatTest):
    def test_logs(self):
        schema = json.loads((SUPPORT / "sarif.schema.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)

        def check(run, text):
            self.assertTrue(text.isascii())
            document = json.loads(text)
            self.assertEqual([], [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in validator.iter_errors(document)])
            results, rules = document["runs"][0]["results"], document["runs"][0]["tool"]["driver"]["rules"]
            self.assertEqual({"failed": ["error"], "undecided": ["warning"], "healthy": []}[run.json["outcome"]], [result["level"] for result in results])
            self.assertEqual(len(rules), len({rule["id"] for rule in rules}))
            for result in results:
                verdict = run.json["verdict"]
                self.assertEqual((verdict["cause"], verdict["fingerprint"]), (result["ruleId"], result["partialFingerprints"]["inquest/v1"]))
                self.assertEqual(result["ruleId"], rules[result["ruleIndex"]]["id"])
                places = [each["physicalLocation"] for each in result["locations"] + result["relatedLocations"]]
                paths = [urllib.parse.unquote(place["artifactLocation"]["uri"].removeprefix("file://")) for place in places]
                self.assertLessEqual(set(paths), {read["path"] for read in run.json["inputs"]})
                cited = [(each["source"], each["line"]) for each in verdict["evidence"]]
                self.assertEqual(cited[:1], [(path, place["region"]["startLine"]) for path, place in zip(paths, places)][:1] if cited else [])

        self.each("sarif", check)


class JsonLinesTest(FormatTest):
    def test_lines(self):
        schema = schemas.strict("events")
        jsonschema.Draft202012Validator.check_schema(schema)
        line_of = {name: jsonschema.Draft202012Validator({**schema["$defs"][name], "$defs": schema["$defs"]}) for name in ("verdict", "event", "count")}

        def check(run, text):
            self.assertTrue(text.isascii())
            rows = [json.loads(line) for line in text.splitlines()]
            for number, row in enumerate(rows):
                kind = "verdict" if number == 0 else "count" if row["kind"] in ("left-out", "nothing") else "event"
                self.assertEqual([], [f"{number}: {error.message[:300]}" for error in line_of[kind].iter_errors(row)])
            verdict = run.json["verdict"]
            self.assertEqual([verdict[key] for key in ("cause", "fingerprint", "summary")], [rows[0][key] for key in ("cause", "fingerprint", "summary")])
            ranks = [row["rank"] for row in rows[1:] if row["lane"] == "rank"]
            self.assertEqual(sorted(ranks), ranks)
            # The document has the same events, of the ranks that it lists.
            with_events = json.loads(run.print("json", "--timeline-events", "1000000")[1])
            lane = {"lane", "rank", "host", "pid", "name", "attempt", "culprit"}
            for rank in with_events["timeline"]:
                own = [{key: value for key, value in row.items() if key not in lane} for row in rows[1:] if row["rank"] == rank["rank"] and row["kind"] in ("state", "mark", "end")]
                self.assertEqual(rank["events"], own)
            bounded = [json.loads(line) for line in run.print("jsonl", "--timeline-events", "0")[1].splitlines()]
            self.assertLessEqual({row["kind"] for row in bounded[1:]}, {"left-out", "nothing"})
            events = sum(row["kind"] in ("state", "mark", "end") for row in rows)
            self.assertEqual(events, sum(row.get("times", 0) for row in bounded) - sum(row["times"] for row in rows[1:] if row["kind"] == "left-out"))

        self.each("jsonl", check)


def tearDownModule():
    if Runs.folder:
        shutil.rmtree(Runs.folder)


if __name__ == "__main__":
    binary, corpus = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
    rest = sys.argv[3:]
    if rest[:1] == ["--every"]:
        every, rest = int(rest[1]), rest[2:]
    unittest.main(argv=[sys.argv[0], *rest])
