"""What ends a replay from outside: no memory, signals to it and to its workers, limits, workers that say nothing or what
nobody understands, links that drop one way. None of it accuses the operation, and nothing is left behind."""
import contextlib
import fcntl
import json
import os
import pathlib
import resource
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time

import jsonschema

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import cgroups
import processes
import schemas

inquest, gloo = os.path.abspath(sys.argv[1]), sys.argv[2] == "1"
only = sys.argv[3:]
if not gloo:
    print("skipped: this build has no Gloo")
    sys.exit(77)
worker = os.path.join(os.path.dirname(inquest), "inquest-replay-worker")
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("SLURM_", "OMPI_", "PMI", "TORCHELASTIC")) and name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")}
rows = []


def row(function):
    rows.append(function)
    return function


Skip = cgroups.Missing


def shell(command):
    return subprocess.run(command, shell=True, capture_output=True).returncode == 0


class Replay:
    """One in progress, with a folder of its own for temporary files."""

    def __init__(self, *arguments, program=inquest, preexec=None, env=None, tmp=None, op="all-reduce", where=()):
        self.folder = tempfile.TemporaryDirectory()
        self.tmp = tmp or self.folder.name
        
        def before():
            processes.dies_with_us()
            if preexec:
                preexec()

        self.process = subprocess.Popen([*where, program, "replay", "--engine", "gloo", "--op", op, "--format", "json", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, preexec_fn=before, env={**CLEAN, "TMPDIR": self.tmp, **(env or {})})

    def workers(self, number, limit=20):
        """Until so many have come and are at work."""
        last = time.time() + limit
        while time.time() < last:
            found = processes.workers_of(self.process.pid)
            if len(found) >= number:
                return found
            time.sleep(0.02)
        raise AssertionError(f"{number} workers never came: {self.process.poll()}")

    def end(self, limit=60):
        try:
            self.out, self.err = self.process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"still running after {limit} s")
        self.status = self.process.returncode
        self.document = json.loads(self.out) if self.out else None
        if self.document:
            schemas.validate(self.document, "replay")
        self.trial = self.document["trials"][0] if self.document and self.document["trials"] else None
        return self

    def nothing_left(self):
        for _ in range(50):
            left = [entry for entry in os.listdir(self.tmp) if "inquest" in entry]
            if not left:
                return self
            time.sleep(0.1)
        raise AssertionError(left)


LONG = ["--count", "200000", "--ranks", "3", "--iterations", "1000000"]


def verdict(replay, status, name, *says):
    assert replay.trial, (replay.status, replay.out, replay.err)
    assert replay.status == status and replay.trial["verdict"] == name, (replay.status, replay.trial["verdict"], replay.trial["sentence"])
    for part in says:
        assert part in replay.trial["sentence"] + " ".join(replay.trial["notes"]), (part, replay.trial["sentence"], replay.trial["notes"])
    return replay


def refused(replay, *says):
    """Could not run: by the program itself, or in its report."""
    said = replay.err + (replay.trial["sentence"] if replay.trial else "")
    assert replay.status == 3 and all(part in said for part in says), (replay.status, said)
    if replay.trial:
        assert replay.trial["verdict"] == "could-not-run", replay.trial["sentence"]
    return replay


# ---- memory -------------------------------------------------------------------------------------------------------
def into(group):
    return lambda: cgroups.enter(group)


@row
def memory_of_the_cgroup_is_summed_over_ranks():
    with cgroups.limited("memory", 400 << 20) as group:
        replay = Replay("--count", "20000000", "--ranks", "4", preexec=into(group)).end()
        refused(replay, "4 ranks need", "cgroup", "--count ")
        count = (replay.err + replay.trial["sentence"]).split("--count ")[1].split()[0].rstrip(".,;")
        assert 2_000_000 < int(count) < 20_000_000, count
        verdict(Replay("--count", count, "--ranks", "4", preexec=into(group)).end(), 0, "passed")


