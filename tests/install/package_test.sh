#!/usr/bin/env bash
# Installs a package into a fresh Debian without a compiler and runs the program there. Needs root, debootstrap and a mirror.
set -euo pipefail
if (($# < 1)); then
  echo 'usage: package_test.sh FILE.deb|FILE.tar.gz [SUITE]    (bookworm)' >&2
  exit 2
fi
package=$(readlink -f "$1") suite=${2:-bookworm}
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
chroot=$(mktemp -d)
trap 'umount "$chroot/proc" 2>/dev/null || true; rm -rf --one-file-system -- "$chroot"' EXIT
mirror=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | head -n 1 | tr -d ' ' || true)
debootstrap --variant=minbase "$suite" "$chroot" "${mirror:-http://deb.debian.org/debian}" >"$chroot.log" 2>&1 || { tail -n 20 "$chroot.log" >&2; exit 3; }
rm -f "$chroot.log"
cp /etc/resolv.conf "$chroot/etc/resolv.conf"
[[ ! -d /etc/apt/apt.conf.d ]] || cp -n /etc/apt/apt.conf.d/* "$chroot/etc/apt/apt.conf.d/"
mount -t proc proc "$chroot/proc"
cp -r "$here/../../corpus/oom-on-one-rank-others-time-out" "$chroot/root/case"
cp "$package" "$chroot/root/"
inside() { chroot "$chroot" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }
fail() {
  echo "package_test: $*" >&2
  cat "$chroot"/root/*.txt >&2 || true
  exit 1
}
# expect STATUS ARGUMENT...
expect() {
  local expected=$1 status=0
  shift
  inside "$inquest" "$@" >"$chroot/root/out.txt" 2>"$chroot/root/err.txt" </dev/null || status=$?
  ((status == expected)) || fail "inquest $*: exit status $status, not $expected"
}

case $package in
  *.deb)
    inside apt-get update -q >/dev/null
    inside apt-get install -y -q --no-install-recommends "/root/$(basename "$package")" >"$chroot/root/apt.txt" 2>&1 || fail 'apt-get install'
    inquest=/usr/bin/inquest prefix=usr
    ;;
  *)
    mkdir "$chroot/opt/some place" && tar -C "$chroot/opt/some place" --strip-components=1 -xzf "$package"
    inquest='/opt/some place/bin/inquest' prefix='opt/some place'
    ;;
esac
! inside which gcc g++ cc c++ || fail 'there is a compiler here'
expect 0 version
expect 1 /root/case/job.log
grep -q 'cuda-oom' "$chroot/root/out.txt" || fail 'the report does not name the cause'
expect 0 collect -o /root/node.tar.zst /root/case
[[ -s $chroot/root/node.tar.zst ]] || fail 'collect wrote nothing'
expect 1 /root/node.tar.zst
expect 0 replay --engine gloo --op all-reduce --count 100000 --ranks 3
grep -q PASSED "$chroot/root/out.txt" || fail 'the replay did not pass'
for file in share/man/man1/inquest.1 share/man/man1/inquest-replay.1 share/bash-completion/completions/inquest share/zsh/vendor-completions/_inquest share/fish/vendor_completions.d/inquest.fish; do
  [[ -s $chroot/$prefix/$file ]] || fail "no $file"
done
echo "package_test: $(basename "$package") on $suite: passed"
