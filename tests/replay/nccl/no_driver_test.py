"""`inquest replay --engine nccl` where nothing of CUDA is: what every installation without a GPU says, and how soon.

Arguments: inquest, its worker beside it, the fake libnccl."""
import os
import subprocess
import sys
import time

inquest, library = sys.argv[1:3]
plain = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
call = [inquest, "replay", "--engine", "nccl", "--op", "all-reduce", "--count", "10", "--ranks", "2"]
if "libcuda.so.1" in subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout:
    sys.exit(77)  # this host has a driver

for more in [[], ["--nccl-lib", library]]:
    before = time.monotonic()
    done = subprocess.run([*call, *more], capture_output=True, text=True, timeout=60, env=plain)
    took = time.monotonic() - before
    assert done.returncode == 3 and done.stdout == "", done
    assert "libcuda.so.1 cannot be loaded" in done.stderr and "--engine gloo" in done.stderr, done.stderr
    assert took < 1, took
