#!/usr/bin/env python3
"""Writes a rules folder with N more copies of every signature: other ids, expressions of the same shape in other words.

more_rules.py OUT [N] [RULES_DIR]        (N: 9, for ten times the signatures)

In every copy each word of the expression has its letters turned and rotated, so that length, letters and structure
stay and the words match nothing. Use it with `inquest --rules OUT`, which adds the copies to the rules of the binary.
"""

import pathlib
import re
import sys

sys.dont_write_bytecode = True
from patterns import rule_files, scalar  # noqa: E402

# What is not a word of the log: classes, escapes, groups' heads, counted repeats.
SYNTAX = re.compile(r"(\[\^?\]?(?:\\.|[^\]\\])*\]|\\x[0-9A-Fa-f]{2}|\\x\{[0-9A-Fa-f]+\}|\\[pP]\{\w+\}|\\.|\(\?P?<\w+>|\(\?[a-zA-Z-]*[:)]|\{[\d,]+\})")


def turn(word: str, copy: int) -> str:
    if len(word) < 3:
        return word
    if copy % 2:
        word = word[::-1]
    shift = (copy + 1) // 2 % len(word)
    return word[shift:] + word[:shift]


def shift_letters(word: str, by: int) -> str:
    def shift(letter: str) -> str:
        first = ord("a" if letter.islower() else "A")
        return chr(first + (ord(letter) - first + by) % 26)
    return "".join(shift(letter) for letter in word)


def rewrite(text: str, change) -> str:
    parts = SYNTAX.split(text)
    return "".join(part if number % 2 else re.sub(r"[A-Za-z]+", lambda word: change(word.group()), part)
                   for number, part in enumerate(parts))


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[1])
    copies = int(sys.argv[2]) if len(sys.argv) > 2 else 9
    rules = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else pathlib.Path(__file__).resolve().parent.parent / "rules"
    seen = set()
    written = 0
    files = rule_files(rules, ("signatures",))
    for path in files:
        seen.add(scalar(path.read_text(encoding="utf-8").splitlines(), "text"))
    for path in files:
        lines = path.read_text(encoding="utf-8").splitlines()
        text = scalar(lines, "text")
        begin = next(number for number, line in enumerate(lines) if line.startswith("text:"))
        end = begin + 1
        while end < len(lines) and (lines[end].startswith(" ") or not lines[end].strip()):
            end += 1
        for copy in range(1, copies + 1):
            other = rewrite(text, lambda word: turn(word, copy))
            by = 1
            while other in seen and by < 26:
                other = rewrite(text, lambda word: shift_letters(turn(word, copy), by))
                by += 1
            if other in seen:
                continue
            seen.add(other)
            quoted = "text: '" + other.replace("'", "''") + "'"
            target = out / path.relative_to(rules).with_name(f"{path.stem}-copy-{copy}.yaml")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("\n".join([*lines[:begin], quoted, *lines[end:]]) + "\n", encoding="utf-8")
            written += 1
    print(f"{len(files)} signatures, {written} copies in {out}")


if __name__ == "__main__":
    main()
