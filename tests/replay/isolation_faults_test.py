"""The fault matrix of --isolate: eight nodes, each a network namespace, and faults from outside: links that drop, ways, ports and switches that are
cut, signals, cgroups, a busy machine. Prints a table; each row must name what is broken, accuse nothing else, acquit nothing that is broken, and
leave nothing behind. Needs root and ip; says so where it is skipped.

Arguments: inquest, whether it has Gloo (1), then names of rows; none: all of them."""
import contextlib
import json
import os
import pathlib
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time

import jsonschema

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import cgroups
import processes
import schemas

inquest, gloo, only = os.path.abspath(sys.argv[1]), sys.argv[2] == "1", sys.argv[3:]
NODES, PORT = 8, 29591
SCRATCH = tempfile.TemporaryDirectory()
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("SLURM_", "OMPI_", "PMI", "TORCHELASTIC")) and name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")}
CLEAN |= {"TMPDIR": SCRATCH.name, "INQUEST_REPLAY_TOKEN": secrets.token_hex(16)}
NOWHERE = "02:00:00:00:00:99"
ALL = {frozenset((a, b)) for a in range(NODES) for b in range(a)}


Skip = cgroups.Missing


def shell(command):
    return subprocess.run(command, shell=True, capture_output=True).returncode == 0


def must(command):
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    if done.returncode != 0:
        raise Skip(f"{command}: {done.stderr.strip()}")


class Net:
    """Node N has 10.82.0.N+1 on eth0 for the control channel and 10.83.0.N+1 on eth1 for the ranks; two switches for those, of which one is in use."""

    def __init__(self):
        self.name = f"inqi{os.getpid()}"
        self.made = os.getuid() == 0 and shell(f"ip netns add {self.name}")
        for bridge in "br0", "br1", "other":
            self.made = self.made and shell(f"ip -n {self.name} link add {bridge} type bridge && ip -n {self.name} link set {bridge} up")
        for index in range(NODES):
            node = self.node(index)
            self.made = self.made and shell(f"ip netns add {node} && ip -n {node} link set lo up")
            for net in 0, 1:
                self.made = self.made and shell(
                    f"ip -n {self.name} link add v{net}x{index} type veth peer name eth{net} netns {node} && ip -n {self.name} link set v{net}x{index} master br{net} up"
                    f" && ip -n {node} addr add 10.{82 + net}.0.{index + 1}/24 dev eth{net} && ip -n {node} link set eth{net} up")

    def node(self, index):
        return f"{self.name}n{index}"

    def pids(self):
        return [pid for index in range(NODES) for pid in subprocess.run(["ip", "netns", "pids", self.node(index)], capture_output=True, text=True).stdout.split()]

    def drop(self, sender, receiver):
        must(f"ip -n {self.node(sender)} neigh replace 10.83.0.{receiver + 1} lladdr {NOWHERE} dev eth1 nud permanent")

    def mend(self, sender, receiver):
        shell(f"ip -n {self.node(sender)} neigh del 10.83.0.{receiver + 1} dev eth1")

    def plug(self, index, bridge):
        must(f"ip -n {self.name} link set v1x{index} {'master ' + bridge if bridge else 'nomaster'}")

    def close(self):
        for index in range(NODES):
            shell(f"ip netns del {self.node(index)}")
        shell(f"ip netns del {self.name}")


# ---- faults: each a context that holds while the replay runs -------------------------------------------------------
@contextlib.contextmanager
def dropping(net, *ways):
    """`ways`: (sender, receiver), each of which loses all packets without a word."""
    try:
        for way in ways:
            net.drop(*way)
        yield
    finally:
        for way in ways:
            net.mend(*way)


@contextlib.contextmanager
def plugged(net, nodes, bridge):
    try:
        for node in nodes:
            net.plug(node, bridge)
        yield
    finally:
        for node in nodes:
            net.plug(node, "br1")


@contextlib.contextmanager
def looping(work):
    """`work`, again and again, in a thread of its own."""
    over = threading.Event()

    def loop():
        while not over.is_set():
            work(over)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def flapping(net, one, other):
    def work(over):
        net.drop(one, other)
        over.wait(0.7)
        net.mend(one, other)
        over.wait(1.5)

    with looping(work):
        yield


