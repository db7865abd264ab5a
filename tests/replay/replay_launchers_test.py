"""`inquest replay` started by a real mpirun and by a real Slurm of one node; what is not installed is said and left out."""
import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time

inquest, gloo = sys.argv[1], sys.argv[2] == "1"
CALL = [inquest, "replay", "--engine", "gloo", "--op", "all-reduce", "--count", "1000", "--color", "never"]
ENV = {**os.environ, "INQUEST_REPLAY_TOKEN": secrets.token_hex(16)}


def run(launcher, *more, env=None):
    return subprocess.run([*launcher, *CALL, *more], capture_output=True, text=True, timeout=90, env={**ENV, **(env or {})})


def once(text, words):
    assert text.count(words) == 1, text


def check(launcher, rule):
    done = run(launcher)
    assert done.returncode == 0 and "2 ranks" in done.stdout and rule in done.stdout, done
    once(done.stdout, "PASSED")
    broken = run(launcher, "--fault", "1:kill@enqueued")
    once(broken.stdout, "REPRODUCED (rank-died)")
    assert broken.returncode == 1 and "was killed by signal 9" in broken.stdout, broken
    once(broken.stdout, "What was run")  # whole, though its launcher ends all once one has failed
    none = run(launcher, env={"INQUEST_REPLAY_TOKEN": ""})
    assert none.returncode == 3 and "no job token" in none.stderr and none.stdout == "", none


def mpirun():
    if not shutil.which("mpirun"):
        return "no mpirun (openmpi-bin)"
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout
    if "Open MPI" not in version:
        return "mpirun is not that of Open MPI"
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    check(["mpirun", *root, "--oversubscribe", "-np", "2"], "OMPI_COMM_WORLD_RANK 0 of OMPI_COMM_WORLD_SIZE 2")
    # One process for both ranks.
    alone = run(["mpirun", *root, "-np", "1"], "--ranks", "2")
    assert alone.returncode == 0 and "OMPI_COMM_WORLD_SIZE 1" in alone.stdout, alone


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def slurm():
    missing = [name for name in ("slurmctld", "slurmd", "srun", "sbatch") if not shutil.which(name)]
    if missing:
        return f"no {', '.join(missing)} (slurmctld, slurmd, slurm-client)"
    if os.geteuid() != 0:
        return "slurmd needs root"
    host = socket.gethostname().split(".")[0]
    with tempfile.TemporaryDirectory() as folder:
        conf = pathlib.Path(folder) / "slurm.conf"
        conf.write_text(f"""ClusterName=inquest
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=500 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES State=UP OverSubscribe=FORCE:4
""")
        env = {"SLURM_CONF": str(conf)}
        ENV.update(env)
        daemons = [subprocess.Popen([name, "-D", "-f", str(conf)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for name in ("slurmctld", "slurmd")]
        try:
            for _ in range(40):
                state = subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True, env=ENV).stdout.strip()
                if state == "idle" or any(daemon.poll() is not None for daemon in daemons):
                    break
                time.sleep(0.25)
            if state != "idle":
                logs = "".join(path.read_text()[-400:] for path in pathlib.Path(folder).glob("*.log"))
                return f"Slurm does not start here: {logs}"
            check(["srun", "-n2", "--mpi=none"], "SLURM_PROCID 0 of SLURM_STEP_NUM_TASKS 2 in the environment of srun")
            check(["srun", "-n2", "--kill-on-bad-exit=1"], "in the environment of srun")
            # In a batch script there is one process, whatever was asked for.
            script, out = pathlib.Path(folder) / "batch.sh", pathlib.Path(folder) / "batch.out"
            script.write_text("#!/bin/sh\nexec " + " ".join(CALL) + " --ranks 2\n")
            batch = subprocess.run(["sbatch", "-n2", "--wait", "-o", str(out), str(script)], capture_output=True, text=True, timeout=60, env=ENV)
            text = out.read_text()
            assert batch.returncode == 0 and "PASSED" in text and "srun starts it on every node" in text, (batch, text)
        finally:
            for daemon in reversed(daemons):
                daemon.terminate()
                try:
                    daemon.wait(10)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait()


if not gloo:
    print("skipped: this build has no Gloo")
    sys.exit(77)
ran = 0
for part in (mpirun, slurm):
    begin = time.time()
    why = part()
    print(f"{part.__name__}: skipped: {why}" if why else f"{part.__name__}: {time.time() - begin:.1f} s", flush=True)
    ran += not why
sys.exit(0 if ran else 77)
