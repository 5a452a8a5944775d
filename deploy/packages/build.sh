#!/usr/bin/env bash
# build.sh OUT [VERSION]: builds the program, the deb and the rpm of one version for GOARCH (default: this machine's) into OUT. Equal
# sources give equal bytes. NFPM names nfpm (default: what internal/packages/tools.sh has).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=${1:?"build.sh OUT [VERSION]"}
go=${GO:-go}
GOARCH=${GOARCH:-$("$go" env GOARCH)}
VERSION=${2:-${VERSION:-$(git describe --tags --dirty 2>/dev/null || echo 0.0.0)}}
REVISION=${REVISION:-$(git rev-parse HEAD 2>/dev/null || true)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export GOARCH VERSION SOURCE_DATE_EPOCH
NFPM=${NFPM:-$(bash internal/packages/tools.sh nfpm)}

mkdir -p "$out"
export BINARY=$out/sidecar-$GOARCH STAGE=$out/stage
GOOS=linux CGO_ENABLED=0 "$go" build -trimpath -buildvcs=false \
  -ldflags "-s -w -buildid= -X main.version=$VERSION -X main.revision=$REVISION" -o "$BINARY" ./cmd/sidecar
[ -n "${STAGED:-}" ] || {
  runs=$BINARY
  [ "$GOARCH" = "$("$go" env GOHOSTARCH)" ] || runs=
  GOARCH= bash deploy/packages/stage.sh "$STAGE" $runs
}
for kind in deb rpm; do "$NFPM" package -f nfpm.yaml -p $kind -t "$out"; done