@row
def memory_of_the_host_is_summed_over_ranks():
    available = next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemAvailable")) * 1024
    replay = Replay("--count", str(available // 4 // 8), "--ranks", "8").end()  # each of them fits, all of them do not
    refused(replay, "8 ranks need", "--count ")


@row
def an_oom_kill_is_named():
    # A worker that takes more than anybody could know, and the kernel kills it.
    script = f"exec {sys.executable} -c 'b = [bytearray(b\"x\" * (1 << 20)) for _ in range(900)]'"
    with cgroups.limited("memory", 400 << 20) as group, with_worker(script) as program:
        refused(Replay(*SMALL[:-1], "60", program=program, preexec=into(group)).end(), "OOM killer", "cgroup", "signal 9")


@row
def memory_is_summed_over_the_nodes_of_a_host():
    with cgroups.limited("memory", 600 << 20) as group:
        token = {"INQUEST_REPLAY_TOKEN": "0123456789abcdef0123456789abcdef"}
        both = [Replay("--count", "26000000", "--ranks", "4", "--nnodes", "2", "--node-rank", str(node), "--master", "127.0.0.1:29583", preexec=into(group), env=token) for node in range(2)]
        first, second = [replay.end() for replay in both]
        refused(first, "4 ranks need", "cgroup", "--count ")
        assert second.status == 3, (second.status, second.err)


# ---- workers that do not work ----------------------------------------------------------------------------------------
@contextlib.contextmanager
def with_worker(script):
    """The program beside a worker that is somebody else; it answers what it is asked of the engine as ours does."""
    with tempfile.TemporaryDirectory() as folder:
        os.link(inquest, folder + "/inquest") if os.stat(folder).st_dev == os.stat(inquest).st_dev else subprocess.run(["cp", inquest, folder + "/inquest"], check=True)
        other = pathlib.Path(folder) / "inquest-replay-worker"
        other.write_text(f"#!/bin/bash\n[ \"$1\" = probe ] && exec {worker} \"$@\"\n{script}\n")
        other.chmod(0o755)
        yield folder + "/inquest"


SMALL = ["--count", "1000", "--ranks", "2", "--timeout", "2"]


@row
def a_worker_that_says_nothing():
    with with_worker("exec sleep 60") as program:
        refused(Replay(*SMALL, program=program).end(), "said nothing")


@row
def a_worker_that_says_garbage():
    with with_worker(f"exec {sys.executable} -c 'import socket,time; s=socket.socket(fileno=3); s.send(bytes(range(200))); time.sleep(60)'") as program:
        refused(Replay(*SMALL, program=program).end(), "not understood")


@row
def a_worker_that_ends_at_once():
    with with_worker("echo 'error while loading shared libraries: libfoo.so.1'; exit 127") as program:
        refused(Replay(*SMALL, program=program).end(), "exited with 127", "libfoo.so.1")


@row
def a_death_before_the_call():
    refused(Replay(*SMALL, "--fault", "1:kill@device-set").end(), "Rank 1 was killed by signal 9")
    refused(Replay(*SMALL, "--fault", "1:exit@buffers-ready").end(), "Rank 1 exited with 7")
    verdict(Replay(*SMALL, "--fault", "1:kill@completed").end(), 1, "rank-died", "Rank 1 was killed by signal 9")


# ---- signals to it ----------------------------------------------------------------------------------------------------
@row
def signals_end_in_a_report():
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        replay = Replay(*LONG)
        replay.workers(3)
        time.sleep(0.5)
        replay.process.send_signal(number)
        verdict(replay.end(10), 2, "interrupted").nothing_left()
        assert processes.workers_of(replay.process.pid) == []


@row
def a_supervisor_that_was_suspended_accuses_nobody():
    replay = Replay("--count", "1000", "--ranks", "3", "--timeout", "2", "--fault", "1:delay@enqueued=1500")
    replay.workers(3)
    time.sleep(0.4)
    replay.process.send_signal(signal.SIGSTOP)
    time.sleep(4)
    replay.process.send_signal(signal.SIGCONT)
    verdict(replay.end(), 0, "passed", "suspended")
    # All of them, as a terminal or a scheduler does it.
    replay = Replay(*LONG[:4], "--iterations", "200", "--timeout", "2")
    workers = replay.workers(3)
    time.sleep(0.3)
    for pid in [replay.process.pid, *workers]:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(4)
    for pid in [replay.process.pid, *workers][::-1]:
        os.kill(pid, signal.SIGCONT)
    verdict(replay.end(), 0, "passed")


@row
def all_that_stand_still_are_named():
    replay = Replay(*LONG[:2], "--ranks", "4", "--iterations", "1000000")
    workers = replay.workers(4)
    time.sleep(0.7)
    for pid in workers[1], workers[3]:
        os.kill(pid, signal.SIGSTOP)
    verdict(replay.end(), 1, "rank-stopped", "Ranks 1, 3 are stopped")
    assert [blamed["rank"] for blamed in replay.trial["blamed"]] == [1, 3], replay.trial["blamed"]


@row
def nothing_is_left_whatever_kills_it():
    for number in signal.SIGKILL, signal.SIGTERM, signal.SIGQUIT, signal.SIGABRT:
        replay = Replay(*LONG, preexec=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
        workers = replay.workers(3)
        time.sleep(0.3)
        replay.process.send_signal(number)
        replay.end(10)
        replay.nothing_left()
        assert processes.become(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers)), workers


@row
def workers_that_stand_or_print_die_with_it_too():
    for act in (lambda pid: os.kill(pid, signal.SIGSTOP)), (lambda pid: None):
        replay = Replay(*LONG)
        workers = replay.workers(3)
        time.sleep(0.3)
        act(workers[1])
        replay.process.kill()
        replay.end(10)
        assert processes.become(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers)), workers
    # One that has only begun, by a process that nobody asked for its number yet.
    for delay in 0, 0.02, 0.05:
        replay = Replay("--count", "1000", "--ranks", "8")
        time.sleep(delay)
        replay.process.kill()
        replay.end(10)
        assert processes.become(lambda: processes.workers_of(replay.process.pid) == []), processes.workers_of(replay.process.pid)


# ---- who started it ---------------------------------------------------------------------------------------------------
class Started:
    """By a process of its own, in a session without a terminal, into a file; that process can be killed."""

    def __init__(self, *arguments, words=(), by_shell=False):
        self.folder = tempfile.TemporaryDirectory()
        self.report = pathlib.Path(self.folder.name) / "report.json"
        command = [*words, inquest, "replay", "--engine", "gloo", "--op", "all-reduce", "--format", "json", *arguments]
        program = ["/bin/sh", "-c", f"{shlex.join(command)} >{self.report} 2>&1 & echo $!; wait"] if by_shell else [
            sys.executable, "-c", f"import subprocess\nchild = subprocess.Popen({command!r}, stdout=open({str(self.report)!r}, 'w'), stderr=2)\nprint(child.pid, flush=True)\nchild.wait()"]
        self.parent = subprocess.Popen(program, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
                                       env={**CLEAN, "TMPDIR": self.folder.name})
        self.pid = int(self.parent.stdout.readline())

    def lose_parent(self):
        assert processes.become(lambda: len(processes.workers_of(self.pid)) >= 3, 20), self.report.read_text()
        self.parent.kill()
        self.parent.wait()

    def ends(self):
        try:
            return processes.become(lambda: processes.has_ended(self.pid), 30) and json.loads(self.report.read_text())["trials"][0]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


@row
def a_replay_ends_with_who_started_it():
    started = Started(*LONG)
    started.lose_parent()
    trial = started.ends()
    assert trial and trial["verdict"] == "interrupted" and trial["sentence"].startswith("The process that started this replay is gone"), trial
    assert processes.workers_of(started.pid) == []


@row
def a_replay_that_was_to_go_on_alone_does():
    # Long enough for the parent to go before it is over, and short enough to be waited for.
    for words, by_shell in (["nohup"], False), (["setsid"], False), ((), True):
        started = Started("--count", "1000", "--ranks", "3", "--fault", "1:delay@enqueued=1500", words=words, by_shell=by_shell)
        started.lose_parent()
        trial = started.ends()
        assert trial and trial["verdict"] == "passed", (words, by_shell, trial)


@row
def a_replay_ends_with_who_reads_it():
    for ignores_hangup in False, True:
        arguments = [*LONG[:4], "--fault", "1:delay@enqueued=1500"] if ignores_hangup else LONG
        replay = Replay(*arguments, preexec=(lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) if ignores_hangup else None)
        replay.workers(3)
        replay.process.stdout.close()
        replay.process.stdout = None
        assert replay.process.wait(30) == (0 if ignores_hangup else 2), (ignores_hangup, replay.process.stderr.read())
        assert processes.workers_of(replay.process.pid) == []


# ---- limits -----------------------------------------------------------------------------------------------------------
@row
def a_soft_limit_of_open_files_is_raised():
    verdict(Replay("--count", "1000", "--ranks", "24", preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 4096))).end(), 0, "passed")


