"""`inquest replay` over several nodes: network namespaces on a bridge stand for hosts. Needs root and ip; says so where it is skipped."""
import contextlib
import json
import os
import pathlib
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import processes
import schemas

inquest, gloo = sys.argv[1], sys.argv[2] == "1"
TOKEN = secrets.token_hex(16)
PORT = 29571
# Launchers of whoever runs this test must not be seen by the program.
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("SLURM_", "OMPI_", "PMI", "TORCHELASTIC")) and name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")}

SCRATCH = tempfile.TemporaryDirectory()  # what is killed with -9 leaves its folder
CLEAN["TMPDIR"] = SCRATCH.name


def shell(command):
    return subprocess.run(command, shell=True, capture_output=True).returncode == 0


def skip(why):
    print("skipped:", why)
    sys.exit(77)


class Net:
    """Nodes 10.78.0.N on eth0, which carries the control channel, and 10.79.0.N on eth1."""

    def __init__(self, nodes):
        self.name, self.nodes = f"inqn{os.getpid()}", nodes
        self.made = shell(f"ip netns add {self.name}") and all(shell(f"ip -n {self.name} link add br{net} type bridge && ip -n {self.name} link set br{net} up") for net in (0, 1))
        for node in range(nodes):
            self.made = self.made and shell(f"ip netns add {self.node(node)} && ip -n {self.node(node)} link set lo up")
            for net in (0, 1):
                self.made = self.made and shell(
                    f"ip -n {self.name} link add v{net}x{node} type veth peer name eth{net} netns {self.node(node)} && ip -n {self.name} link set v{net}x{node} master br{net} up"
                    f" && ip -n {self.node(node)} addr add 10.{78 + net}.0.{node + 1}/24 dev eth{net} && ip -n {self.node(node)} addr add fd78:{net}::{node + 1}/64 dev eth{net} nodad && ip -n {self.node(node)} link set eth{net} up")

    def node(self, index):
        return f"{self.name}n{index}"

    def cut(self, node, net):
        assert shell(f"ip -n {self.name} link set v{net}x{node} nomaster")

    def join(self, node, net):
        assert shell(f"ip -n {self.name} link set v{net}x{node} master br{net}")

    def pids(self, node):
        return subprocess.run(["ip", "netns", "pids", self.node(node)], capture_output=True, text=True).stdout.split()

    def close(self):
        for node in range(self.nodes):
            shell(f"ip netns del {self.node(node)}")
        shell(f"ip netns del {self.name}")


class Process:
    def __init__(self, command, env=None, stdin=None):
        self.begin = time.time()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=stdin, text=True, env={**CLEAN, **(env if env is not None else {"INQUEST_REPLAY_TOKEN": TOKEN})}, preexec_fn=processes.dies_with_us)

    def end(self, limit=60):
        try:
            self.out, self.err = self.process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.out, self.err = self.process.communicate()
            raise AssertionError(f"still running: {self.process.args} {self.out} {self.err}")
        self.ended, self.status = time.time(), self.process.returncode
        return self


CALL = ["--engine", "gloo", "--op", "all-reduce", "--count", "2000"]


def start(net, node, nodes, *more, env=None, master="10.78.0.1"):
    where = ["ip", "netns", "exec", net.node(node)] if net else []
    return Process([*where, inquest, "replay", *CALL, "--nnodes", str(nodes), "--node-rank", str(node), "--master", f"{master}:{PORT}", *more], env)


def start_all(net, nodes, *more):
    return [start(net, node, nodes, *(("--format", "json") if node == 0 else ()), *more) for node in range(nodes)]


def document(process):
    found = json.loads(process.out)
    schemas.validate(found, "replay")
    return found


def run(net, nodes, *more):
    processes = [process.end() for process in start_all(net, nodes, "--ranks", str(2 * nodes), *more)]
    for other in processes[1:]:
        assert other.status == processes[0].status and other.out == "", (other.status, other.out, other.err, processes[0].out[:400], processes[0].err)
    found = document(processes[0])
    return processes[0].status, found, found["trials"][0]


def in_time(trial):
    assert trial["decided_s"] - trial["event_s"] < 2, trial["sentence"]


def nothing_left(net):
    for _ in range(60):
        left = [net.pids(node) for node in range(net.nodes)]
        if not any(left):
            return
        time.sleep(0.1)
    raise AssertionError(left)


