#!/usr/bin/env bash
# Measures how long a build takes, and what a change costs: from nothing, by room, after an edit, and through headers.
set -euo pipefail
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
root=$(dirname "$here")

usage() {
  cat <<'TEXT'
bench/build.sh [SECTION...]

  cold      scripts/run in a fresh clone, without ccache; CPU seconds by room. Packages count where they are missing
  edit      from the last keystroke to the test's answer: a format, a detector, a signature (in a release, built first)
  headers   which header of ours reaches how many units (of that release)
All of them by default. Works in a clone of the commit that is checked out, in a new folder under TMPDIR.
TEXT
}
case ${1:-} in -h | --help) usage; exit 0 ;; esac
sections=("$@")
((${#sections[@]})) || sections=(cold edit headers)
tmp=$(mktemp -d "${TMPDIR:-/tmp}/inquest-build.XXXXXX")
trap 'rm -rf -- "$tmp"' EXIT
export CCACHE_DISABLE=1
git clone -q "$root" "$tmp/source"
cd "$tmp/source"

# Stands where ccache would: a line for each unit, user and system seconds and what came out.
cat >"$tmp/timed" <<'TEXT'
#!/usr/bin/env bash
for ((i = 1; i <= $#; ++i)); do [[ ${!i} != -o ]] || { next=$((i + 1)); made=${!next}; }; done
TIMEFORMAT="%U %S $made"
exec 3>&2
{ time "$@" 2>&3; } 2>>"${0%/*}/units.txt"
TEXT
chmod +x "$tmp/timed"
seconds() { python3 -c 'import sys; print("%.1f s" % ((int(sys.argv[2]) - int(sys.argv[1])) / 1e9))' "$1" "$2"; }

cold() {
  local before after
  before=$(date +%s%N)
  scripts/run --version >/dev/null
  after=$(date +%s%N)
  echo "scripts/run from nothing: $(seconds "$before" "$after") on $(nproc) cores"
  rm -rf build
  cmake --preset release "-DINQUEST_CCACHE=$tmp/timed" >/dev/null
  cmake --build build/release --target inquest inquest-replay-worker >/dev/null
  echo 'CPU seconds by room:'
  awk '{split($3, path, "/"); room = path[1]; sum[room] += $1 + $2; units[room]++; all += $1 + $2}
       END {for (room in sum) printf "  %-10s %6.1f  (%d units)\n", room, sum[room], units[room]; printf "  %-10s %6.1f\n", "all", all}' "$tmp/units.txt" | sort -k2 -rn
  echo 'The most expensive units:'
  sort -k1 -rn "$tmp/units.txt" | head -n 12 | awk '{sub("CMakeFiles/", "", $3); printf "  %6.1f  %s\n", $1 + $2, $3}'
}

# edited NAME FILE TEST: a keystroke in FILE, then the tests that TEST selects.
edited() {
  local before
  echo '// a keystroke' >>"$2"
  before=$(date +%s%N)
  cmake --build build/release --target inquest_tests >"$tmp/edit.log" 2>&1 || { tail -n 20 "$tmp/edit.log" >&2; exit 1; }
  build/release/tests/inquest_tests "$3" >"$tmp/edit.log" || { tail -n 20 "$tmp/edit.log" >&2; exit 1; }
  echo "$1: $(seconds "$before" "$(date +%s%N)") ($2, $3)"
}
edit() {
  cmake --preset release >/dev/null
  cmake --build build/release --target inquest_tests inquest >/dev/null
  edited 'a format' parsers/formats/dcgm.cc '[dcgm]'
  edited 'a detector' rules/detectors/gpu_load.cc '[detectors]'
  local before
  echo '# a keystroke' >>rules/signatures/ib-fault/retry-exceeded.yaml
  before=$(date +%s%N)
  build/release/inquest rules test --rules rules >/dev/null
  echo "a signature: $(seconds "$before" "$(date +%s%N)") (inquest rules test --rules rules)"
}

headers() {
  [[ -e build/release/.ninja_deps ]] || { cmake --preset release >/dev/null; cmake --build build/release --target inquest_tests inquest >/dev/null; }
  echo 'Units that a header reaches:'
  ninja -C build/release -t deps 2>/dev/null | grep -oE '/(core|parsers|timeline|rules|report|replay|collect|cli)/[a-z0-9_/]+\.h$' | sort | uniq -c | sort -rn | head -n 25
}

for section in "${sections[@]}"; do
  case $section in cold | edit | headers) "$section" ;; *) usage >&2; exit 2 ;; esac
done
