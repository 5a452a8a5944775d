#!/usr/bin/env bash
# check.sh: checks the rules beside it with promtool, and runs their tests. It prints nothing but what is wrong, and what promtool says.
#
#   check.sh                    checks
#   check.sh path promtool      prints the path of promtool (or prometheus), fetched if there is none
#
# Without promtool on the PATH it is taken out of the distribution's package, by apt-get, into the cache, without installing anything.
# Exit code 75: there is none, and none can be fetched.
#
# Environment: NEARDUP_CACHE (default ${XDG_CACHE_HOME:-~/.cache}/neardup).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

tool() {
  if command -v "$1"; then return; fi
  local cache=${NEARDUP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/neardup}/prometheus
  if [ ! -x "$cache/usr/bin/$1" ]; then
    mkdir -p "$cache"
    local work
    work=$(mktemp -d "$cache/fetch.XXXXXX")
    if ! (cd "$work" && { apt-get download prometheus || { apt-get update && apt-get download prometheus; }; } && dpkg-deb -x prometheus_*.deb .) >&2; then
      rm -rf "$work"
      echo "check.sh: $1 is not on the PATH, and the package prometheus can't be fetched with apt-get: install one of them" >&2
      exit 75
    fi
    mkdir -p "$cache/usr/bin"
    mv -f "$work/usr/bin/prometheus" "$work/usr/bin/promtool" "$cache/usr/bin/" # whole or not at all, also beside another run
    rm -rf "$work"
  fi
  echo "$cache/usr/bin/$1"
}

if [ "${1:-}" = path ]; then
  tool "${2:?promtool or prometheus}"
  exit
fi
promtool=$(tool promtool)
"$promtool" check config prometheus.yaml
"$promtool" check rules --lint=all --lint-fatal recording.yaml alerts.yaml
"$promtool" test rules tests.yaml