def passes(net):
    for nodes in (2, 3):
        status, found, trial = run(net, nodes, "--iterations", "3")
        assert status == 0 and trial["verdict"] == "passed" and "data verified" in trial["sentence"], trial
        assert [rank["node"] for rank in trial["ranks"]] == [rank // 2 for rank in range(2 * nodes)]
        assert [node["ranks"] for node in found["nodes"]] == [[2 * node, 2 * node + 1] for node in range(nodes)]
        assert [node["address"] for node in found["nodes"]] == [f"10.78.0.{node + 1}" for node in range(nodes)]
        assert found["plan"]["nodes"]["value"] == nodes and found["plan"]["nodes"]["basis"] == "given"
    processes = [start(net, node, 2, "--ranks", "2", "--format", "json", master="[fd78:0::1]") for node in range(2)]
    first, second = [process.end() for process in processes]
    assert first.status == second.status == 0 and [node["address"] for node in document(first)["nodes"]] == ["fd78::1", "fd78::2"], (first.err, second.err)
    # Four combinations of what is assumed: the agents stay connected over the runs.
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "job.log"
        log.write_text("".join(f"[E ProcessGroupNCCL.cpp:523] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=BROADCAST, "
                               f"NumelIn=5000, NumelOut=5000, Timeout(ms)=600000) ran for 60041{rank} milliseconds before timing out.\n" for rank in range(4)) + "args: world_size=4\n")
        processes = [Process(["ip", "netns", "exec", net.node(node), inquest, "replay", "--engine", "gloo", *([str(log)] if node == 0 else []), "--format", "json", "--dtype", "float32",
                              "--nnodes", "2", "--node-rank", str(node), "--master", f"10.78.0.1:{PORT}"]) for node in range(2)]
        first, second = [process.end() for process in processes]
        assert first.status == second.status == 0 and second.out == "", (first.err, second.err)
        assert [trial["verdict"] for trial in document(first)["trials"]] == ["passed"] * 4
    nothing_left(net)


def faults(net):
    rows = [("3:hang@comm-init", "hung", "never reached comm-init within 2.0 s; ranks 0-2 wait in connected"),
            ("2:hang@enqueued", "hung", "did not enqueue #1"),
            ("2:count=5", "call-mismatch", "Rank 2 on node 1 ("),
            ("3:stop@completed", "rank-stopped", "is stopped (SIGSTOP or its like, state T)"),
            ("2:kill@completed", "rank-died", "was killed by signal 9 (Killed)"),
            ("3:corrupt", "wrong-data", "got wrong data in #1")]
    for fault, verdict, sentence in rows:
        status, _, trial = run(net, 2, "--fault", fault, "--timeout", "2" if "hang" in fault else "20")
        assert status == 1 and trial["verdict"] == verdict and sentence in trial["sentence"], trial["sentence"]
        assert trial["blamed"] == [{"rank": int(fault[0]), "to": None}], trial["blamed"]
        assert f"Rank {fault[0]} on node 1 (" in trial["sentence"], trial["sentence"]
        in_time(trial)
        blamed = trial["ranks"][int(fault[0])]
        assert blamed["node"] == 1 and (blamed["threads"] or verdict == "rank-died"), blamed
    status, _, trial = run(net, 2, "--fault", "2:delay@enqueued=1500")
    assert status == 0 and re.search("Rank 2 was 1.[456] s late", " ".join(trial["notes"])), trial["notes"]
    nothing_left(net)


def dead_link(net):
    processes = start_all(net, 2, "--ranks", "4", "--interface", "eth1", "--iterations", "1000000", "--timeout", "4")
    time.sleep(1.5)
    net.cut(1, 1)
    first, second = [process.end() for process in processes]
    net.join(1, 1)
    trial = document(first)["trials"][0]
    assert first.status == second.status == 1 and trial["verdict"] == "link-dead", trial["sentence"]
    assert re.search(r"ink \d->\d from node [01] \(.*\) to node [01] \(.*\) holds", trial["sentence"]), trial["sentence"]
    for blamed in trial["blamed"]:
        assert {blamed["rank"] // 2, blamed["to"] // 2} == {0, 1}, trial["blamed"]
    in_time(trial)
    nothing_left(net)


def lost(net, how, says):
    """`how` does away with node 1 while all work."""
    processes = start_all(net, 2, "--ranks", "4", "--iterations", "1000000", "--timeout", "20")
    time.sleep(1.5)
    how(processes)
    at = time.time()
    first = processes[0].end()
    trial = document(first)["trials"][0]
    assert first.status == 1 and trial["verdict"] == "node-lost", trial["sentence"]
    assert "ode 1 (" in trial["sentence"] and "ranks 2, 3" in trial["sentence"] and says in trial["sentence"], trial["sentence"]
    decided = first.ended - (trial["took_s"] - trial["decided_s"])
    assert decided - at < 2.2, (decided - at, trial["sentence"])
    second = processes[1].end()
    assert second.status != 0 and second.out == ""
    nothing_left(net)
    return second


def death(net):
    lost(net, lambda processes: processes[1].process.kill(), "its connection")
    second = lost(net, lambda processes: net.cut(1, 0), "nothing came from its host")
    assert "the coordinator at 10.78.0.1" in second.err, second.err
    net.join(1, 0)
    # In an isolation nothing is run after that, and it is said.
    processes = start_all(net, 2, "--ranks", "4", "--iterations", "1000000", "--isolate")
    time.sleep(1.2)
    processes[1].process.kill()
    processes[1].end()
    found = document(processes[0].end())
    assert processes[0].status == 2 and "was lost with ranks 2, 3" in found["isolation"]["finding"] and "Nothing could be run after that" in found["isolation"]["finding"], found["isolation"]
    # The other way round: nobody outlives the coordinator, however it ends.
    for number in (signal.SIGKILL, signal.SIGINT):
        processes = start_all(net, 2, "--ranks", "4", "--iterations", "1000000")
        time.sleep(1.2)
        assert len(net.pids(1)) == 3
        processes[0].process.send_signal(number)
        at = time.time()
        second = processes[1].end(10)
        assert second.ended - at < 4 and second.status == (2 if number == signal.SIGINT else 3), (second.status, second.err)
        processes[0].end(10)
        assert processes[0].process.returncode == (2 if number == signal.SIGINT else -9)
        nothing_left(net)


def strangers(net):
    # Another token; the run still passes with the right one afterwards.
    first = start(net, 0, 2, "--ranks", "2", "--format", "json")
    wrong = start(net, 1, 2, env={"INQUEST_REPLAY_TOKEN": secrets.token_hex(16)}).end()
    assert wrong.status == 3 and "refused the job token" in wrong.err and wrong.out == "", wrong.err
    right = start(net, 1, 2)
    assert first.end().status == 0 and right.end().status == 0, first.err
    # A token that is wrong for good: who came is in the hint, the token is nowhere.
    first = start(net, 0, 2, "--ranks", "2", "--join-timeout", "1")
    wrong = start(net, 1, 2, env={"INQUEST_REPLAY_TOKEN": secrets.token_hex(16)}).end()
    assert first.end().status == 3 and "node 1 of 2 never came within 1.0 s" in first.err and "10.78.0.2 connected once and did not know the job token" in first.err, first.err
    assert TOKEN not in first.err + first.out + wrong.err
    none = start(net, 0, 2, "--ranks", "2", env={}).end()
    assert none.status == 3 and "no job token" in none.err and "openssl rand -hex 32" in none.err, none.err
    # Whoever else finds the port: garbage, silence, a length of 4 GiB, bytes one by one. None of them delays the run.
    first = start(net, 0, 2, "--ranks", "2", "--format", "json")
    time.sleep(0.4)
    attacks = Process(["ip", "netns", "exec", net.node(2), sys.executable, "-c", f"""
import socket, time, os
def open_one():
    return socket.create_connection(('10.78.0.1', {PORT}), 5)
peers = [open_one() for _ in range(300)]
for i, peer in enumerate(peers):
    try:
        peer.sendall([b'GET / HTTP/1.1\\r\\n\\r\\n', os.urandom(4096), b'inquest replay 1' + b'\\xff' * 200, b'i', b''][i % 5])
    except OSError:
        pass
print('ready', flush=True)
for byte in b'inquest replay 1' * 20:
    for peer in peers:
        try:
            peer.send(bytes([byte]))
        except OSError:
            pass
    time.sleep(0.2)
"""])
    assert attacks.process.stdout.readline() == "ready\n"
    begin = time.time()
    right = start(net, 1, 2).end()
    assert first.end().status == 0 and right.status == 0 and time.time() - begin < 5, first.err
    attacks.process.kill()
    attacks.end()
    # A mistake on node 0 ends the others too, soon.
    begin = time.time()
    first, second = start(net, 0, 2, "--ranks", "2", "--root", "9", "--fault", "9:hang"), start(net, 1, 2)
    assert first.end().status == 3 and "bad fault" in first.err and second.end().status == 3 and "bad fault" in second.err and time.time() - begin < 5, (first.err, second.err)
    # A node that never comes is named.
    begin = time.time()
    first, second = start(net, 0, 3, "--ranks", "3", "--join-timeout", "1.5"), start(net, 1, 3)
    assert first.end().status == 3 and "node 2 of 3 never came within 1.5 s" in first.err and first.out == "", first.err
    assert second.end().status == 3 and "node 2 of 3 never came" in second.err and time.time() - begin < 4
    # One that was started for another number of nodes.
    first, second = start(net, 0, 2, "--ranks", "2"), start(net, 1, 3)
    assert first.end().status == 3 and "as one of 3 nodes" in first.err and second.end().status == 3, first.err
    nothing_left(net)


def launchers(net):
    """Plain shells with the variables that launchers set."""
    def torchrun(rank, local_world):
        return {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank % local_world), "LOCAL_WORLD_SIZE": str(local_world), "MASTER_ADDR": "10.78.0.1", "MASTER_PORT": "29600",
                "INQUEST_REPLAY_TOKEN": TOKEN}

    def both(namespaces, *more, local_world=1):
        processes = [Process(["ip", "netns", "exec", net.node(namespace), inquest, "replay", *CALL, "--format", "json", *more], torchrun(rank, local_world)) for rank, namespace in enumerate(namespaces)]
        return [process.end() for process in processes]

    # One process a node, each with the ranks of its node; one process a rank; two of them on a host.
    for namespaces, more, local_world, ranks in (((0, 1), ("--ranks", "4"), 1, 4), ((0, 1), (), 1, 2), ((1, 1), ("--master", "10.78.0.2"), 2, 2)):
        first, second = both(namespaces, *more, local_world=local_world)
        found = document(first)
        assert first.status == second.status == 0 and second.out == "" and len(found["trials"][0]["ranks"]) == ranks, (first.err, second.err)
        assert found["plan"]["nodes"]["basis"] == "observed" and "torchrun" in found["plan"]["nodes"]["rule"], found["plan"]["nodes"]
    first, second = both((1, 1), "--master", "10.78.0.2", "--ranks", "4", "--join-timeout", "1", local_world=2)
    assert first.status == 3 and "several on a host, for 4 ranks" in first.err, first.err
    # By ssh, in whose place is ip netns exec: this process has no ranks of its own.
    hosts = f"{net.node(0)}:2,{net.node(1)}:1"
    by_ssh = ["ip", "netns", "exec", net.node(2), inquest, "replay", *CALL, "--format", "json", "--hosts", hosts, "--ssh-command", "ip netns exec", "--master", "10.78.0.3"]
    started = Process(by_ssh, env={}).end()
    found = document(started)
    assert started.status == 0 and [rank["node"] for rank in found["trials"][0]["ranks"]] == [1, 1, 2], (started.err, found)
    assert found["plan"]["ranks"]["value"] == 3 and found["plan"]["ranks"]["basis"] == "derived"
    started = Process([*by_ssh, "--ranks", "4"], env={}).end()
    assert started.status == 3 and "places for 3 ranks" in started.err, started.err
    refused = Process([*by_ssh[:-2], "--master", "10.78.0.3", "--hosts", f"{net.node(0)}:1,nosuchnode:1"], env={}).end()
    assert refused.status == 3 and "the agent on nosuchnode did not start" in refused.err and "nosuchnode" in refused.err, refused.err
    killed = Process([*by_ssh, "--iterations", "1000000"], env={})
    time.sleep(1.5)
    assert len(net.pids(0)) == 3, net.pids(0)
    killed.process.kill()
    killed.end()
    nothing_left(net)


def alone():
    """A single process inside a launcher's environment."""
    call = [inquest, "replay", *CALL, "--ranks", "2"]
    one = Process(call, {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "nowhere", "MASTER_PORT": "1"}).end()
    assert one.status == 0, one.err
    several = Process(call, {"RANK": "0", "WORLD_SIZE": "16", "MASTER_ADDR": "nowhere", "MASTER_PORT": "1"}).end()
    assert several.status == 3 and "16 processes take part (RANK 0 of WORLD_SIZE 16 in the environment of torchrun)" in several.err and "--nnodes 1" in several.err, several.err
    told = Process([*call, "--nnodes", "1"], {"RANK": "0", "WORLD_SIZE": "16"}).end()
    assert told.status == 0, told.err
    batch = Process(call, {"SLURM_PROCID": "0", "SLURM_NTASKS": "16", "SLURM_NNODES": "2", "SLURM_JOB_NODELIST": "node[1-2]"}).end()
    assert batch.status == 0 and "srun starts it on every node" in batch.out, batch
    plan = Process([inquest, "replay", *CALL, "--ranks", "4", "--dry-run", "--nnodes", "2", "--node-rank", "0", "--master", "a"], {}).end()
    assert plan.status == 0 and "given by --nnodes; ranks 0-1 on node 0, 2-3 on node 1" in plan.out, plan.out


if not gloo:
    skip("this build has no Gloo")
alone()
network = Net(3) if os.geteuid() == 0 else None
try:
    if network is None or not network.made:
        skip("network namespaces need root and ip")
    for part in (passes, faults, dead_link, death, strangers, launchers):
        if len(sys.argv) > 3 and part.__name__ not in sys.argv[3:]:
            continue
        begin = time.time()
        part(network)
        print(f"{part.__name__}: {time.time() - begin:.1f} s", flush=True)
finally:
    if network:
        network.close()
