"""Processes of tests: none outlives the test that started it, however that ends, and what a replay started can be found."""
import contextlib
import ctypes
import os
import pathlib
import signal
import time

_libc = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def dies_with_us():
    """To be called in the new process, before it becomes the program: a test that is killed leaves no replay behind."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def workers_of(pid):
    """The workers that a replay has started, by rank."""
    found = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            words = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0") if entry.isdigit() else []
            if len(words) > 2 and words[0].endswith(b"inquest-replay-worker") and words[-3:-1] == [b"work", str(pid).encode()]:
                found.append(int(entry))
    return sorted(found)


def has_ended(pid):
    """Also where nobody has asked for its end: who inherits a process may never do."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def running(*words):
    """Processes with that command line, whoever started them."""
    line = b"\0".join(word.encode() for word in words) + b"\0"
    found = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if entry.isdigit() and pathlib.Path(f"/proc/{entry}/cmdline").read_bytes() == line:
                found.append(int(entry))
    return found


def become(condition, limit=10):
    """Whether it comes true in so many seconds."""
    last = time.time() + limit
    while not condition():
        if time.time() > last:
            return False
        time.sleep(0.05)
    return True