@contextlib.contextmanager
def befalling(node, act):
    """`act` on each worker of that node, as soon as it is there."""
    seen, others = set(), set()

    def work(over):
        agent = running.get(node)
        for entry in os.listdir("/proc") if agent is not None else ():
            if not entry.isdigit() or entry in others or entry in seen:
                continue
            with contextlib.suppress(OSError, IndexError):
                if pathlib.Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()[1] != str(agent):
                    others.add(entry)
                elif b"inquest-replay-worker\0work" in pathlib.Path(f"/proc/{entry}/cmdline").read_bytes():
                    seen.add(entry)
                    act(int(entry))
        time.sleep(0.003)

    with looping(work):
        yield


@contextlib.contextmanager
def confined(node, controller, limit):
    with cgroups.limited(controller, limit) as group:
        groups[node] = group
        try:
            yield
        finally:
            groups.pop(node)


@contextlib.contextmanager
def frozen(node):
    with cgroups.freezing() as group, befalling(node, lambda pid: cgroups.enter(group, pid)):
        yield


@contextlib.contextmanager
def busy():
    """More than every core can do."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * os.cpu_count())]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@contextlib.contextmanager
def slow(net, node, rate):
    must(f"ip netns exec {net.node(node)} tc qdisc add dev eth1 root tbf rate {rate} burst 64k latency 100ms")
    try:
        yield
    finally:
        shell(f"ip netns exec {net.node(node)} tc qdisc del dev eth1 root")


# ---- a run, and what it said ----------------------------------------------------------------------------------------
running, groups = {}, {}  # by node: the process of it; the cgroup that it is to be in


def start(net, index, arguments):
    group = groups.get(index)
    words = ["ip", "netns", "exec", net.node(index), inquest, "replay", "--engine", "gloo", "--ranks", str(NODES), "--nnodes", str(NODES), "--node-rank", str(index),
             "--master", f"10.82.0.1:{PORT}", "--interface", "eth1", *(["--format", "json"] if index == 0 else []), *arguments]

    def before():
        processes.dies_with_us()
        if group:
            cgroups.enter(group)

    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=CLEAN, preexec_fn=before)


def run(net, *arguments, limit=240):
    begin = time.time()
    processes = [start(net, index, arguments) for index in range(NODES)]
    running.update({index: process.pid for index, process in enumerate(processes)})
    try:
        ends = [process.communicate(timeout=limit) for process in processes]
    finally:
        running.clear()
        for process in processes:
            if process.poll() is None:
                process.kill()
    took = time.time() - begin
    out, err = ends[0]
    assert out, err
    document = json.loads(out)
    schemas.validate(document, "replay")
    return document, processes[0].returncode, took


def pairs(document, state):
    return {frozenset(pair["ranks"]) for pair in document["isolation"]["pairs"] if pair["state"] == state}


def rank_named(finding):
    found = re.search(r"Ranks? ([\d, -]+) pass(?:es)? with no other rank", finding)
    return found and found.group(1)


rows = []


def row(fault, timeout=4, count=200_000, iterations=1):
    """`iterations`: enough that no worker is done before it is seen from outside."""
    def add(function):
        rows.append((function, fault, timeout, count, iterations))
        return function
    return add


def expects(document, broken, finding=None, rank=None):
    """`broken`: the pairs that are. What is right, and how many pairs are acquitted or accused wrongly."""
    said = document["isolation"]["finding"]
    acquitted = broken & pairs(document, "passed")
    accused = (pairs(document, "broken") | pairs(document, "unconfirmed")) - broken
    right = finding is None or finding in said
    right = right and (rank_named(said) == (str(rank) if rank is not None else None))
    # A worker that dies before it works could not run, which is no acquittal either.
    right = right and (not broken or bool(pairs(document, "broken") | pairs(document, "could-not-run")))
    return right, len(acquitted), len(accused)


def nobody(document):
    return expects(document, set(), "Passes 5 of 5")


def of_rank(rank):
    return {pair for pair in ALL if rank in pair}


def unable(rank):
    """It could not run, because of that rank, and no link is accused."""
    def judge(document):
        right, acquitted, accused = expects(document, set(), "could not run")
        said = document["isolation"]["finding"]
        return right and bool(re.search(rf"[Rr]ank {rank}\b|node {rank}\b", said)), acquitted, accused
    return judge


@row("none")
def clean(net):
    return contextlib.nullcontext(), nobody


@row("none, on a busy machine", timeout=15)
def clean_and_busy(net):
    return busy(), nobody


@row("2 and 5 lose all packets both ways", timeout=20)
def a_pair(net):
    return dropping(net, (2, 5), (5, 2)), lambda document: expects(document, {frozenset((2, 5))}, "this pair breaks: 2<->5")


@row("2 to 5 loses all packets, one way")
def one_way(net):
    return dropping(net, (2, 5)), lambda document: expects(document, {frozenset((2, 5))}, "this pair breaks: 2<->5")


@row("2 and 5, and 0 and 7")
def two_pairs(net):
    return dropping(net, (2, 5), (0, 7)), lambda document: expects(document, {frozenset((2, 5)), frozenset((0, 7))}, "these pairs break: 0<->7, 2<->5")


@row("2 and 5, and 2 and 6: one rank, not all of its links")
def two_pairs_of_a_rank(net):
    return dropping(net, (2, 5), (2, 6)), lambda document: expects(document, {frozenset((2, 5)), frozenset((2, 6))}, "rank 2 is in each, and passes with others")


@row("2 and 5 on a busy machine", timeout=15)
def a_pair_and_busy(net):
    stack = contextlib.ExitStack()
    stack.enter_context(busy())
    stack.enter_context(dropping(net, (2, 5)))
    return stack, lambda document: expects(document, {frozenset((2, 5))}, "this pair breaks: 2<->5")


@row("2 and 5; 1 and 6 flap, 0.7 s of 2.2", timeout=8)
def a_pair_and_a_flap(net):
    stack = contextlib.ExitStack()
    stack.enter_context(flapping(net, 1, 6))
    stack.enter_context(dropping(net, (2, 5)))
    return stack, lambda document: expects(document, {frozenset((2, 5))}, "this pair breaks: 2<->5")


@row("the port of 3 is cut")
def a_port(net):
    return plugged(net, [3], None), lambda document: expects(document, of_rank(3), rank=3)


@row("4-7 on a switch of their own")
def a_partition(net):
    across = {frozenset((a, b)) for a in range(4) for b in range(4, 8)}
    return plugged(net, range(4, 8), "other"), lambda document: expects(document, across, "Ranks 0-3, and ranks 4-7 pass among themselves, and no pair across does")


@row("SIGSTOP of each worker of 4", count=2_000_000, iterations=10)
def stopped(net):
    return befalling(4, lambda pid: os.kill(pid, signal.SIGSTOP)), lambda document: expects(document, of_rank(4), rank=4)


def once_connected(pid, node):
    """A connection of it to another rank stands: it is no death of a worker that has not begun."""
    own = "".join(f"{part:02X}" for part in (node + 1, 0, 83, 10))
    for _ in range(1000):
        lines = pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()
        if any(words[1].startswith(own) and words[3] == "01" for words in map(str.split, lines[1:])):
            return
        time.sleep(0.002)


@row("SIGKILL of each worker of 4 once it is connected", count=2_000_000, iterations=10, timeout=20)
def killed(net):
    def kill(pid):
        once_connected(pid, 4)
        os.kill(pid, signal.SIGKILL)
    return befalling(4, kill), lambda document: expects(document, of_rank(4), rank=4)


@row("each worker of 4 into a frozen cgroup", count=2_000_000, iterations=10)
def freezer(net):
    return frozen(4), lambda document: expects(document, of_rank(4), rank=4)


@row("cgroup of 4: 60 MB of memory", count=20_000_000, timeout=20)
def memory(net):
    return confined(4, "memory", 60 << 20), unable(4)


@row("cgroup of 4: 4 tasks")
def tasks(net):
    return confined(4, "pids", 4), unable(4)


@row("cgroup of 4: a tenth of a core", timeout=20)
def little_cpu(net):
    return confined(4, "cpu", 10_000), nobody


@row("port of 3 at 50 Mbit/s", timeout=20)
def a_slow_port(net):
    return slow(net, 3, "50mbit"), nobody


# ---- slow links, beside a baseline of the same net when it was well -----------------------------------------------------
SIZES = ["--sizes", "64K:4M:8", "--timeout", "30"]
speed_rows = []


def speed_row(fault, says, *links):
    """`links`: (from, to) of those that are slow."""
    def add(function):
        speed_rows.append((function, fault, says, set(links)))
        return function
    return add


@contextlib.contextmanager
def slow_way(net, one, other, rate):
    """What `one` sends to `other` goes over a wire of its own."""
    near, far = net.node(one), net.node(other)
    must(f"ip -n {near} link add pp type veth peer name pp netns {far} && ip -n {near} link set pp up && ip -n {far} link set pp up")
    try:
        must(f"ip netns exec {near} tc qdisc add dev pp root tbf rate {rate} burst 64k latency 100ms"
             f" && ip -n {near} route add 10.83.0.{other + 1}/32 dev pp src 10.83.0.{one + 1}")
        yield
    finally:
        shell(f"ip -n {near} link del pp")


@speed_row("speeds: none", "No link is slower than it was")
def speeds_as_before(net):
    return contextlib.nullcontext()


@speed_row("speeds: a busy machine", None)
def speeds_on_a_busy_machine(net):
    return busy()


@speed_row("speeds: port of 3 sends 200 Mbit/s", "All that rank 3 sends is slower than it was: 7 links", *((3, to) for to in range(NODES) if to != 3))
def speeds_of_a_port(net):
    return slow(net, 3, "200mbit")


@speed_row("speeds: 2 to 5 at 200 Mbit/s", "Link 2->5 is slower than it was", (2, 5))
def speeds_of_a_link(net):
    return slow_way(net, 2, 5, "200mbit")


def judge_speeds(document, says, slow_links):
    found = {(link["from"], link["to"]) for link in document["speeds"]["links"] if link["slow"]}
    said = document["speeds"]["finding"]
    # A whole machine that is slower is told as that, and no link of it is accused.
    if says is None:
        return not found or said.startswith("Every link"), 0, 0 if said.startswith("Every link") else len(found)
    return says in said, len(slow_links - found), len(found - slow_links)


def hold_speeds(net):
    """How many of the rows about bandwidths are wrong."""
    chosen = [one for one in speed_rows if not only or one[0].__name__ in only]
    if not chosen:
        return 0
    good = os.path.join(SCRATCH.name, "good.json")
    document, status, took = run(net, *SIZES, "--save-baseline", good)
    assert status == 0 and os.path.exists(good), document["speeds"]
    wrong = 0
    for function, fault, says, slow_links in chosen:
        try:
            with function(net):
                document, status, took = run(net, *SIZES, "--baseline", good)
        except Skip as why:
            print(f"{fault:52} skipped: {why}", flush=True)
            continue
        right, acquitted, accused = judge_speeds(document, says, slow_links)
        right = right and status == (1 if any(link["slow"] for link in document["speeds"]["links"]) else 0)
        left = nothing_left(net)
        print(f"{fault:52} {'yes' if right else 'NO':6} {acquitted:<9} {accused:<8} {left:<5} {took:8.1f} {'-':>9}  {document['speeds']['finding'][:200]}", flush=True)
        wrong += not right or acquitted > 0 or accused > 0 or left > 0
    return wrong


def nothing_left(net):
    for _ in range(50):
        left = net.pids() + [entry for entry in os.listdir(SCRATCH.name) if "inquest" in entry]
        if not left:
            return 0
        time.sleep(0.1)
    return len(left)


def main():
    if not gloo:
        print("skipped: this build has no Gloo")
        return 77
    net = Net()
    failed = skipped = 0
    try:
        if not net.made:
            print("skipped: network namespaces need root and ip")
            return 77
        print(f"{'fault':52} {'right':6} {'acquitted':9} {'accused':8} {'left':5} {'seconds':>8} {'deadlines':>9}  said", flush=True)
        for function, fault, timeout, count, iterations in rows:
            if only and function.__name__ not in only:
                continue
            try:
                context, judge = function(net)
                with context:
                    document, status, took = run(net, "--op", "all-reduce", "--count", str(count), "--iterations", str(iterations), "--isolate", "--timeout", str(timeout))
            except Skip as why:
                skipped += 1
                print(f"{fault:52} skipped: {why}", flush=True)
                continue
            except (AssertionError, subprocess.TimeoutExpired, json.JSONDecodeError, jsonschema.ValidationError) as why:
                failed += 1
                print(f"{fault:52} no result: {str(why)[:300]}", flush=True)
                continue
            isolation = document["isolation"]
            right, acquitted, accused = judge(document)
            left = nothing_left(net)
            named = isolation["named_s"]
            print(f"{fault:52} {'yes' if right else 'NO':6} {acquitted:<9} {accused:<8} {left:<5} {took:8.1f} {(named if named else took) / timeout:9.2f}  {isolation['finding'][:200]}", flush=True)
            if function is a_pair:  # a deadline of twenty seconds: what is beside it counts for little
                right = right and named < 3 * timeout
            failed += not right or acquitted > 0 or accused > 0 or left > 0
            if not right or acquitted or accused:
                print(json.dumps([pair for pair in isolation["pairs"] if pair["state"] != "passed"], indent=1)[:3000], [(v["id"], v["verdict"], v["sentence"]) for v in isolation["variants"]])
        failed += hold_speeds(net)
    finally:
        net.close()
    print(f"{failed} wrong, {skipped} skipped")
    return 1 if failed else 0


sys.exit(main())
