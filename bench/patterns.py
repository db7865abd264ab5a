#!/usr/bin/env python3
"""Prints the `text:` of every rule, one a line, as `rg -f` takes them: what a search for the same things costs.

patterns.py [RULES_DIR]

rg joins all patterns into one expression: so named groups become plain ones, and each pattern a group of its own, that
its flags hold for it alone. Escapes that RE2 knows and rg does not lose their backslash, and what is not ASCII is given
as bytes, since rg is run without Unicode. Phases of kind `training` are left out, as the scanner leaves them out.
"""

import json
import pathlib
import re
import sys


def scalar(lines: list[str], key: str) -> str | None:
    """The value of a top-level key of a rule file. Knows the scalar styles, not YAML."""
    for number, line in enumerate(lines):
        if not line.startswith(key + ":"):
            continue
        value = line[len(key) + 1:].strip()
        if value in ("|", "|-", ">", ">-"):
            block = []
            for follower in lines[number + 1:]:
                if follower.strip() and not follower.startswith(" "):
                    break
                block.append(follower.strip())
            return " ".join(part for part in block if part)
        if value.startswith("'"):
            return value[1:value.rindex("'")].replace("''", "'")
        if value.startswith('"'):
            return json.loads(value[:value.rindex('"') + 1])
        return value
    return None


def rule_files(directory: pathlib.Path, rooms: tuple[str, ...]) -> list[pathlib.Path]:
    return sorted(path for room in rooms for path in (directory / room).rglob("*.yaml"))


def for_ripgrep(text: str) -> str:
    def escape(match: re.Match) -> str:
        letter = match.group(1)
        return match.group() if letter.isalnum() or letter in r"\.+*?()|[]{}^$#&-~" else letter

    plain = re.sub(r"\\(.)", escape, re.sub(r"\(\?P?<\w+>", "(?:", text))
    return "(?:" + "".join(c if c.isascii() else "".join(f"\\x{byte:02x}" for byte in c.encode()) for c in plain) + ")"


def main() -> None:
    default = pathlib.Path(__file__).resolve().parent.parent / "rules"
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    for path in rule_files(directory, ("signatures", "symptoms", "phases", "endings")):
        lines = path.read_text(encoding="utf-8").splitlines()
        text = scalar(lines, "text")
        if text is None:
            sys.exit(f"{path}: no text")
        if scalar(lines, "kind") == "training":
            continue
        print(for_ripgrep(text))


if __name__ == "__main__":
    main()
