#!/usr/bin/env bash
# Installs a package into a fresh Debian without a compiler and runs the program there. Needs root, debootstrap and a mirror;
# takes about a minute, most of it debootstrap's. 77: cannot be run here.
set -euo pipefail
if (($# < 1)); then
  echo 'usage: package_test.sh deb|tarball|FILE.deb|FILE.tar.gz [SUITE]    (packaged now, by scripts/package; bookworm)' >&2
  exit 2
fi
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
package=$1 suite=${2:-bookworm}
case $package in deb | tarball) package=$("$here/../../scripts/package" "$package") ;; esac
package=$(readlink -f "$package")
[[ -s $package ]] || { echo "package_test: no file $1; scripts/package makes it" >&2; exit 2; }
# shellcheck source-path=SCRIPTDIR source=fresh_debian.sh
source "$here/fresh_debian.sh"
make_fresh_debian "$suite"
cp -r "$here/../../corpus/oom-on-one-rank-others-time-out" "$chroot/root/case"
cp "$package" "$chroot/root/"

fail() {
  echo "package_test: $(basename "$package") on $suite: $*" >&2
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
# says TEXT: the last output holds it.
says() { grep -qF -- "$1" "$chroot/root/out.txt" "$chroot/root/err.txt" || fail "nothing says \"$1\""; }

case $package in
  *.deb)
    inside apt-get update -q >"$chroot/root/apt.txt" 2>&1 || fail 'apt-get update'
    inside apt-get install -y -q --no-install-recommends "/root/$(basename "$package")" >"$chroot/root/apt.txt" 2>&1 || fail 'apt-get install'
    inquest=/usr/bin/inquest prefix=usr
    ;;
  *)
    mkdir "$chroot/opt/some place" && tar -C "$chroot/opt/some place" --strip-components=1 -xzf "$package"
    inquest='/opt/some place/bin/inquest' prefix='opt/some place'
    ;;
esac
! inside which gcc g++ cc c++ cmake || fail 'there is a compiler here'

# Nothing is missing; and what a tarball loads from elsewhere is glibc's.
for program in bin/inquest libexec/inquest/inquest-replay-worker; do
  inside ldd "/$prefix/$program" >"$chroot/root/out.txt" 2>&1 || fail "ldd $program"
  ! grep -q 'not found' "$chroot/root/out.txt" || fail "a library of $program is missing"
  [[ $package == *.deb ]] || ! grep -F ' => ' "$chroot/root/out.txt" | grep -vE '/opt/some place/.*/lib/inquest/|/lib(c|m)\.so\.6 ' >&2 || fail "$program loads what the tarball does not hold"
done

expect 0 --version
version=$(sed -n 's/^inquest //p' "$chroot/root/out.txt")
[[ -n $version && $(basename "$package") == *"$version"* ]] || fail "the program says version '$version'"
expect 1 /root/case/job.log
says 'cuda-oom'
says 'Rank 5 on ember-g03'
expect 1 --format json /root/case/job.log
says '"cause": "cuda-oom"'
expect 0 rules test
expect 0 collect -o /root/node.tar.zst /root/case
[[ -s $chroot/root/node.tar.zst ]] || fail 'collect wrote nothing'
expect 1 /root/node.tar.zst
says 'cuda-oom'
expect 0 replay --engine gloo --op all-reduce --count 1024 --ranks 2
says PASSED
expect 0 explain 79
says 'off the PCIe bus'
expect 3 exlain
says 'explain'

pages=("$chroot/$prefix/share/man/man1"/*.1)
((${#pages[@]} >= 8)) || fail "${#pages[@]} manual pages"
if command -v man >/dev/null; then
  for page in "${pages[@]}"; do
    [[ -z $(man --warnings -l "$page" 2>&1 >/dev/null) ]] || fail "$(basename "$page"): $(man --warnings -l "$page" 2>&1 >/dev/null | head -n 3)"
  done
fi
for file in man/man1/inquest.1 man/man1/inquest-replay.1 bash-completion/completions/inquest zsh/vendor-completions/_inquest fish/vendor_completions.d/inquest.fish doc/inquest/LICENSE; do
  [[ -s $chroot/$prefix/share/$file ]] || fail "no share/$file"
done
# shellcheck disable=SC2016  # for the shell in there
inside bash -c 'source "$1" && complete -p inquest' - "/$prefix/share/bash-completion/completions/inquest" >"$chroot/root/out.txt" 2>&1 || fail 'completion for bash'

if [[ $package == *.deb ]]; then
  inside apt-get purge -y -q inquest >"$chroot/root/apt.txt" 2>&1 || fail 'apt-get purge'
  [[ ! -e $chroot/usr/libexec/inquest && ! -e $chroot/usr/share/doc/inquest ]] || fail 'purging leaves files'
fi
echo "package_test: $(basename "$package") on $suite: passed"