@row
def a_hard_limit_of_open_files_is_told():
    refused(Replay("--count", "1000", "--ranks", "24", preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))).end(), "open files", "ulimit -n")


@row
def a_limit_of_processes_is_told():
    if os.getuid() != 0 or not shell("id nobody"):
        raise Skip("only root can become somebody else")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        for program in inquest, worker:
            subprocess.run(["cp", program, folder], check=True)

        def limited():
            resource.setrlimit(resource.RLIMIT_NPROC, (6, 6))
            os.setgid(65534)
            os.setuid(65534)

        refused(Replay("--count", "1000", "--ranks", "16", program=folder + "/inquest", preexec=limited, tmp=folder).end(), "processes", "ulimit -u")


@row
def a_folder_for_temporary_files_that_is_none():
    replay = Replay(*SMALL, env={"TMPDIR": "/nonexistent/folder"}).end()
    # Gloo leaves nothing there, and needs none.
    assert replay.status == 0 or "TMPDIR" in replay.err, (replay.status, replay.err)


@row
def a_report_is_whole_though_an_interrupt_comes_while_it_is_written():
    # A pipe that nobody reads holds the writer in the middle of it.
    replay = Replay("--count", "2000", "--ranks", "4", "--iterations", "200")
    fcntl.fcntl(replay.process.stdout, fcntl.F_SETPIPE_SZ, 4096)
    last = time.time() + 40
    while not select.select([replay.process.stdout], [], [], 0)[0] and time.time() < last:
        time.sleep(0.05)
    time.sleep(0.3)
    replay.process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    replay.end()
    assert replay.status in (0, 1, 2) and replay.document, (replay.status, replay.err)


