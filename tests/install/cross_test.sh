#!/usr/bin/env bash
# Compiles the program for arm64 with Debian's cross compiler, in a fresh Debian, and runs it by qemu. Needs root,
# debootstrap and a mirror; takes ten minutes and more. 77: cannot be run here.
set -euo pipefail
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
# shellcheck source-path=SCRIPTDIR source=fresh_debian.sh
source "$here/fresh_debian.sh"
# shellcheck source-path=SCRIPTDIR source=../../scripts/common.sh
source "$here/../../scripts/common.sh"
make_fresh_debian "${1:-bookworm}"

# Libraries are arm64's; what runs here, or has no architecture, is our own.
own=() foreign=()
for package in "${packages[@]}" libvectorscan-dev; do
  case $package in
    g++ | cmake | ninja-build | pkg-config | libcli11-dev | nlohmann-json3-dev) own+=("$package") ;;
    *) foreign+=("$package:arm64") ;;
  esac
done
{
  inside dpkg --add-architecture arm64
  inside apt-get update -q
  inside apt-get install -y -q --no-install-recommends crossbuild-essential-arm64 qemu-user-static "${own[@]}" "${foreign[@]}"
} >"$chroot/root/apt.txt" 2>&1 || { tail -n 30 "$chroot/root/apt.txt" >&2; exit 1; }
mkdir "$chroot/root/inquest"
tar -C "$root" --exclude=./build --exclude=./.git -cf - . | tar -C "$chroot/root/inquest" -xf -

cd_and() { inside env PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig sh -c 'cd /root/inquest && exec "$@"' - "$@"; }
{
  # inquest_embed, which compiles the rules while it builds, is arm64's as well: libhs writes its tables for the machine it runs on.
  cd_and cmake --preset release -DINQUEST_BUILD_TESTS=OFF -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_ASM_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CROSSCOMPILING_EMULATOR=/usr/bin/qemu-aarch64-static
  cd_and cmake --build build/release --parallel "$(build_jobs)" --target inquest inquest-replay-worker
} >"$chroot/root/build.txt" 2>&1 || { tail -n 60 "$chroot/root/build.txt" >&2; exit 1; }

fail() {
  echo "cross_test: $*" >&2
  cat "$chroot"/root/out.txt >&2
  exit 1
}
# expect STATUS TEXT ARGUMENT...
expect() {
  local expected=$1 text=$2 status=0
  shift 2
  cd_and qemu-aarch64-static build/release/inquest "$@" >"$chroot/root/out.txt" 2>&1 </dev/null || status=$?
  ((status == expected)) || fail "inquest $*: exit status $status, not $expected"
  grep -qF -- "$text" "$chroot/root/out.txt" || fail "inquest $*: does not say \"$text\""
}
expect 0 'inquest ' version
expect 1 cuda-oom corpus/oom-on-one-rank-others-time-out/job.log
expect 0 ' 0 failed' rules test
echo 'cross_test: arm64: passed'
