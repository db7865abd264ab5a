"""Logs, and the plan that a careful reader makes of them: which operation, how many ranks and by which line, where each
of them was, what every one of them was set to, and what a replay of it cannot show."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import schemas

inquest = sys.argv[1]


class Job:
    """Lines as NCCL 2.21 and PyTorch 2.6 print them; `per_host` ranks a host, each with a GPU of its own."""

    def __init__(self, per_host=8, visible=None, host=None):
        self.per_host, self.visible, self.host, self.lines, self.second = per_host, visible, host, [], 0

    def at(self, rank):
        return self.host or f"elm{4 + rank // self.per_host:02}", rank % self.per_host

    def bus(self, rank):
        return 0x1b + 4 * (rank % self.per_host)

    def say(self, text):
        self.lines.append(text)
        return self

    def cuda(self, rank):
        return self.at(rank)[1] if self.visible is None else self.visible

    def nccl(self, rank, text):
        host, local = self.at(rank)
        pid = 5000 + 100 * (rank // self.per_host) + local
        return self.say(f"{host}:{pid}:{pid + 60} [{self.cuda(rank)}] NCCL INFO {text}")

    def comm(self, ranks, number=1, complete=True, only=None):
        for done in ("START", "COMPLETE")[:1 + complete]:
            for place, rank in enumerate(ranks):
                if only is None or rank in only:
                    self.nccl(rank, f"ncclCommInitRank comm 0x55d0c0{number:02x}{rank:02x}00 rank {place} nranks {len(ranks)} cudaDev {self.cuda(rank)} "
                                    f"nvmlDev {self.at(rank)[1]} busId {self.bus(rank) << 12:x} commId 0x8f3d2ab4c1e9{number:04x} - Init {done}")
        return self

    def call(self, ranks, number=1, op="AllReduce", count=4096, dtype=7, redop=0, root=0, op_count=0, only=None):
        for rank in ranks:
            if only is None or rank in only:
                self.nccl(rank, f"{op}: opCount {op_count:x} sendbuff 0x7f0000000000 recvbuff 0x7f0000000000 count {count} datatype {dtype} op {redop} root {root} "
                                f"comm 0x55d0c0{number:02x}{rank:02x}00 [nranks={len(ranks)}] stream 0x55d0bf0000")
        return self

    def head(self, rank, site):
        return f"[rank{rank}]:[E1123 10:{self.second // 60:02}:{self.second % 60:02}.000000000 ProcessGroupNCCL.cpp:{site}] "

    def out(self, ranks, op="ALLREDUCE", seq=7, numel=4096, numel_out=None, group=None, ran=600010):
        """Watchdogs give up; `group` is (name, its ranks)."""
        for rank in ranks:
            place = group[1].index(rank) if group else rank
            self.say(f"{self.head(rank, 632)}[Rank {place}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, "
                     f"NumelOut={numel if numel_out is None else numel_out}, Timeout(ms)=600000) ran for {ran} milliseconds before timing out.")
            if group:
                self.say(f"{self.head(rank, 2268)}[PG ID 2 PG GUID {group[0]} Rank {place}]  failure detected by watchdog at work sequence id: {seq} "
                         f"PG status: last enqueued work: {seq}, last completed work: {seq - 1}")
        return self


def places(plan):
    return [(place["job_rank"], place["host"], place["bus_id"], place["device"]) for place in plan["places"]]


def bus(*numbers):
    return [f"0000:{number:02x}:00.0" for number in numbers]


WORLD8, TP = list(range(8)), ("3(mesh_tp)", [4, 5, 6, 7])
rows = {}


def row(name, job, **wanted):
    assert name not in rows
    rows[name] = (job, wanted)


# ---- how many ----
row("one watchdog's line is no job of one rank", Job().out([3]), ranks=None, least=4)
row("three names are three or more", Job().out([0, 1, 2]), ranks=None, least=3)
row("the job's size", Job().say("args: world_size=8").out([0, 1, 2]), ranks=8, ranks_at="world_size")
row("nranks of an Init line", Job().comm(WORLD8).out([0, 1]), ranks=8, ranks_at="nranks 8")
row("an Init that did not end proves as much", Job().comm(WORLD8, complete=False, only=[2]).out([2]), ranks=8, ranks_at="nranks 8")
row("elements in and out", Job().out([0, 1], op="_ALLGATHER_BASE", numel=10, numel_out=80), ranks=8, ranks_at="NumelOut=80")
row("a group's own size, not the job's", Job().say("args: world_size=8").comm(WORLD8).comm(TP[1], 2).out(TP[1], group=TP), ranks=4, ranks_at="rank 0 nranks 4")
row("a group of which nothing says the size", Job().say("args: world_size=8").out([4, 5], group=TP), ranks=None, least=2)
row("a group without a name, known by its ranks' numbers", Job().say("args: world_size=8").say("[rank5]:[E1123 10:00:00.000000000 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=5, NumelOut=5, Timeout(ms)=600000) ran for 600010 milliseconds before timing out."), ranks=None, least=2)
row("processes of one agent are not all of the job",
    Job().out([0, 1]).say("W1123 10:00:01.000000 40100 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 5001 closing signal SIGTERM")
    .say("E1123 10:00:02.000000 40100 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -6) local_rank: 0 (pid: 5000) of binary: /usr/bin/python3"), ranks=None, least=2)
row("an option proves it", Job().out([3]), options=["--ranks", "4"], ranks=4)

# ---- who, and where ----
row("ranks 4-7 on their own GPUs", Job().comm(WORLD8).comm(TP[1], 2).out(TP[1], group=TP), ranks=4,
    places=list(zip(TP[1], ["elm04"] * 4, bus(0x2b, 0x2f, 0x33, 0x37), [4, 5, 6, 7])))
row("each process sees one GPU", Job(visible=0).comm(WORLD8).out(WORLD8), ranks=8,
    places=list(zip(WORLD8, ["elm04"] * 8, bus(*range(0x1b, 0x3b, 4)), [0] * 8)))
row("one rank of each host", Job(per_host=4).comm(WORLD8).comm([1, 5], 2).out([1, 5], group=("5(mesh_dp)", [1, 5])), ranks=2,
    places=[(1, "elm04", "0000:1f:00.0", 1), (5, "elm05", "0000:1f:00.0", 1)], cannot="elm04 and elm05")
row("a group in an order of its own", Job().comm(WORLD8).comm([6, 2], 2).out([2, 6], group=("5(pp)", [6, 2])), ranks=2,
    places=[(6, "elm04", "0000:33:00.0", 6), (2, "elm04", "0000:23:00.0", 2)])
row("the calls of a communicator", Job().comm(WORLD8).comm(TP[1], 2).call(TP[1], 2, count=99).out(TP[1], numel=99, group=TP), ranks=4, dtype="float32",
    places=list(zip(TP[1], ["elm04"] * 4, bus(0x2b, 0x2f, 0x33, 0x37), [4, 5, 6, 7])))
row("the same call on two communicators", Job().comm([0, 1, 2, 3], 1).comm(TP[1], 2).call([0, 1, 2, 3], 1, count=99, dtype=7).call(TP[1], 2, count=99, dtype=9)
    .out(TP[1], numel=99, group=TP), ranks=4, dtype="bfloat16", places=list(zip(TP[1], ["elm04"] * 4, bus(0x2b, 0x2f, 0x33, 0x37), [4, 5, 6, 7])))
row("the hosts are here, in another order", Job(per_host=4).comm(WORLD8).out(WORLD8), options=["--hosts", "elm05,elm04"], ranks=8, cannot=None, nodes=["elm04"] * 4 + ["elm05"] * 4,
    gpus=bus(*range(0x1b, 0x2b, 4)) * 2)
row("ranks of two hosts in turn", Job(per_host=4).comm(WORLD8).comm([0, 4, 1, 5], 2).out([0, 4, 1, 5], group=("9(ep)", [0, 4, 1, 5])), options=["--hosts", "elm04,elm05"], ranks=4,
    nodes=["elm04", "elm05", "elm04", "elm05"], gpus=bus(0x1b, 0x1b, 0x1f, 0x1f))
row("other hosts are here", Job(per_host=4).comm(WORLD8).out(WORLD8), options=["--hosts", "oak01,oak02"], ranks=8, nodes=["oak01"] * 4 + ["oak02"] * 4, gpus=[None] * 8, devices=["0", "1", "2", "3"] * 2,
    note="elm04 and elm05, and not all of those are here")
row("an option that says who runs what", Job(per_host=4).comm(WORLD8).out(WORLD8), options=["--hosts", "elm05:4,elm04:4"], ranks=8, nodes=["elm05"] * 4 + ["elm04"] * 4, gpus=[None] * 8,
    note="--hosts puts them elsewhere")
row("one host, and this is another", Job().comm(WORLD8).comm(TP[1], 2).out(TP[1], group=TP), ranks=4, gpus=[None] * 4, devices=["4", "5", "6", "7"], note="a pass acquits these machines, not those")
row("one host, and this is it", Job(host=os.uname().nodename.split(".")[0]).comm(WORLD8).comm(TP[1], 2).out(TP[1], group=TP), ranks=4, gpus=bus(0x2b, 0x2f, 0x33, 0x37), devices=["4", "5", "6", "7"])
row("a send between two of eight", Job().comm(WORLD8).out([3], op="SEND", numel=50, seq=4, group=("8(pp)", [3, 5])).out([5], op="RECV", numel=50, seq=4, group=("8(pp)", [3, 5])), op="send-recv", ranks=2,
    places=[(3, "elm04", "0000:27:00.0", 3), (5, "elm04", "0000:2f:00.0", 5)], cannot=None)
row("a send between two of a group without a name", Job().comm(WORLD8).say(
    Job().head(3, 632) + "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=SEND, NumelIn=50, NumelOut=50, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.").say(
    Job().head(5, 632) + "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=RECV, NumelIn=50, NumelOut=50, Timeout(ms)=600000) ran for 600010 milliseconds before timing out."),
    op="send-recv", ranks=2, places=[(3, "elm04", "0000:27:00.0", 3), (5, "elm04", "0000:2f:00.0", 5)], cannot=None)
row("two of a tensor group, beside the group of all", Job().comm(WORLD8).comm([0, 1, 2, 3], 2).out([0, 2], group=("3(mesh_tp)", [0, 1, 2, 3])), ranks=4,
    places=list(zip([0, 1, 2, 3], ["elm04"] * 4, bus(0x1b, 0x1f, 0x23, 0x27), [0, 1, 2, 3])))
row("a rank alone, in groups of three sizes", Job().comm(WORLD8).comm([0, 1, 2, 3], 2).comm([0, 4], 3).out([0], group=("3(mesh_tp)", [0, 1, 2, 3])), ranks=None, least=1)
row("fewer than are named", Job().out([0, 1, 2, 3]), options=["--ranks", "2"], ranks=2, places=[], note="name at least 4 ranks, and 2 are run")
row("an option that takes fewer", Job().comm(WORLD8).out(WORLD8), options=["--ranks", "2"], ranks=2, places=[])

# ---- which operation ----
row("the lower number of one group comes first", Job().say("args: world_size=4").out([0], seq=12, op="BROADCAST", numel=5).out([1, 2, 3], seq=11, op="ALLREDUCE", numel=9),
    ranks=4, op="all-reduce", count=9)
row("the group that waited first", Job().comm(WORLD8).comm(TP[1], 2).out([0], seq=40, numel=5, group=("0(default_pg)", WORLD8), ran=600010)
    .out(TP[1], seq=900, numel=6, group=TP, ran=660010), ranks=4, count=6)
row("two operations of one rank", Job().say("args: world_size=2").out([0, 1], seq=31, op="BROADCAST", numel=3).out([0, 1], seq=30, op="ALLREDUCE", numel=2), ranks=2, op="all-reduce", count=2)

# ---- what a replay cannot show ----
row("sizes differ", Job().say("args: world_size=4").out([0, 1, 2], numel=100).out([3], numel=90), ranks=4, cannot="did not all do the same")
row("operations differ", Job().say("args: world_size=4").out([0, 1, 2], numel=100).out([3], op="BROADCAST", numel=100), ranks=4, cannot="did not all do the same")
row("numbers differ", Job().say("args: world_size=4").out([0, 1, 2], seq=8, numel=100).out([3], seq=9, op="BROADCAST", numel=7), ranks=4, cannot="at different operations: rank 3 waited in BROADCAST #9")
row("NCCL's calls differ", Job().comm([0, 1, 2, 3]).call([0, 1, 2, 3], only=[0, 1, 2], count=100).call([0, 1, 2, 3], only=[3], count=90).out([0, 1, 2, 3], numel=100), ranks=4, cannot="did not all do the same")
row("all alike", Job().say("args: world_size=4").out([0, 1, 2, 3]), ranks=4, cannot=None)

# ---- settings ----
row("a protocol on one host", Job(per_host=2).comm([0, 1, 2, 3]).nccl(2, "NCCL_PROTO set by environment to Simple.").nccl(3, "NCCL_PROTO set by environment to Simple.").out([0, 1, 2, 3]),
    ranks=4, env={}, envs=[{}, {}, {"NCCL_PROTO": "Simple"}, {"NCCL_PROTO": "Simple"}])
row("two protocols", Job(per_host=1).comm([0, 1]).nccl(0, "NCCL_PROTO set by environment to LL.").nccl(1, "NCCL_PROTO set by environment to Simple.").out([0, 1]),
    ranks=2, env={}, envs=[{"NCCL_PROTO": "LL"}, {"NCCL_PROTO": "Simple"}])
row("a setting of all", Job().comm([0, 1]).nccl(0, "NCCL_P2P_DISABLE set by environment to 1.").nccl(1, "NCCL_P2P_DISABLE set by environment to 1.").out([0, 1]),
    ranks=2, env={"NCCL_P2P_DISABLE": "1"}, envs=[{}, {}])
row("settings of others than who hung", Job().comm(WORLD8).comm(TP[1], 2).nccl(1, "NCCL_PROTO set by environment to LL.").nccl(5, "NCCL_ALGO set by environment to Ring.").out(TP[1], group=TP),
    ranks=4, env={}, envs=[{}, {"NCCL_ALGO": "Ring"}, {}, {}])
row("what is of the failed job alone", Job().comm([0, 1]).nccl(0, "NCCL_COMM_BLOCKING set by environment to 0.").nccl(0, "NCCL_RAS_ADDR set by environment to 10.0.0.1:99.").out([0, 1]), ranks=2, env={},
    envs=[{}, {}])


def plan_of(log, options):
    done = subprocess.run([inquest, "replay", "--engine", "nccl", "--format", "json", "--dry-run", str(log), *options], capture_output=True, text=True, timeout=120,
                          env={"PATH": "/usr/bin:/bin"})
    found = json.loads(done.stdout) if done.stdout else {"plan": None}
    return done, found


def check(name, job, wanted, folder):
    log = folder / "job.log"
    log.write_text("\n".join(job.lines) + "\n")
    done, found = plan_of(log, wanted.get("options", []))
    plan = found["plan"]
    assert plan is not None, done
    schemas.validate(found, "replay")
    if wanted["ranks"] is None:
        # What is known is printed all the same; what is not is asked for.
        assert plan["ranks"] is None and done.returncode == 3, (plan["ranks"], done.returncode)
        assert f"at least {wanted['least']}" in done.stderr and "--ranks" in done.stderr, done.stderr
        assert plan["op"]["value"] == "all-reduce" and plan["count"]["line"], plan
        real = subprocess.run([inquest, "replay", "--engine", "gloo", str(log)], capture_output=True, text=True, timeout=120)
        assert real.returncode == 3 and real.stdout == "", real
        return
    assert done.returncode == 0 and plan["ranks"]["value"] == wanted["ranks"], (plan["ranks"], done.stderr)
    if "ranks_at" in wanted:
        assert wanted["ranks_at"] in job.lines[plan["ranks"]["line"] - 1], plan["ranks"]
    for key in "op", "count", "dtype":
        if key in wanted:
            assert plan[key]["value"] == wanted[key], (key, plan[key])
    for key in "op", "count", "dtype", "ranks":
        if plan[key]["basis"] in ("observed", "derived"):
            assert plan[key]["source"] == str(log) and plan[key]["line"] >= 1, (key, plan[key])
    if "places" in wanted:
        assert places(plan) == [tuple(place) for place in wanted["places"]], plan["places"]
        for place in plan["places"]:
            assert place["source"] == str(log) and f"busId {int(place['bus_id'][5:7], 16) << 12:x} " in job.lines[place["line"] - 1], place
    if "nodes" in wanted:
        # Node 0 is this host, which is none of them and gets no ranks.
        names = [""] + [host.split(":")[0] for host in wanted["options"][-1].split(",")]
        assert [names[place["node"]] for place in plan["places"]] == wanted["nodes"], plan["places"]
    for key, option in ("gpus", "bus-id"), ("devices", "device"):
        if key in wanted:
            assert [place["options"].get(option) for place in plan["places"]] == wanted[key], plan["places"]
    if "note" in wanted:
        assert wanted["note"] in " ".join(plan["notes"]), plan["notes"]
    if "cannot" in wanted:
        said = " ".join(plan["cannot"])
        assert said == "" if wanted["cannot"] is None else wanted["cannot"] in said, plan["cannot"]
    if "env" in wanted:
        assert plan["env"] == wanted["env"], plan["env"]
        assert [place["env"] for place in plan["places"]] == wanted["envs"], plan["places"]


def check_verdict(wanted, folder):
    """What inquest printed of a log gives the same plan, or asks for what it does not hold; never another."""
    log, printed = folder / "job.log", folder / "verdict.json"
    printed.write_text(subprocess.run([inquest, "--format", "json", str(log)], capture_output=True, text=True, timeout=120).stdout)
    if json.loads(printed.read_text())["verdict"]["collective"] is None:
        return
    direct = plan_of(log, wanted.get("options", []))[1]["plan"]
    _, found = plan_of(printed, wanted.get("options", []))
    plan = found["plan"]
    schemas.validate(found, "replay")
    if plan["count"]["value"] != direct["count"]["value"]:
        return  # a verdict speaks of one operation, and does not say what else did not end
    assert plan["ranks"] is None or plan["ranks"]["value"] == wanted["ranks"], ("verdict", plan["ranks"])
    if "places" in wanted and plan["ranks"]:
        told = [place for place in places(plan) if any(part is not None for part in place)]
        assert told in ([tuple(place) for place in wanted["places"]], []), ("verdict", plan["places"])


failed = []
with tempfile.TemporaryDirectory() as name:
    for title, (job, wanted) in rows.items():
        try:
            check(title, job, wanted, pathlib.Path(name))
            check_verdict(wanted, pathlib.Path(name))
        except (AssertionError, KeyError, TypeError, jsonschema.ValidationError) as problem:
            failed.append(title)
            print(f"{title}: {type(problem).__name__} {str(problem).splitlines()[0][:400]}")
print(f"{len(rows) - len(failed)} of {len(rows)} plans are as a careful reader makes them")
sys.exit(1 if failed else 0)
