#!/usr/bin/env bash
# stage.sh DIRECTORY [SIDECAR]: makes what the packages hold beside the program: manual pages, shell completions, the change log and the
# licences of the modules that are linked in. SIDECAR is a program that runs here; without it, go run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=${1:?"stage.sh DIRECTORY [SIDECAR]"}
sidecar=(${2:-${GO:-go} run -trimpath -ldflags "-X=main.version=${VERSION:-}" ./cmd/sidecar})

rm -rf "$out/man" "$out/completions"
mkdir -p "$out/completions"
# The date on the manual pages: the same sources give the same bytes.
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}"
"${sidecar[@]}" man "$out/man"
for shell in bash zsh fish; do "${sidecar[@]}" completion "$shell" >"$out/completions/sidecar.$shell"; done
bash deploy/packages/notices.sh >"$out/NOTICES"
# -n: no time in it, so the same sources give the same bytes.
gzip -9nf "$out"/man/*.1 "$out/NOTICES"
gzip -9nc CHANGELOG.md >"$out/changelog.gz"
