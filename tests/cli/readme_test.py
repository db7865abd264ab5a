#!/usr/bin/env python3
"""Holds README.md against the program: what it shows is printed, the options it names are known, its links lead somewhere.

readme_test.py BINARY [unittest options]
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS = {"run-1": "oom-on-one-rank-others-time-out", "run-2": "oom-on-one-rank-others-time-out", "run-3": "gpu-fell-off-the-bus-in-the-epilog"}
LEFT_OUT = "..."
binary = ""


def blocks(language):
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    return [text for name, text in fences if name == language]


def shown():
    """Commands with what the page says that they print, of those that need nothing but the corpus."""
    for block in blocks("") + blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, output = part.split("\n", 1)
            words = command.split("#")[0].split()
            if output and words[0] == "inquest" and any(word.startswith(("corpus/", "runs/")) for word in words) and "|" not in words:
                yield words, output.splitlines()


def commands():
    """Every `inquest ...` of a console block, cut at a comment or a pipe."""
    for block in blocks("console") + blocks(""):
        for line in re.findall(r"^\$ (.*)", block, re.M):
            for part in re.split(r"[|;]|\s#|\s>", line):
                if part.split()[:1] == ["inquest"]:
                    yield part.split()


class ReadmeTest(unittest.TestCase):
    def printed(self, words):
        with tempfile.TemporaryDirectory(prefix="inquest-readme-") as folder:
            (pathlib.Path(folder) / "corpus").symlink_to(ROOT / "corpus")
            for name, case in RUNS.items():
                shutil.copytree(ROOT / "corpus" / case, pathlib.Path(folder) / "runs" / name, ignore=shutil.ignore_patterns("case.json"))
            return subprocess.run([binary, *words[1:]], cwd=folder, capture_output=True, text=True, timeout=60).stdout.splitlines()

    def test_what_is_shown_is_printed(self):
        examples = list(shown())
        self.assertGreaterEqual(len(examples), 3)
        for words, lines in examples:
            with self.subTest(command=" ".join(words)):
                printed, whole = self.printed(words), True
                for line in lines:
                    if line == LEFT_OUT:
                        whole = False
                        continue
                    self.assertIn(line, printed)
                    at = printed.index(line)
                    self.assertTrue(at == 0 or not whole, f"not shown: {printed[:at]}")
                    printed, whole = printed[at + 1:], True
                self.assertTrue(not whole or not printed, f"not shown: {printed}")

    def test_options_are_known(self):
        helps = {}
        seen = 0
        for words in commands():
            own = words[1:2] if words[1:2] and re.fullmatch(r"[a-z]+", words[1]) else []
            key = tuple(own)
            if key not in helps:
                run = subprocess.run([binary, "help", *own], capture_output=True, text=True, timeout=60)
                helps[key] = run.stdout if run.returncode == 0 else subprocess.run([binary, "help"], capture_output=True, text=True, timeout=60).stdout
            for option in (word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)):
                seen += 1
                self.assertRegex(helps[key], rf"(?<![\w-]){re.escape(option)}(?![\w-])", " ".join(words))
        self.assertGreater(seen, 15)

    def test_links_lead_somewhere(self):
        links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / "README.md").read_text())
        self.assertTrue(links)
        for link in links:
            self.assertTrue((ROOT / link).exists(), link)


if __name__ == "__main__":
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
