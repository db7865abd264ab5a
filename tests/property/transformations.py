"""Ways in which a log is changed between the program that printed it and the one who reads it: bytes in, bytes out.

Each takes the lines of a file (no terminators) and a random.Random, and gives the file's new bytes.
"""

import datetime
import json
import re

BEGIN = datetime.datetime(2031, 2, 25, 8, 45, 12, 123456)
HOST = "gpu-node-17"  # whoever carries a host's name carries this one
POD = "trainer-0"


def joined(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def text_of(line: bytes) -> str:
    return line.decode("utf-8", "replace")


OWN_TIME = re.compile(rb"(20\d\d)-([01]\d)-([0-3]\d)[T ]([0-2]\d):([0-5]\d):([0-5]\d)|\[[EWIF](\d?\d)(\d\d) (\d\d):(\d\d):(\d\d)")


class Clock:
    """When a collector reads each line: never before what the lines themselves say."""

    def __init__(self, lines: list[bytes]):
        year, stamps = None, []
        for number, line in enumerate(lines):
            found = OWN_TIME.search(line)
            if not found:
                continue
            year = year or (int(found[1]) if found[1] else None)
            stamps.append((number, [int(x) for x in (found.groups()[1:6] if found[1] else found.groups()[6:])]))
        self.at, last, stamps = [], BEGIN, dict(stamps)
        try:
            times = {number: datetime.datetime(year or BEGIN.year, *fields, 123456) for number, fields in stamps.items()}
        except ValueError:
            times = {}
        if times:
            first = min(times)
            last = times[first] - datetime.timedelta(milliseconds=7 * (first + 1))
        for number in range(len(lines)):
            last = max(last + datetime.timedelta(milliseconds=7), times.get(number, last))
            self.at.append(last)

    def __call__(self, number: int) -> datetime.datetime:
        return self.at[number]


clock = Clock([])


def at(number: int) -> datetime.datetime:
    return clock(number)


def each(head):
    """`head` of a line by its number from 0."""

    def change(lines, rng):
        global clock
        clock = Clock(lines)
        return joined([head(i).encode() + line for i, line in enumerate(lines)])

    return change


# ---- escape sequences --------------------------------------------------------------------------------------------

WORD = re.compile(rb"[A-Za-z]+|\d+|[^\sA-Za-z\d]")


def colour_words(lines, rng):
    def paint(match):
        if rng.random() > 0.3:
            return match[0]
        return b"\x1b[%sm%s\x1b[0m" % (rng.choice([b"31", b"1;33", b"38;5;12", b"2"]), match[0])

    return joined([WORD.sub(paint, line) for line in lines])


def colour_lines(lines, rng):
    return joined([b"\x1b[0;%dm%s\x1b[0m" % (30 + i % 8, line) for i, line in enumerate(lines)])


def terminal(lines, rng):
    """What `script` records: links, titles, erased line ends, a hidden cursor, the other spellings of colour."""
    out = []
    for line in lines:
        line = re.sub(rb"(/[\w./-]+)", lambda m: b"\x1b]8;;file://h%s\x1b\\%s\x1b]8;;\x1b\\" % (m[1], m[1]), line)
        line = re.sub(rb"(\d+)", lambda m: b"\x1b[38:2::1:2:3m" + m[1] + b"\x1b[m" if rng.random() < 0.2 else m[1], line)
        out.append(rng.choice([b"\x1b[?25l", b"\x1b]0;train\x07", b"\x1b(B\x1b[m", b"\x1b=", b""]) + line + b"\x1b[K")
    return b"".join(line + b"\r\n" for line in out)


GREPPED = re.compile(rb"(?i)error|rank|nccl|time(?:d )?-?out|fail\w*|exception|memory|killed|cuda|signal|watchdog|xid")


def grep_colour(lines, rng):
    return joined([GREPPED.sub(lambda m: b"\x1b[01;31m\x1b[K" + m[0] + b"\x1b[m\x1b[K", line) for line in lines])


def late_colour(lines, rng):
    """Nothing is coloured in the first two MiB."""
    return b"gradient_clipping ............ 1.0\n" * 65000 + colour_words(lines, rng)


def caret_colour(lines, rng):
    return colour_words(lines, rng).replace(b"\x1b", b"^[")  # cat -v


def rsyslog_colour(lines, rng):
    return colour_words(lines, rng).replace(b"\x1b", b"#033").replace(b"\t", b"#011")


def bare_colour(lines, rng):
    return colour_words(lines, rng).replace(b"\x1b", b"")  # pasted: the escape itself is gone


def eight_bit_colour(lines, rng):
    return colour_words(lines, rng).replace(b"\x1b[", b"\x9b")


# ---- lines cut and mixed -----------------------------------------------------------------------------------------


ESCAPE = re.compile(rb"\x1b\[[\d;]*[A-Za-z]")


def wrapped(width):
    def wrap(lines, rng):
        out = []
        for line in lines:
            text = text_of(ESCAPE.sub(b"", line))
            out += [text[i : i + width].encode() for i in range(0, max(len(text), 1), width)]
        return joined(out)

    return wrap


NOISE = [
    "step {n} | loss 2.41{n} | lr 3.00e-04 | grad norm 0.8{n} | 1{n}.2 samples/s",
    "gradient_accumulation_steps .. {n}",
    "gradient_clipping ............ 1.0{n}",
    "/usr/lib/python3/dist-packages/x.py:{n}: UserWarning: the default will change in a later version",
    "  warnings.warn(",
    "tokens seen: {n}40211",
]


def noise(lines, rng):
    out = []
    for line in lines:
        out += [rng.choice(NOISE).format(n=rng.randrange(10, 99)).encode() for _ in range(rng.randrange(0, 21))]
        out.append(line)
    return joined(out)


def torn_by_bar(lines, rng):
    """A bar is drawn in front of some lines, as it is by a process that shares the terminal."""
    out = []
    for line in lines:
        bar = " {0}%|████▌     | {0}/100 [00:12<00:15,  3.61it/s]".format(rng.randrange(1, 99)).encode()
        out.append(b"\r" + bar + line if rng.random() < 0.4 and line and not line.startswith(b" ") else line)
    return joined(out)


# ---- collectors --------------------------------------------------------------------------------------------------


def objects(make):
    def change(lines, rng):
        global clock
        clock = Clock(lines)
        return joined([json.dumps(make(i, text_of(line)), separators=(",", ":")).encode() for i, line in enumerate(lines)])

    return change


def epoch(number: int) -> int:
    return int(at(number).replace(tzinfo=datetime.timezone.utc).timestamp() * 1000)


def iso(number: int, zone: str = "Z") -> str:
    return at(number).isoformat() + zone


docker = objects(lambda i, t: {"log": t + "\n", "stream": "stderr", "attrs": {"tag": "trainer"}, "time": iso(i)})
fluent_bit = objects(lambda i, t: {"@timestamp": iso(i), "log": t + "\n", "stream": "stderr", "kubernetes": {"pod_name": POD, "namespace_name": "ml", "host": HOST, "container_name": "pytorch"}})
fluent_bit_cri = objects(lambda i, t: {"date": epoch(i) / 1000, "time": iso(i), "stream": "stderr", "_p": "F", "log": t, "kubernetes": {"pod_name": POD, "labels": {"app": "x"}, "host": HOST}})
loki = objects(lambda i, t: {"labels": {"container": "pytorch", "node_name": HOST, "pod": POD, "stream": "stderr"}, "line": t, "timestamp": iso(i)})
vector = objects(lambda i, t: {"file": "/var/log/pods/ml_trainer-0/pytorch/0.log", "host": HOST, "kubernetes": {"pod_name": POD, "pod_node_name": HOST}, "message": t, "source_type": "kubernetes_logs", "stream": "stderr", "timestamp": iso(i)})
google = objects(lambda i, t: {"insertId": f"a{i}", "labels": {"k8s-pod/app": "trainer"}, "logName": "projects/p/logs/stderr", "receiveTimestamp": iso(i), "resource": {"labels": {"pod_name": POD, "container_name": "pytorch"}, "type": "k8s_container"}, "severity": "ERROR", "textPayload": t, "timestamp": iso(i)})
cloudwatch = objects(lambda i, t: {"ingestionTime": epoch(i) + 900, "timestamp": epoch(i), "message": t, "eventId": "3"})
elastic = objects(lambda i, t: {"_index": "filebeat-8", "_id": str(i), "_source": {"@timestamp": iso(i), "message": t, "host": {"name": HOST}, "kubernetes": {"pod": {"name": POD}, "node": {"name": HOST}}}})


def cloudwatch_array(lines, rng):
    global clock
    clock = Clock(lines)
    return json.dumps({"events": [{"timestamp": epoch(i), "message": text_of(line), "ingestionTime": epoch(i) + 900} for i, line in enumerate(lines)]}, indent=4).encode()


def syslog_time(number):
    return at(number).strftime("%b %d %H:%M:%S")


# ---- encodings ---------------------------------------------------------------------------------------------------


def utf16(order, mark):
    return lambda lines, rng: (b"" if not mark else "\ufeff".encode(order)) + text_of(joined(lines)).encode(order, "replace")


def crlf(lines, rng):
    return b"".join(line + b"\r\n" for line in lines)


def escaped_as_html(lines, rng):
    return joined([line.replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b">", b"&gt;").replace(b'"', b"&quot;") for line in lines])


