"""Cgroups for tests, of version 1 or 2, whichever is here; each is gone at the end."""
import contextlib
import os
import pathlib
import time

# By controller: the file of version 1, that of version 2, and what stands in that one.
LIMITS = {"memory": ("memory.limit_in_bytes", "memory.max", str),
          "pids": ("pids.max", "pids.max", str),
          "cpu": ("cpu.cfs_quota_us", "cpu.max", lambda quota: f"{quota} 100000")}
ROOT = pathlib.Path("/sys/fs/cgroup")


class Missing(Exception):
    """None can be made here, or it has not what is asked for."""


@contextlib.contextmanager
def _made(roots, set_up):
    why = "no cgroup can be made here"
    for root in roots:
        group = root / f"inquest-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            try:
                set_up(group)
            except OSError as problem:
                why = str(problem)
                continue
            yield group
            return
        finally:
            for _ in range(50):  # those in it may be on their way out
                with contextlib.suppress(OSError):
                    group.rmdir()
                    break
                time.sleep(0.1)
    raise Missing(why)


def limited(controller, limit):
    """`limit`: bytes of memory, tasks, or microseconds of each tenth of a second."""
    first, second, text = LIMITS[controller]

    def set_up(group):
        if (group / first).exists():
            (group / first).write_text(str(limit))
        else:
            (group / second).write_text(text(limit))

    return _made([ROOT / controller, ROOT], set_up)


@contextlib.contextmanager
def freezing():
    """Whoever comes into it stands still."""
    unified = ROOT / "unified"
    with _made([unified if unified.is_dir() else ROOT], lambda group: (group / "cgroup.freeze").write_text("1")) as group:
        try:
            yield group
        finally:
            (group / "cgroup.freeze").write_text("0")


def enter(group, pid=0):
    (group / "cgroup.procs").write_text(str(pid or os.getpid()))