# ---- links ------------------------------------------------------------------------------------------------------------
@contextlib.contextmanager
def nodes(count):
    name = f"inqo{os.getpid()}"
    node = lambda index: f"{name}n{index}"
    made = os.getuid() == 0 and shell(f"ip netns add {name}") and shell(f"ip -n {name} link add br0 type bridge && ip -n {name} link set br0 up")
    for index in range(count):
        made = made and shell(f"ip netns add {node(index)} && ip -n {node(index)} link set lo up && ip -n {name} link add v{index} type veth peer name eth0 netns {node(index)}"
                              f" && ip -n {name} link set v{index} master br0 up && ip -n {node(index)} addr add 10.81.0.{index + 1}/24 dev eth0 && ip -n {node(index)} link set eth0 up")
    try:
        if not made:
            raise Skip("network namespaces need root and ip")
        yield name, node
    finally:
        for index in range(count):
            shell(f"ip netns del {node(index)}")
        shell(f"ip netns del {name}")


def over_nodes(node, count, *arguments):
    token = {"INQUEST_REPLAY_TOKEN": "0123456789abcdef0123456789abcdef"}
    return [Replay(*arguments, "--nnodes", str(count), "--node-rank", str(index), "--master", "10.81.0.1:29581", where=("ip", "netns", "exec", node(index)), env=token) for index in range(count)]


@row
def a_way_that_drops_is_named_with_its_direction():
    # What is blamed is always the way that drops. That the way back is sound shows where something was sent on it after the
    # drop, which is so in most runs, and the rank was not yet waiting.
    with nodes(3) as (_, node):
        for left in (2, 1, 0):
            replays = over_nodes(node, 3, "--count", "2000000", "--ranks", "3", "--iterations", "1000000", "--timeout", "4")
            time.sleep(2.5)
            # What node 2 sends to node 1 goes to an address that nobody has; what node 1 sends arrives.
            assert shell(f"ip -n {node(2)} neigh replace 10.81.0.2 lladdr 02:00:00:00:00:99 dev eth0 nud permanent")
            first = replays[0].end()
            for other in replays[1:]:
                other.end()
            assert shell(f"ip -n {node(2)} neigh del 10.81.0.2 dev eth0")
            verdict(first, 1, "link-dead")
            assert {"rank": 2, "to": 1} in first.trial["blamed"] and {"rank": 1, "to": 2} not in first.trial["blamed"], first.trial["blamed"]
            if "from rank 2 to rank 1" in first.trial["sentence"]:
                return
            assert left, first.trial["sentence"]


