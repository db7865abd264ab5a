#!/usr/bin/env python3
"""Validates what `inquest --format json` prints for every case against docs/verdict.schema.json.

schema_test.py BINARY CASES_DIR [unittest options]
"""

import json
import pathlib
import subprocess
import sys
import unittest

import jsonschema

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import schemas

ROOT = pathlib.Path(__file__).resolve().parents[2]
WHERE_ASKED_FOR = {"document": {"links"}, "rank_timeline": {"events", "events_left_out"}}  # by --timeline-events
EXIT_OF_OUTCOME = {"healthy": 0, "failed": 1, "undecided": 2}
binary = ""
cases = pathlib.Path()


def load_schema():
    return schemas.strict("verdict")


def run(arguments, text=None):
    result = subprocess.run([binary, "--format", "json", *arguments], input=text or b"", capture_output=True, timeout=120)
    return result.returncode, json.loads(result.stdout)


class SchemaTest(unittest.TestCase):
    def test_later_versions_have_more_keys(self):
        def grow(node):
            if isinstance(node, dict):
                return {**{key: grow(child) for key, child in node.items()}, "of a later version": []}
            return [grow(child) for child in node] if isinstance(node, list) else node

        case = next(case for case in sorted(cases.iterdir()) if case.name == "rank-5-never-gathers")
        errors = list(jsonschema.Draft202012Validator(schemas.published("verdict")).iter_errors(grow(run([case])[1])))
        self.assertEqual([error.message[:300] for error in errors], [])

    def setUp(self):
        self.validator = jsonschema.Draft202012Validator(load_schema())

    def check(self, arguments, text=None):
        status, document = run(arguments, text)
        errors = [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in self.validator.iter_errors(document)]
        self.assertEqual(errors, [])
        self.assertEqual(status, EXIT_OF_OUTCOME[document["outcome"]])
        for read in document["inputs"]:
            self.assertEqual(read["claimed"] + read["plain"] + read["damaged"], read["bytes"])
        return document

    def test_schema_is_a_schema_and_strict(self):
        schema = load_schema()
        jsonschema.Draft202012Validator.check_schema(schema)
        for name, part in [("document", schema), *schema["$defs"].items()]:
            if "properties" in part:
                self.assertFalse(part["additionalProperties"], name)
                self.assertEqual(sorted(part["required"]), sorted(set(part["properties"]) - WHERE_ASKED_FOR.get(name, set())), name)

    def test_every_case(self):
        folders = sorted(path.parent for path in cases.glob("*/case.json"))
        self.assertTrue(folders)
        for folder in folders:
            with self.subTest(case=folder.name):
                files = sorted(str(path) for path in folder.rglob("*") if path.is_file() and path.name != "case.json")
                document = self.check(files)
                self.assertEqual(sorted({read["path"].split(":")[0] for read in document["inputs"]}), files)  # members of an archive count as it

    def test_events_of_ranks(self):
        for folder in sorted(path.parent for path in cases.glob("*/case.json"))[::8]:
            with self.subTest(case=folder.name):
                whole, some, none = (self.check([f"--timeline-events={most}", folder]) for most in (1000, 3, 0))
                links = whole.pop("links")
                self.assertEqual(links, some.pop("links"))
                for link in links:  # of two files' lines of one time nothing says which was first
                    if link["from"]["source"] == link["to"]["source"]:
                        self.assertLess(link["from"]["order"], link["to"]["order"])
                # An arrow that ends on a rank's event is the one that the event says it follows.
                ends = {(link["from"]["order"], link["to"]["order"]) for link in links}
                for event in (event for rank in whole["timeline"] for event in rank["events"]):
                    self.assertLessEqual({(follows["order"], event["order"]) for follows in event["follows"]}, ends)
                for all_of_it, rank in zip(whole["timeline"], some["timeline"]):
                    events, left_out = all_of_it.pop("events"), all_of_it.pop("events_left_out")
                    self.assertEqual(sorted(event["order"] for event in events), [event["order"] for event in events])
                    self.assertEqual(len(events) + left_out, len(rank["events"]) + rank["events_left_out"])
                    self.assertLessEqual(len(rank["events"]), 3)
                    for event in rank["events"]:
                        self.assertIn(event, events)
                    self.assertTrue(not events or rank["events"])
                    del rank["events"], rank["events_left_out"]
                self.assertEqual(none, whole)
                self.assertEqual(none, some)

    def test_next_to_nothing(self):
        document = self.check(["-"], b"\n")
        self.assertEqual(document["outcome"], "undecided")
        self.assertEqual(document["verdict"]["cause"], "unknown")

    def test_hostile_text(self):
        hostile = b"[rank0]: RuntimeError: \x1b]8;;http://x\x1b\\ \xe2\x80\xae \xff\x00 </script> $(rm -rf /) \x9b31m\n"
        self.check(["-"], b"[rank0]: Traceback (most recent call last):\n" + hostile * 3)

    def test_example_of_the_documentation(self):
        text = (ROOT / "docs" / "json.md").read_text()
        example = json.loads(text.split("```json\n", 1)[1].split("```", 1)[0])
        self.validator.validate(example)


if __name__ == "__main__":
    binary, cases = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
