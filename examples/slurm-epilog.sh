#!/bin/bash
# Epilog of Slurm (slurm.conf: Epilog=/etc/slurm/epilog.d/*): says why a job died, beside its output and in the system's
# log. It runs as root: inquest itself runs as the job's user. An epilog that fails drains its node: this one never does.

judge() {
  local output=$SLURM_JOB_STDOUT first line
  [[ $SLURM_JOB_ID =~ ^[0-9]+$ && -n $SLURM_JOB_USER && $output == /* ]] || return
  # One node of the job is enough.
  first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
  [ "$SLURMD_NODENAME" = "$first" ] || return
  local files=("$output")
  [ -z "$SLURM_JOB_STDERR" ] || [ "$SLURM_JOB_STDERR" = "$output" ] || files+=("$SLURM_JOB_STDERR")
  line=$(runuser -u "$SLURM_JOB_USER" -- timeout 120 inquest -f json -o "${output%/*}/inquest-$SLURM_JOB_ID.json" \
    -f jsonl -- "${files[@]}" 2> /dev/null | head -n 1 |
    jq -r 'select(.outcome != "healthy") | "cause=\(.cause) fingerprint=\(.fingerprint) retry=\(.retry) exclude=\(
      [.exclude_hosts[] | select(test("^[A-Za-z0-9._:-]+$"))] | join(","))"')
  [ -z "$line" ] || logger -t inquest -- "job=$SLURM_JOB_ID $line"
}

judge
exit 0
