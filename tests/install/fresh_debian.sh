# A Debian of its own for a test, in a folder that goes when the test ends. To be sourced by scripts of this folder.
# shellcheck shell=bash
inside() { chroot "$chroot" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }

remove_fresh_debian() {
  ! mountpoint -q "$chroot/proc" || umount -l "$chroot/proc"
  rm -rf --one-file-system -- "$chroot"
}

# make_fresh_debian SUITE: sets $chroot. Where that cannot be, the test ends with 77.
make_fresh_debian() {
  local mirror log
  if ((EUID != 0)) || ! command -v debootstrap >/dev/null; then
    echo 'needs root and debootstrap' >&2
    exit 77
  fi
  chroot=$(mktemp -d)
  trap remove_fresh_debian EXIT
  mirror=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | head -n 1 | tr -d ' ' || true)
  log=$(debootstrap --variant=minbase "$1" "$chroot" "${mirror:-http://deb.debian.org/debian}" 2>&1) || { tail -n 20 <<<"$log" >&2; exit 77; }
  chmod 755 "$chroot"  # a user without rights, apt's among them, has to get in
  cp /etc/resolv.conf "$chroot/etc/resolv.conf"
  apt-config dump | grep -E '^Acquire::' >"$chroot/etc/apt/apt.conf.d/99host" || true  # proxies
  mount -t proc proc "$chroot/proc"
}
