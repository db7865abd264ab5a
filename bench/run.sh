#!/usr/bin/env bash
# Measures inquest against wc -l and ripgrep on generated logs, all in one run and on the same files. See README.md.
set -euo pipefail
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
root=$(dirname "$here")

usage() {
  cat <<'TEXT'
bench/run.sh [OPTION...] [SECTION...]

Sections: coll noise mixed timeout crash-loop all-new pipe rules memory journal archive dumps trace small startup; all but
mixed, timeout, crash-loop, all-new, journal, archive, dumps and trace by default.
  --size SIZE       of the logs (1GiB)
  --big SIZE        of the long log of the section memory (16GiB; it goes through a pipe, never to disk)
  --journal SIZE    of the journal of that section, before it is compressed (5GiB)
  --archive SIZE    of the logs in the tar.zst of that section (8GiB)
  --ranks 'N...'    whose dumps that section reads (64 512)
  --repeat N        runs of each command; the median counts (5)
  --threads 'N...'  what inquest is run with (1 2 4)
  --nccl VERSION    whose spelling: 2.21 or 2.27 (2.21)
  --tmp DIR         where the logs lie (a new folder under TMPDIR); needs twice SIZE
  --csv FILE        where every single run goes (printed at the end if not given)
  --inquest FILE    binary (build/release/inquest, built first)
  --generator FILE  inquest_generate_log (build/release/inquest_generate_log, built first)
  --writer FILE     inquest_write_dumps (build/release/tests/inquest_write_dumps, built first where it is needed)
TEXT
}

