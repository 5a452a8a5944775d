#!/usr/bin/env bash
# install.sh python|javascript: fetches the engines' official clients for one language into the cache directory, once, and prints
# the interpreter to run them with. The folder's name holds a hash of the list of packages, so a changed list makes a new one.
# install.sh browser: prints the path of the system's Chromium, installed by apt-get where it is missing and root asks.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
language=${1:-}
cache=${NEARDUP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/neardup}
die() { echo "clients: $*" >&2; exit 1; }

prepare_python() {
  python3 -m venv "$home" >&2 || die "python3 cannot make virtual environments: install its venv module (package python3-venv)"
}
# The client of Elasticsearch 8 can't stand beside that of 9, so it has a folder of its own: a comment in the list names it. Most modules are never
# imported: to compile them all would take 11 s of 29.
fetch_python() {
  "$home/bin/python" -m pip install -q --disable-pip-version-check --no-compile -r requirements.txt &&
    sed -n 's/^# elasticsearch8: //p' requirements.txt |
      "$home/bin/python" -m pip install -q --disable-pip-version-check --target "$home/elasticsearch8" --upgrade -r /dev/stdin
}

prepare_javascript() {
  local node
  node=$(command -v node) && command -v npm >/dev/null || die "node or npm is missing: install Node.js 20 or later"
  "$node" -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' || die "$node is too old: install Node.js 20 or later"
  mkdir -p "$home/bin"
  ln -s "$node" "$home/bin/node"
  cp package.json package-lock.json "$home"
}
fetch_javascript() { npm ci --omit=peer --prefix "$home" --ignore-scripts --no-audit --no-fund --loglevel=error; }

find_browser() { command -v chromium || command -v chromium-browser || command -v google-chrome; }
install_browser() {
  find_browser && return
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || die "there is no chromium: install the package chromium"
  echo "clients: installing chromium (once)" >&2
  export DEBIAN_FRONTEND=noninteractive
  { timeout 300 apt-get update -q && timeout 900 apt-get install -qy --no-install-recommends chromium; } >&2 \
    || die "apt-get could not install chromium: install it by hand"
  find_browser || die "apt-get has installed chromium, and yet there is none"
}

case $language in
  browser) install_browser; exit;;
  python) list=requirements.txt interpreter=python;;
  javascript) list=package-lock.json interpreter=node;;
  *) die "say what: python, javascript or browser";;
esac
home=$cache/$language-$(sha256sum "$list" | cut -c1-12)

if [ ! -e "$home/complete" ]; then
  mkdir -p "$cache"
  exec 9>"$cache/.$language.lock"; flock -w 900 9 || die "another installation has held $cache/.$language.lock for 900 s"
  if [ ! -e "$home/complete" ]; then
    echo "clients: fetching the $language clients (once)" >&2
    rm -rf "$home"
    "prepare_$language"
    export -f "fetch_$language"; export home
    for try in 1 2 3; do
      timeout 600 bash -c "fetch_$language" >&2 && break
      [ $try -lt 3 ] || die "could not fetch the packages of $list"
      echo "clients: download try $try of 3 failed" >&2; sleep $((try * 3))
    done
    touch "$home/complete"
  fi
fi
echo "$home/bin/$interpreter"
