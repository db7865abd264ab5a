"""Compiles declarations_test.cc against the cuda.h and nccl.h of this host; 77 where there is no cuda.h.

Arguments: the C++ compiler, the source from tests/ on."""
import glob
import os
import pathlib
import shutil
import site
import subprocess
import sys

compiler, source = sys.argv[1:3]
root = pathlib.Path(__file__).resolve().parents[3]
nvcc = shutil.which("nvcc")
homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH", "NCCL_HOME")] + [nvcc and str(pathlib.Path(nvcc).resolve().parents[1])]
packages = [folder for place in site.getsitepackages() + [site.getusersitepackages()] for folder in glob.glob(f"{place}/nvidia/*/include")]
folders = [f"{home}/include" for home in homes if home] + sorted(glob.glob("/usr/local/cuda*/include")) + packages + ["/usr/include"]


def holding(header):
    return next((folder for folder in folders if (pathlib.Path(folder) / header).is_file()), None)


cuda, nccl = holding("cuda.h"), holding("nccl.h")
if cuda is None:
    sys.exit(77)
# Those of the system are where the compiler looks for itself.
includes = [word for folder in dict.fromkeys([cuda, nccl or cuda]) if folder != "/usr/include" for word in ("-isystem", folder)]
done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", f"-I{root}", *includes, root / "tests" / source], capture_output=True, text=True)
print(f"cuda.h of {cuda}, nccl.h of {nccl}\n{done.stderr}")
sys.exit(done.returncode)
