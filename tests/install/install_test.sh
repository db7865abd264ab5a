#!/usr/bin/env bash
# Installs a build into an empty prefix and runs the program from there, away from the sources.
set -euo pipefail
if (($# != 1)); then
  echo 'usage: install_test.sh BUILD_DIR' >&2
  exit 2
fi
build=$(cd "$1" && pwd)
prefix=$(mktemp -d)
trap 'rm -rf -- "$prefix"' EXIT
cmake --install "$build" --prefix "$prefix/usr" >"$prefix/install.log" || { cat "$prefix/install.log" >&2; exit 1; }
cd "$prefix"

fail() {
  echo "install_test: $*" >&2
  cat out.txt err.txt >&2 2>/dev/null || true
  exit 1
}
# expect STATUS ARGUMENT...: runs the installed program without any environment.
expect() {
  local expected=$1 status=0
  shift
  env -i "$prefix/usr/bin/inquest" "$@" >out.txt 2>err.txt </dev/null || status=$?
  ((status == expected)) || fail "inquest $*: exit status $status, not $expected"
}

[[ -x usr/bin/inquest ]] || fail 'no bin/inquest was installed'
expect 0 --version
[[ -s out.txt ]] || fail '--version printed nothing'

{
  for rank in 0 1 3; do
    echo "[rank$rank]:[E219 04:10:00.123456789 ProcessGroupNCCL.cpp:607] [Rank $rank] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4711, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, Timeout(ms)=600000) ran for 600043 milliseconds before timing out."
  done
  echo '[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 2 has a total capacity of 79.15 GiB of which 1.20 GiB is free.'
} >job.log
expect 1 job.log
grep -q 'rank 2' out.txt || fail 'the report does not name rank 2'
expect 1 --format json job.log
grep -q '"schema": "inquest-verdict-1"' out.txt || fail 'no verdict document'
expect 3 no-such-file.log
[[ -s err.txt ]] || fail 'nothing said about a missing file'
expect 3 /dev/null
echo 'nothing of note' >quiet.log
expect 2 quiet.log

# Its worker is found from where it was installed; a build without Gloo says what is missing.
status=0
env -i "$prefix/usr/bin/inquest" replay --engine gloo --op broadcast --count 1000 --ranks 2 >out.txt 2>err.txt </dev/null || status=$?
((status == 0)) || grep -q libgloo-dev err.txt || fail "inquest replay: exit status $status"