@row
def a_link_that_is_cut_loses_no_way_alone():
    with nodes(3) as (_, node):
        replays = over_nodes(node, 3, "--count", "2000000", "--ranks", "3", "--iterations", "1000000", "--timeout", "4")
        time.sleep(2.5)
        for sender, receiver in (1, 3), (2, 2):
            assert shell(f"ip -n {node(sender)} neigh replace 10.81.0.{receiver} lladdr 02:00:00:00:00:99 dev eth0 nud permanent")
        first = replays[0].end()
        for other in replays[1:]:
            other.end()
        verdict(first, 1, "link-dead")
        assert "on the way" not in first.trial["sentence"], first.trial["sentence"]
        assert {frozenset((blamed["rank"], blamed["to"])) for blamed in first.trial["blamed"]} == {frozenset((1, 2))}, first.trial["blamed"]


@row
def a_connection_that_is_reset_is_named():
    if not shell("ss -K dst 127.0.0.1 dport = 1"):
        raise Skip("ss cannot kill sockets here")
    replay = Replay("--count", "2000000", "--ranks", "3", "--iterations", "1000000")
    workers = replay.workers(3)
    time.sleep(1)
    lines = subprocess.run(["ss", "-Htnp", "state", "established"], capture_output=True, text=True).stdout.splitlines()
    ends = {}
    for line in lines:
        words = line.split()
        for rank, pid in enumerate(workers):
            if f"pid={pid}," in line:
                ends[(words[2], words[3])] = rank
    local, remote = next((local, remote) for (local, remote), rank in ends.items() if rank == 0 and ends.get((remote, local)) == 2)
    assert shell(f"ss -K src {local} dst {remote}")
    verdict(replay.end(), 1, "engine-error", "link")
    assert {frozenset((blamed["rank"], blamed["to"])) for blamed in replay.trial["blamed"]} == {frozenset((0, 2))}, (replay.trial["blamed"], replay.trial["sentence"])


@row
def an_interrupt_of_all_nodes_is_an_interrupt():
    with nodes(2) as (_, node):
        for order in (0, 1), (1, 0):
            replays = over_nodes(node, 2, "--count", "2000", "--ranks", "4", "--iterations", "1000000")
            time.sleep(2)
            for index in order:
                replays[index].process.send_signal(signal.SIGINT)
                time.sleep(0.15)
            first, second = [replay.end(15) for replay in replays]
            verdict(first, 2, "interrupted")
            assert second.status == 2, (second.status, second.err)
        # One of them alone is ended by somebody: that is no fault of a machine either.
        replays = over_nodes(node, 2, "--count", "2000", "--ranks", "4", "--iterations", "1000000")
        time.sleep(2)
        replays[1].process.send_signal(signal.SIGTERM)
        first, second = [replay.end(15) for replay in replays]
        verdict(first, 2, "interrupted", "ode 1 (")


failed, skipped = [], []
for function in rows:
    if only and function.__name__ not in only:
        continue
    try:
        function()
    except Skip as why:
        skipped.append(function.__name__)
        print(f"{function.__name__}: skipped, {why}")
    except (AssertionError, KeyError, ValueError, StopIteration, subprocess.SubprocessError, OSError) as problem:
        failed.append(function.__name__)
        print(f"{function.__name__}: {type(problem).__name__} {str(problem)[:500]}")
    except jsonschema.ValidationError as problem:
        failed.append(function.__name__)
        print(f"{function.__name__}: {problem.message[:300]}")
print(f"{len(rows) - len(failed) - len(skipped)} of {len(rows)} hold, {len(skipped)} skipped")
sys.exit(1 if failed else 0)
