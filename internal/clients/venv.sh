#!/usr/bin/env bash
# venv.sh: makes the Python virtual environment with the engines' official clients, once, in the cache directory, and
# prints its interpreter. The name holds a hash of requirements.txt, so a changed list makes a new one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
cache=${NEARDUP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/neardup}
venv=$cache/venv-$(sha256sum requirements.txt | cut -c1-12)
die() { echo "clients: $*" >&2; exit 1; }

if [ ! -e "$venv/complete" ]; then
  mkdir -p "$cache"
  exec 9>"$cache/.venv.lock"; flock -w 900 9 || die "another installation has held $cache/.venv.lock for 900 s"
  if [ ! -e "$venv/complete" ]; then
    echo "clients: fetching the Python clients (once)" >&2
    rm -rf "$venv"
    python3 -m venv "$venv" >&2 || die "python3 cannot make virtual environments: install its venv module (package python3-venv)"
    for try in 1 2 3; do
      timeout 600 "$venv/bin/python" -m pip install -q --disable-pip-version-check -r requirements.txt >&2 && break
      [ $try -lt 3 ] || die "could not fetch the packages with pip"
      echo "clients: download try $try of 3 failed" >&2; sleep $((try * 3))
    done
    touch "$venv/complete"
  fi
fi
echo "$venv/bin/python"
