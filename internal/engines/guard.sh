#!/usr/bin/env bash
# guard.sh DIR SCRIPT [OPTIONS…]: runs an engine for as long as its own standard input stays open.
#
# It prints the engine's report, or "failed" and the exit code, then waits. The test process holds the other end of the
# pipe and writes nothing: it closes it when it is done, and the kernel closes it when the process ends in any other way
# (killed, time limit, interrupt). Either way the engine is killed and DIR removed. A start under way is first let
# finish; it is bounded.
dir=$1 script=$2; shift 2
set -- --data "$dir/data" "$@"

finish() {
  trap '' TERM
  wait
  bash "$script" purge "$@" || exit 1
  rm -rf "$dir"
}
trap '' HUP INT
trap 'finish "$@"; exit 143' TERM

{ bash "$script" start "$@" 2>>"$dir/log" || echo "failed $?"; } &
while read -r _; do :; done
finish "$@"