size=1GiB big=16GiB journal=5GiB archive=8GiB repeat=5 ranks='64 512' threads='1 2 4' nccl=2.21 tmp='' csv='' inquest='' generator='' writer=''
sections=()
while (($#)); do
  case $1 in
    --size | --big | --journal | --archive | --ranks | --repeat | --threads | --nccl | --tmp | --csv | --inquest | --generator | --writer)
      (($# > 1)) || { usage >&2; exit 2; }
      printf -v "${1#--}" '%s' "$2"
      shift 2
      ;;
    -h | --help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) sections+=("$1"); shift ;;
  esac
done
((${#sections[@]})) || sections=(coll noise pipe rules memory small startup)

for tool in rg python3 /usr/bin/time; do
  command -v "$tool" >/dev/null || { echo "bench: $tool is missing: apt-get install ripgrep time python3" >&2; exit 3; }
done
build() {
  echo "bench: building $1" >&2
  (cd "$root" && cmake --preset release -DINQUEST_BUILD_BENCH=ON && cmake --build build/release --target "$1") >&2 </dev/null
}
if [[ -z $inquest ]]; then
  inquest=$root/build/release/inquest
  build inquest
fi
if [[ -z $generator ]]; then
  generator=$root/build/release/inquest_generate_log
  build inquest_generate_log
fi

own=
if [[ -z $tmp ]]; then
  tmp=$(mktemp -d "${TMPDIR:-/tmp}/inquest-bench.XXXXXX")
  own=$tmp
fi
mkdir -p "$tmp"
logs=() folders=()
cleanup() {
  rm -f -- "${logs[@]}"
  rm -rf -- "${folders[@]}"
  [[ -z $own ]] || rm -rf -- "$own"
}
trap cleanup EXIT
show_csv=
[[ -n $csv ]] || { csv=$tmp/bench.csv; show_csv=yes; }
rm -f -- "$csv"
export PYTHONDONTWRITEBYTECODE=1

patterns=$tmp/patterns.txt more=$tmp/more-rules
python3 "$here/patterns.py" >"$patterns"
rg_all="rg -a -c --no-config --no-unicode --regex-size-limit 2G --dfa-size-limit 2G -f $patterns"

# log_of KIND SIZE: the path of that log, generated once and in the page cache.
log_of() {
  local path=$tmp/$1-$2.log
  if [[ ! -e $path ]]; then
    "$generator" --kind "$1" --bytes "$2" --nccl "$nccl" --culprit 37 --out "$path"
  fi
  cat "$path" >/dev/null
  printf '%s\n' "$path"
}
keep_track() { logs+=("$tmp/$1-$2.log"); }
measure() { python3 "$here/measure.py" --csv "$csv" --repeat "$repeat" "$@"; }
bytes_of() { stat -c %s "$1"; }

# compare KIND: one log, read by all.
compare() {
  local kind=$1 log commands=() n
  keep_track "$kind" "$size"
  log=$(log_of "$kind" "$size")
  commands+=("wc -l=wc -l $log" "rg -c, all rules=$rg_all $log || ((\$? == 1)) || exit 9")
  for n in $threads; do commands+=("inquest --threads $n=$inquest --threads $n --format json $log"); done
  measure --section "$kind log, $size, 64 ranks: against wc -l and rg -c -f (all rules)" --bytes "$(bytes_of "$log")" "${commands[@]}"
}

measure_pipe() {
  local kind log
  for kind in coll noise; do
    keep_track "$kind" "$size"
    log=$(log_of "$kind" "$size")
    measure --section "pipe, $kind log, $size: against cat into cat" --bytes "$(bytes_of "$log")" \
      "cat F | cat >/dev/null=cat $log | cat >/dev/null" "cat F | inquest -=cat $log | {peak} $inquest --format json -"
  done
}

measure_rules() {
  local kind log note
  note=$(python3 "$here/more_rules.py" "$more" 9)
  echo "${note%% in *}"
  for kind in coll noise; do
    keep_track "$kind" "$size"
    log=$(log_of "$kind" "$size")
    measure --section "ten times the signatures, $kind log, $size" --bytes "$(bytes_of "$log")" \
      "inquest=$inquest --format json $log" "inquest --rules (x10)=$inquest --rules $more --format json $log"
  done
  measure --section "ten times the signatures, an empty log: what loading them costs" \
    "inquest=$inquest --format json /dev/null" "inquest --rules (x10)=$inquest --rules $more --format json /dev/null"
}

measure_memory() {
  local commands=() kind ranks
  for kind in coll noise; do
    for ranks in 64 4096; do
      commands+=("$kind $ranks ranks $size=$generator --kind $kind --ranks $ranks --bytes $size | {peak} $inquest --format json -")
    done
    commands+=("$kind 64 ranks $big=$generator --kind $kind --bytes $big | {peak} $inquest --format json -")
  done
  local keep=$repeat
  repeat=1
  measure --section "peak memory through a pipe (generator into inquest; seconds are mostly the generator's)" "${commands[@]}"
  repeat=$keep
}

# against DECOMPRESSOR FILE: what decompression and counting lines alone cost, and inquest on as many threads.
against() {
  local n
  rows+=("$1 | wc -l=$1 $2 | wc -l")
  for n in $threads; do rows+=("inquest --threads $n=$inquest --threads $n --format json $2"); done
}

measure_journal() {
  local file=$tmp/journal-$journal.json rows how
  logs+=("$file.gz" "$file.zst")
  for how in zst gz; do
    local pack='zstd -q -3' unpack='zstd -dc'
    [[ $how == zst ]] || { pack='gzip -4' unpack=zcat; }
    [[ -e $file.$how ]] || "$generator" --kind journal --bytes "$journal" --culprit 37 | $pack >"$file.$how"
    cat "$file.$how" >/dev/null
    rows=()
    against "$unpack" "$file.$how"
    measure --section "a node's journal as JSON, $journal, as .$how of $(($(bytes_of "$file.$how") >> 20)) MiB (GB/s are of the latter)" \
      --bytes "$(bytes_of "$file.$how")" "${rows[@]}"
  done
}

measure_archive() {
  local file=$tmp/job-$archive.tar.zst rows=()
  logs+=("$file")
  [[ -e $file ]] || python3 "$here/pack.py" "$generator" "$(numfmt --from=iec-i --suffix=B "$archive" | tr -d B)" 8 | zstd -q -3 >"$file"
  cat "$file" >/dev/null
  against 'zstd -dc' "$file"
  measure --section "tar.zst of $archive, a log of 64 ranks and the journals of 8 nodes, $(($(bytes_of "$file") >> 20)) MiB (GB/s are of the latter)" \
    --bytes "$(bytes_of "$file")" "${rows[@]}"
}

measure_dumps() {
  local folder rows n number
  if [[ -z $writer ]]; then
    writer=$root/build/release/tests/inquest_write_dumps
    build inquest_write_dumps
  fi
  for number in $ranks; do
    folder=$tmp/dumps-$number
    if [[ ! -d $folder ]]; then
      mkdir "$folder"
      folders+=("$folder")
      "$writer" "healthy-$number-2000" "$folder"
    fi
    cat "$folder"/* >/dev/null
    rows=("python3, pickle.load=python3 $here/load_dumps.py $folder")
    for n in $threads; do rows+=("inquest --threads $n=$inquest --threads $n --format json $folder"); done
    measure --section "Flight Recorder dumps of $number ranks, 2000 entries each, $(du -sm --apparent-size "$folder" | cut -f1) MiB: against python3's pickle.load" \
      --bytes "$(du -sb "$folder" | cut -f1)" "${rows[@]}"
  done
}

# What a trace costs beside the run, and whether its memory follows the calls: four times the log, the same peak.
measure_trace() {
  local bytes log n part
  bytes=$(numfmt --from=iec-i --suffix=B "$size")
  for part in 16 4; do
    n=$((${bytes%B} / part / 1048576))MiB
    keep_track coll "$n"
    log=$(log_of coll "$n")
    measure --section "--perfetto, COLL log of $n, $(grep -c opCount "$log") calls of 64 ranks" --bytes "$(bytes_of "$log")" \
      "inquest=$inquest -q $log" "inquest --perfetto=$inquest -q --perfetto $tmp/why.pftrace $log"
    printf 'the trace has %s MiB\n' "$(($(bytes_of "$tmp/why.pftrace") >> 20))"
    rm -f "$tmp/why.pftrace"
  done
}

measure_small() {
  local log
  keep_track coll 1MiB
  log=$(log_of coll 1MiB)
  measure --section 'a log of 1 MiB, whole run' --bytes "$(bytes_of "$log")" "wc -l=wc -l $log" \
    "rg -c, all rules=$rg_all $log || ((\$? == 1)) || exit 9" "inquest=$inquest --format json $log"
}

measure_startup() {
  measure --section 'start-up (every row holds 2 ms or so of measuring)' 'true=true' "inquest --version=$inquest --version" \
    "inquest, empty log=$inquest --format json /dev/null"
}

printf 'machine: %s, %s cores, %s of memory, Linux %s\n' "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" \
  "$(awk '/^MemTotal:/ {printf "%.0f GiB", $2 / 1048576}' /proc/meminfo)" "$(uname -r)"
printf 'rules: %s expressions; %s; %s\n' "$(wc -l <"$patterns")" "$("$inquest" --version | head -n 1)" "$(rg --version | head -n 1)"
for section in "${sections[@]}"; do
  case $section in
    coll | noise | mixed | timeout | crash-loop | all-new) compare "$section" ;;
    pipe | rules | memory | journal | archive | dumps | trace | small | startup) "measure_$section" ;;
    *) echo "bench: no section '$section'" >&2; usage >&2; exit 2 ;;
  esac
done
[[ -z $show_csv ]] || { echo; cat "$csv"; }
