# Shared by scripts/run and scripts/test: installs what the build needs and builds a preset quietly. To be sourced.
# shellcheck shell=bash
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)

packages=(g++ cmake ninja-build pkg-config libre2-dev libsimdjson-dev libfmt-dev libyaml-cpp-dev
  libcli11-dev nlohmann-json3-dev libarchive-dev nettle-dev libprotozero-dev libgloo-dev libjemalloc-dev)
# What the tests need beyond that.
test_packages=(catch2 ccache clang lld libclang-rt-dev python3 python3-jsonschema python3-yaml jq chromium cmark-gfm libxml2-utils)
# libhs comes from either; the first is preferred where there is a choice, as there is on amd64: among some 1,400
# expressions Vectorscan 5.4.9 misses a match now and then, of `\[\d+\] Assertion "` where one digit stands.
libhs_packages=(libhyperscan-dev libvectorscan-dev)

say() { printf 'inquest: %s\n' "$*" >&2; }
# 3 is inquest's own "could not run".
die() {
  say "$@"
  exit 3
}

is_installed() { dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed; }

has_candidate() {
  local policy
  policy=$(LC_ALL=C apt-cache policy "$1" 2>/dev/null)
  [[ $policy == *'Candidate: '* && $policy != *'Candidate: (none)'* ]]
}

as_root() {
  if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

apt_get() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=300 "$@"
}

# Prints the packages that are missing, one a line; nothing where all is there.
missing_packages() {
  local package libhs=
  for package in "${packages[@]}"; do
    is_installed "$package" || printf '%s\n' "$package"
  done
  for package in "${libhs_packages[@]}"; do
    is_installed "$package" && return
    [[ -n $libhs ]] || ! has_candidate "$package" || libhs=$package
  done
  printf '%s\n' "${libhs:-${libhs_packages[0]}}"
}

# install_packages [PACKAGE...]: what the program needs, and those.
install_packages() {
  local -a missing
  packages+=("$@")
  if ! command -v dpkg-query >/dev/null; then
    if command -v cmake >/dev/null && command -v ninja >/dev/null; then return; fi
    die "this is not Debian or Ubuntu; install by hand what these packages hold: ${packages[*]} and one of ${libhs_packages[*]}"
  fi
  mapfile -t missing < <(missing_packages)
  ((${#missing[@]})) || return 0
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    die "not root and no sudo here; as root, run: apt-get install ${missing[*]}"
  fi
  mkdir -p "$root/build"
  local log=$root/build/install.log
  say "installing ${missing[*]} (log: $log)"
  if ! has_candidate cmake || ! apt_get install --no-install-recommends "${missing[@]}" </dev/null >"$log" 2>&1; then
    apt_get update </dev/null >"$log" 2>&1 || say 'apt-get update failed; going on with the package lists that are here'
    mapfile -t missing < <(missing_packages)
    if ! apt_get install --no-install-recommends "${missing[@]}" </dev/null >>"$log" 2>&1; then
      tail -n 40 "$log" >&2
      die "could not install ${missing[*]}; the lines above are the end of $log"
    fi
  fi
}

# How many compilers may run: one per core that we may use, and one per GiB of memory.
build_jobs() {
  local jobs memory limit quota period
  jobs=$(nproc)
  memory=$(awk '/^MemAvailable:/ {print int($2 / 1048576)}' /proc/meminfo)
  if [[ -r /sys/fs/cgroup/cpu.max ]] && read -r quota period </sys/fs/cgroup/cpu.max && [[ $quota != max ]]; then
    ((quota / period >= jobs)) || jobs=$(((quota + period - 1) / period))
  fi
  if [[ -r /sys/fs/cgroup/memory.max ]] && read -r limit </sys/fs/cgroup/memory.max && [[ $limit != max ]]; then
    ((limit >> 30 >= memory)) || memory=$((limit >> 30))
  fi
  ((memory >= jobs)) || jobs=$memory
  ((jobs >= 1)) || jobs=1
  printf '%s\n' "$jobs"
}

# Says something unless it is killed within two seconds, so that a build with nothing to do stays quiet.
say_if_slow() {
  sleep 2 2>/dev/null
  say "$@"
}

# build_preset PRESET [CMAKE BUILD ARGUMENT...]: configures where that is due, and builds. The output goes to
# build/PRESET/build.log; its end is shown on failure. Words in `launcher` are put before cmake.
launcher=()
build_preset() {
  local preset=$1 directory=$root/build/$1 log=$root/build/$1/build.log
  shift
  mkdir -p "$directory"
  (
    cd "$root" && exec 9>"$directory/.lock" && flock 9 || exit 1  # two at once would build into one folder
    exec </dev/null >"$log"
    if [[ ! -e build/$preset/build.ninja || CMakePresets.json -nt build/$preset/CMakeCache.txt ]]; then
      say "configuring $preset"
      "${launcher[@]}" cmake --preset "$preset" 2>&1 9>&- || exit 1
    fi
    say_if_slow "building $preset (log: build/$preset/build.log)" >/dev/null 9>&- &
    notice=$!
    status=0
    "${launcher[@]}" cmake --build "build/$preset" --parallel "$(build_jobs)" "$@" 2>&1 9>&- || status=1
    kill "$notice" 2>/dev/null
    exit "$status"
  ) || {
    tail -n 60 "$log" >&2
    die "could not build $preset; the lines above are the end of $log"
  }
}
