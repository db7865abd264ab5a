#!/usr/bin/env python3
"""Reads the traces of --perfetto as a viewer would: of cases, of logs that would like to be more than text, and of jobs whose calls
are known.

perfetto_test.py BINARY CORPUS [--every N] [unittest options]
"""

import collections
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unicodedata
import unittest

binary, corpus, every = "", pathlib.Path(), 1
HOSTILE = b"\x1b[31m\x07\xff\xfe\xe2\x80\xae</script>\x00"


def fields(data):
    """Number, wire type and value of each field of a message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        number, kind = key >> 3, key & 7
        if kind == 0:
            value = varint()
        elif kind == 2:
            size = varint()
            assert at + size <= len(data), "a field that ends behind its message"
            value, at = data[at : at + size], at + size
        else:
            size = {1: 8, 5: 4}[kind]
            value, at = data[at : at + size], at + size
        yield number, kind, value


def message(data):
    out = collections.defaultdict(list)
    for number, _, value in fields(data):
        out[number].append(value)
    return out


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def text(data):
    out = data.decode("utf-8")  # raises where it is none
    assert not any(unicodedata.category(c) in ("Cc", "Cf") for c in out), out
    return out


class Slice:
    def __init__(self, event, begin):
        self.begin, self.end, self.parent = begin, None, None
        self.name, self.category, self.notes, self.flows, self.track = event.name, event.category, event.notes, event.flows, event.track


class Event:
    pass


class Trace:
    """Tracks, slices and instants. Asserts what a viewer takes for granted."""

    def __init__(self, data):
        self.tracks, self.slices, self.instants = {}, [], []
        self.processes, self.threads = {}, {}
        self.description = ""
        interned = collections.defaultdict(dict)
        open_, last = collections.defaultdict(list), {}
        for index, (number, _, packet) in enumerate(fields(data)):
            assert number == 1
            packet = message(packet)
            assert packet[10] == [1], "one sequence"
            assert (index == 0) == (packet[13] == [1]), "the state is cleared once, at first"
            for entry in packet[12]:
                for kind, _, value in fields(entry):
                    value = message(value)
                    assert value[1][0] not in interned[kind]
                    interned[kind][value[1][0]] = text(value[2][0])
            if packet[60]:
                self.add_track(message(packet[60][0]))
            if packet[11]:
                self.add_event(message(packet[11][0]), packet[8][0], interned, open_, last)
        self.open = [one for stack in open_.values() for one in stack]

    def add_track(self, track):
        uuid = track[1][0]
        if uuid == 0:
            self.description = text(track[14][0])
            return
        assert uuid not in self.tracks
        parent = track[5][0] if track[5] else None
        assert parent is None or parent in self.tracks, "a parent comes first"
        if track[3]:
            process = message(track[3][0])
            assert process[1][0] > 0 and process[1][0] not in self.processes
            self.processes[process[1][0]] = text(process[6][0])
            self.tracks[uuid] = ("process", text(process[6][0]), None)
        elif track[4]:
            thread = message(track[4][0])
            assert thread[1][0] in self.processes and thread[2][0] not in self.threads and thread[2][0] not in self.processes
            self.threads[thread[2][0]] = (self.processes[thread[1][0]], text(thread[5][0]))
            self.tracks[uuid] = ("thread", text(thread[5][0]), None)
        else:
            self.tracks[uuid] = ("track", text(track[2][0]), parent)

    def add_event(self, event, at, interned, open_, last):
        out = Event()
        kind, out.track = event[9][0], event[11][0]
        assert out.track in self.tracks, "a track comes before its events"
        out.name = interned[2][event[10][0]] if event[10] else text(event[23][0]) if event[23] else None
        out.category = interned[1][event[3][0]] if event[3] else None
        out.flows = [struct.unpack("<Q", one)[0] for one in event[47]]
        out.notes = {}
        for note in event[4]:
            note = message(note)
            name = interned[3][note[1][0]] if note[1] else text(note[10][0])
            assert name not in out.notes, f"{name} twice"
            out.notes[name] = (
                bool(note[2][0]) if note[2]
                else note[3][0] if note[3]
                else signed(note[4][0]) if note[4]
                else struct.unpack("<d", note[5][0])[0] if note[5]
                else text(note[6][0]) if note[6]
                else interned[29][note[17][0]]
            )
        if kind == 3:
            out.at = at
            self.instants.append(out)
            return
        assert at >= last.get(out.track, 0), "time runs back on a track"
        last[out.track] = at
        stack = open_[out.track]
        if kind == 1:
            one = Slice(out, at)
            one.parent = stack[-1] if stack else None
            self.slices.append(one)
            stack.append(one)
        else:
            assert kind == 2 and stack, "an end without a begin"
            stack.pop().end = at

    def name_of(self, track):
        return self.tracks[track][1]

    def flows(self):
        out = collections.defaultdict(list)
        for one in self.slices:
            for flow in one.flows:
                out[flow].append(one)
        return out


def trace_of(paths, *options):
    with tempfile.TemporaryDirectory(prefix="inquest-perfetto-") as folder:
        file = pathlib.Path(folder) / "why.pftrace"
        done = subprocess.run([binary, "-q", "--perfetto", file, *options, *paths], stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        assert done.returncode in (0, 1, 2) and not done.stderr, done.stderr.decode()
        assert [file.name] == [one.name for one in file.parent.iterdir()], "nothing else is left"
        return file.read_bytes()


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "case.json")


CALL = "{stamp}node{host:02}:{pid}:{pid} [{device}] NCCL INFO AllReduce: opCount {op:x} sendbuff 0x7f00 recvbuff 0x7f00 count {count} datatype 7 op 0 root 0 comm 0x55{rank:02x}00 [nranks={ranks}] stream 0x9\n"
BORN = "{stamp}node{host:02}:{pid}:{pid} [{device}] NCCL INFO comm 0x55{rank:02x}00 rank {rank} nranks {ranks} cudaDev {device} nvmlDev {device} busId {device}000 commId 0xabc - Init {what}\n"


def calls_of(ranks, calls, stamp="", short=None):
    """A log of each rank: born, then its calls; `short` makes one less."""
    out = []
    for rank in range(ranks):
        who = {"host": rank // 4, "pid": 100 + rank, "device": rank % 4, "rank": rank, "ranks": ranks}
        lines = [BORN.format(stamp=stamp.format(second=0), what=what, **who) for what in ("START", "COMPLETE")]
        for op in range(calls - (rank == short)):
            lines.append(CALL.format(stamp=stamp.format(second=op % 60), op=op, count=1000 + op, **who))
        out.append("".join(lines))
    return out


class PerfettoTest(unittest.TestCase):
    def setUp(self):
        self.folder_ = tempfile.TemporaryDirectory(prefix="inquest-perfetto-")
        self.folder = pathlib.Path(self.folder_.name)
        self.addCleanup(self.folder_.cleanup)

    def write(self, texts):
        paths = [self.folder / f"out.{number}.log" for number in range(len(texts))]
        for path, content in zip(paths, texts):
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return paths

    def check(self, trace):
        """What holds of every trace."""
        self.assertEqual("inquest-trace-1", trace.description)
        for one in trace.slices:
            if one.end is None:
                self.assertTrue(one.category in ("collective", "send-recv") or one.notes.get("open"), one.name)
            elif one.parent is not None and one.parent.end is not None:
                self.assertLessEqual(one.end, one.parent.end)
            if one.category in ("collective", "send-recv"):
                self.assertIsNone(one.parent, "calls that overlap lie on tracks of their own")
                self.assertIn("state", one.notes)
                self.assertIn("line", one.notes)
                self.assertTrue("seq" in one.notes or "op_count" in one.notes)
        for flow, ends in trace.flows().items():
            self.assertGreaterEqual(len(ends), 2, [one.name for one in ends])
            self.assertEqual(len(ends), len({self.thread(trace, one) for one in ends}), "each rank once")
        about = [track for track, (kind, _, _) in trace.tracks.items() if kind == "process"][0]
        self.assertTrue(trace.name_of(about).startswith("inquest "))
        self.assertEqual({"verdict", "time"}, {trace.name_of(one.track) for one in trace.slices if one.category == "verdict"} - {"calls"})

    @staticmethod
    def thread(trace, one):
        kind, _, parent = trace.tracks[one.track]
        return one.track if kind == "thread" else parent

    def test_cases(self):
        """Every slice lies in the one below it, every flow has two ends, and order of inputs and threads changes nothing."""
        for folder in sorted(path.parent for path in corpus.glob("*/case.json"))[::every]:
            with self.subTest(case=folder.name):
                paths = files_of(folder)
                data = trace_of(paths, "--threads", "1")
                self.check(Trace(data))
                self.assertEqual(data, trace_of(paths[::-1], "--threads", "4"))

    def test_calls_of_recorders(self):
        """Entries of dumps are slices with their times, joined over ranks; who never came has none."""
        trace = Trace(trace_of(files_of(corpus / "second-bucket-not-reached")))
        self.check(trace)
        calls = [one for one in trace.slices if one.category == "collective"]
        self.assertTrue(calls)
        self.assertTrue(all("group" in one.notes and "numel_in" in one.notes for one in calls))
        self.assertTrue(any(one.flows for one in calls))
        self.assertTrue(any(one.end is None and one.notes["state"] != "completed" for one in calls), "what had not ended is open")
        self.assertTrue(all(one.notes["state"] == "completed" for one in calls if one.end is not None))
        waits = [one for one in trace.slices if one.category == "state" and one.notes["state"] == "waiting"]
        self.assertEqual([None] * 3, [one.end for one in waits], "what a recorder alone tells of was not over")
        self.assertEqual(1, len({flow for one in waits for flow in one.flows}))

    def test_calls_of_lines(self):
        """A call for each line, in the order of lines; the k-th of all ranks are joined."""
        trace = Trace(trace_of(self.write(calls_of(ranks=8, calls=50, short=3))))
        self.check(trace)
        self.assertIn("order stands for time", trace.processes[1])
        calls = [one for one in trace.slices if one.category == "collective"]
        self.assertEqual(8 * 50 - 1, len(calls))
        self.assertEqual({"host not known", "node00", "node01"} - set(trace.processes.values()), {"host not known"})
        by_rank = collections.defaultdict(list)
        for one in calls:
            by_rank[self.thread(trace, one)].append(one)
        self.assertEqual(8, len(by_rank))
        for track, own in by_rank.items():
            self.assertEqual(list(range(len(own))), [one.notes["call"] for one in own])
            self.assertEqual([1000 + number for number in range(len(own))], [one.notes["count"] for one in own])
            self.assertEqual([own[-1]], [one for one in own if one.end is None], "nothing says that the last ended")
            self.assertEqual({"float32"}, {one.notes["dtype"] for one in own})
            self.assertEqual(49 if trace.name_of(track).startswith("rank 3") else 50, len(own))
        flows = trace.flows()
        self.assertEqual(50, len(flows))
        self.assertEqual([7] + [8] * 49, sorted(len(ends) for ends in flows.values()))
        for ends in flows.values():
            self.assertEqual(1, len({one.notes["call"] for one in ends}))

    def test_calls_of_profiles(self):
        """A call of a profile lasts from when it was made to the end of its kernel."""
        start = 1933040000 * 10**6  # in microseconds, as Kineto counts
        for rank in range(2):
            args = {"Collective name": "allreduce", "In msg nelems": 4, "Out msg nelems": 4, "dtype": "Float", "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]", "Group size": 2}
            events = []
            for seq in range(1, 4):
                more = {"Seq": seq, "External id": 10 + seq}
                events.append({"ph": "X", "name": "record_param_comms", "ts": start + 1000 * seq, "dur": 5, "args": {**args, **more}})
                if seq < 3 or rank == 0:
                    events.append({"ph": "X", "name": "ncclDevKernel_AllReduce", "ts": start + 1000 * seq + 200, "dur": 300, "args": {**args, **more}})
            (self.folder / f"trace_{rank}.json").write_text(json.dumps({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}, "traceEvents": events}))
        trace = Trace(trace_of([self.folder / "trace_0.json", self.folder / "trace_1.json"]))
        self.check(trace)
        calls = [one for one in trace.slices if one.category == "collective"]
        self.assertEqual([500_000] * 5 + [None], sorted((one.end and one.end - one.begin for one in calls), key=lambda length: (length is None, length)))
        self.assertEqual({0.2}, {one.notes["started_after_ms"] for one in calls if one.end})
        self.assertEqual([2, 2, 2], [len(ends) for ends in trace.flows().values()])

    def test_times_of_lines(self):
        """Lines stand at the times that they print; those of one second are spread over it."""
        log = "".join(calls_of(2, 120, "2031-04-05T12:00:{second:02}Z ")) + "2031-04-05T12:01:00Z [rank1]: ValueError: bad shape\n"
        trace = Trace(trace_of(self.write([log])))
        self.check(trace)
        self.assertNotIn("order", trace.processes[1])
        first = 1933156800 * 10**9
        calls = [one for one in trace.slices if one.category == "collective"]
        self.assertEqual(240, len(calls))
        for one in calls:
            self.assertTrue(first <= one.begin < first + 61 * 10**9, one.begin)

    def test_hostile_texts(self):
        """Whatever a log says, texts are UTF-8 without controls."""
        evil = HOSTILE + b"x" * 3000
        log = (
            b"[rank6]:[E405 12:11:06.123456789 ProcessGroupNCCL.cpp:616] [Rank 6] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4410, OpType=ALL"
            + HOSTILE + b"REDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600006 milliseconds before timing out.\n"
            b"[rank7]: Traceback (most recent call last):\n[rank7]:   File \"/app/train.py\", line 84, in main\n[rank7]: torch.OutOfMemoryError: CUDA out of memory. " + evil + b"\n"
        )
        path = self.folder / "jo\nb \x1b[31m\u202e.log"
        path.write_bytes(log + "".join(calls_of(2, 5)).encode().replace(b"AllReduce", b"AllRed\xffuce"))
        self.check(Trace(trace_of([path])))

    def test_standard_input_has_no_second_time(self):
        file = self.folder / "why.pftrace"
        log = "".join(calls_of(2, 5))
        done = subprocess.run([binary, "-q", "--perfetto", file], input=log.encode(), capture_output=True, timeout=60)
        self.assertEqual(b"", done.stderr)
        trace = Trace(file.read_bytes())
        self.check(trace)
        self.assertEqual([], [one for one in trace.slices if one.category == "collective"])
        self.assertIn("calls: standard input cannot be read a second time", [one.name for one in trace.slices])

    def test_a_trace_is_written_anew_and_is_no_witness(self):
        logs = self.write(calls_of(2, 5))
        file = self.folder / "why.pftrace"
        run = lambda: subprocess.run([binary, "-f", "json", "--perfetto", file, self.folder], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        first, before = run(), file.read_bytes()
        second = run()
        self.assertEqual((b"", b""), (first.stderr, second.stderr))
        self.assertIn(b"inquest-report", second.stdout)
        names = lambda data: [(one.name, one.begin) for one in Trace(data).slices]
        self.assertEqual(names(before), names(file.read_bytes()))
        refused = subprocess.run([binary, "--perfetto", logs[0], self.folder], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        self.assertEqual(3, refused.returncode)
        self.assertIn(b"overwrite one of the inputs", refused.stderr)


if __name__ == "__main__":
    binary, corpus = sys.argv[1], pathlib.Path(sys.argv[2])
    rest = sys.argv[3:]
    if rest[:1] == ["--every"]:
        every, rest = int(rest[1]), rest[2:]
    unittest.main(argv=[sys.argv[0], *rest])
