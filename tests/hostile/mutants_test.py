#!/usr/bin/env python3
"""Damages logs of the corpus in ways that keep them readable, and holds every document that comes of it against its schema.

mutants_test.py BINARY CORPUS_DIR [--count N] [--seed S] [--keep DIR]
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import jsonschema

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import schemas

ROOT = pathlib.Path(__file__).resolve().parents[2]
NUMBERS = (b"0", b"-1", b"1", b"2147483647", b"-2147483648", b"4294967295", b"1000000000", b"9223372036854775807",
           b"18446744073709551615", b"99999999999999999999999", b"1e308", b"0x7fffffffffffffff", b"", b"NaN")
NUMBER = re.compile(rb"-?\b\d+\b")
EXIT_OF_OUTCOME = {"healthy": 0, "failed": 1, "undecided": 2}
#: What a document may add to its input: its own words, rules quoted, and a row for each line that names a rank.
MOST_BYTES = 1 << 20
MOST_BYTES_EACH = 40


def change_numbers(chance, lines, _):
    number = chance.choice(NUMBERS)
    for at in chance.sample(range(len(lines)), min(len(lines), chance.choice((1, 3, 30)))):
        found = list(NUMBER.finditer(lines[at]))
        if found:
            chosen = chance.choice(found)
            lines[at] = lines[at][:chosen.start()] + number + lines[at][chosen.end():]
    return lines


def change_one_number_everywhere(chance, lines, _):
    text = b"\n".join(lines)
    found = NUMBER.findall(text)
    return re.sub(rb"\b" + re.escape(chance.choice(found)) + rb"\b", chance.choice(NUMBERS), text).split(b"\n") if found else lines


def drop_lines(chance, lines, _):
    share = chance.random()
    return [line for line in lines if chance.random() < share]


def keep_a_stretch(chance, lines, _):
    begin = chance.randrange(len(lines))
    return lines[begin:begin + chance.randrange(1, 40)]


def repeat_lines(chance, lines, _):
    return [line for line in lines for _ in range(chance.choice((1, 1, 1, 2, 50)))]


def shuffle(chance, lines, _):
    chance.shuffle(lines)
    return lines


def mix(chance, lines, other):
    for line in chance.sample(other, min(len(other), 30)):
        lines.insert(chance.randrange(len(lines) + 1), line)
    return lines


def cut_words(chance, lines, _):
    for at in chance.sample(range(len(lines)), min(len(lines), 10)):
        words = lines[at].split(b" ")
        del words[chance.randrange(len(words))]
        lines[at] = b" ".join(words)
    return lines


def join_lines(chance, lines, _):
    for at in chance.sample(range(len(lines)), min(len(lines), 10)):
        lines[at] += chance.choice(lines)[:chance.randrange(400)]
    return lines


def flip_bytes(chance, lines, _):
    text = bytearray(b"\n".join(lines))
    for _ in range(chance.choice((1, 10, 100))):
        if text:
            text[chance.randrange(len(text))] = chance.randrange(256)
    return bytes(text).split(b"\n")


WAYS = (change_numbers, change_one_number_everywhere, drop_lines, keep_a_stretch, repeat_lines, shuffle, mix, cut_words, join_lines, flip_bytes)


def mutant(seed, number, logs):
    chance = random.Random(f"{seed} {number}")
    lines = chance.choice(logs).split(b"\n")
    for way in chance.choices(WAYS, k=chance.choice((1, 2, 3))):
        lines = way(chance, lines, chance.choice(logs).split(b"\n")) or [b""]
    return b"\n".join(lines)


def complaint(binary, validator, path, size):
    """What is wrong with the answer; None: nothing."""
    if size == 0:
        return None  # refused, as cli_test.py says
    try:
        done = subprocess.run([binary, "--format", "json", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30, check=False)
    except subprocess.TimeoutExpired:
        return "took more than 30 s"
    if done.returncode not in EXIT_OF_OUTCOME.values():
        return f"ended with {done.returncode}: {done.stderr[-2000:].decode(errors='replace')}"
    if len(done.stdout) > MOST_BYTES + MOST_BYTES_EACH * size:
        return f"{len(done.stdout)} bytes of JSON for a log of {size}"
    document = json.loads(done.stdout.decode("ascii"))
    errors = [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}" for error in validator.iter_errors(document)]
    if EXIT_OF_OUTCOME.get(document["outcome"]) != done.returncode:
        errors.append(f"exit status {done.returncode} of a verdict that is {document['outcome']}")
    for entry in document["inputs"]:
        if entry["claimed"] + entry["plain"] + entry["damaged"] != entry["bytes"] or entry["bytes"] != size:
            errors.append(f"bytes unaccounted for: {entry}")
    return "\n  ".join(errors) or None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("corpus", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=800)
    parser.add_argument("--seed", default="20310219")
    parser.add_argument("--keep", type=pathlib.Path, help="where mutants go that break something")
    wanted = parser.parse_args()
    validator = jsonschema.Draft202012Validator(schemas.strict("verdict"))
    logs = [path.read_bytes() for path in sorted(wanted.corpus.glob("*/*")) if path.is_file() and path.name != "case.json" and path.suffix != ".gz" and 0 < path.stat().st_size < 1 << 17]
    broken = 0
    with tempfile.TemporaryDirectory(prefix="inquest-mutants-") as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        def attempt(number):
            content = mutant(wanted.seed, number, logs)
            path = pathlib.Path(folder) / f"mutant-{number}.log"
            path.write_bytes(content)
            said = complaint(wanted.binary, validator, path, len(content))
            if said and wanted.keep:
                wanted.keep.mkdir(parents=True, exist_ok=True)
                (wanted.keep / path.name).write_bytes(content)
            path.unlink()
            return said
        for number, said in enumerate(pool.map(attempt, range(wanted.count))):
            if said:
                broken += 1
                print(f"mutant {number} of seed {wanted.seed}:\n  {said}", flush=True)
    print(f"{wanted.count} mutants of {len(logs)} logs, {broken} broke something")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