TRANSFORMATIONS = {
    "colour-words": colour_words,
    "colour-lines": colour_lines,
    "colour-terminal": terminal,
    "colour-grep": grep_colour,
    "colour-late": late_colour,
    "colour-caret": caret_colour,
    "colour-rsyslog": rsyslog_colour,
    "colour-bare": bare_colour,
    "colour-8-bit": eight_bit_colour,
    "wrapped-80": wrapped(80),
    "wrapped-120": wrapped(120),
    "wrapped-200": wrapped(200),
    "noise-x10": noise,
    "torn-by-bar": torn_by_bar,
    "docker-json": docker,
    "fluent-bit": fluent_bit,
    "fluent-bit-cri": fluent_bit_cri,
    "loki": loki,
    "vector": vector,
    "google-json": google,
    "cloudwatch-json": cloudwatch,
    "cloudwatch-array": cloudwatch_array,
    "elastic-json": elastic,
    "cloudwatch-tail": each(lambda i: f"{iso(i, '+00:00')} pytorch/trainer/4f1e "),
    "syslog-3164": each(lambda i: f"{syslog_time(i)} {HOST} python3[4123]: "),
    "syslog-3164-job": each(lambda i: f"{syslog_time(i)} {HOST} train: "),
    "syslog-iso": each(lambda i: f"{iso(i, '+00:00')} {HOST} torchrun[4123]: "),
    "syslog-iso-job": each(lambda i: f"{iso(i, '+00:00')} {HOST} train.sh[4123]: "),
    "syslog-5424": each(lambda i: f"<14>1 {iso(i)} {HOST} train 4123 - - "),
    "syslog-pri": each(lambda i: f"<14>{syslog_time(i)} {HOST} train[4123]: "),
    "grep-n": each(lambda i: f"{i + 1}:"),
    "grep-n-context": each(lambda i: f"{i + 1}{':' if i % 5 == 3 else '-'}"),
    "grep-Hn": each(lambda i: f"logs/job-41.out:{i + 1}:"),
    "grep-H": each(lambda i: "logs/job-41.out:"),
    "cat-n": each(lambda i: f"{i + 1:6}\t"),
    "numbered": each(lambda i: f"{i + 1:4} | "),
    "gitlab": each(lambda i: f"{iso(i)} 01O "),
    "github": each(lambda i: f"{iso(i, '7Z')} "),
    "jenkins": each(lambda i: f"[{at(i).isoformat(timespec='milliseconds')}Z] "),
    "ts": each(lambda i: f"{syslog_time(i)} "),
    "ts-brackets": each(lambda i: at(i).strftime("[%Y-%m-%d %H:%M:%S] ")),
    "stern": each(lambda i: f"{POD} pytorch "),
    "stern-bar": each(lambda i: f"{POD} pytorch | "),
    "kubetail": each(lambda i: f"[{POD}] "),
    "node": each(lambda i: f"[{HOST}] "),
    "node-bar": each(lambda i: f"{HOST} | "),
    "node-arrow": each(lambda i: f"{HOST}> "),
    "quoted": each(lambda i: "> "),
    "indented": each(lambda i: "    "),
    "utf16-le": utf16("utf-16-le", False),
    "utf16-be": utf16("utf-16-be", False),
    "utf16-marked": utf16("utf-16-le", True),
    "crlf": crlf,
    "html": escaped_as_html,
}

# What says when a line was read, or on which host: of cases that are one file, since it would differ from what others say.
# So is noise, which a job prints and not a kernel.
COLLECTED = {name for name, change in TRANSFORMATIONS.items() if name in "docker-json fluent-bit fluent-bit-cri loki vector google-json cloudwatch-json cloudwatch-array elastic-json cloudwatch-tail noise-x10 torn-by-bar gitlab github jenkins ts ts-brackets".split() or name.startswith("syslog")}
