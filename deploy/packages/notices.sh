#!/usr/bin/env bash
# notices.sh: prints the notice of the program, then the licences and notices of all modules that it is linked with, and of Go.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
go=${GO:-go}

print_file() { # MODULE VERSION FILE
  printf '%s\n%s %s: %s\n%s\n\n' "${rule:=$(printf '=%.0s' {1..80})}" "$1" "$2" "$(basename "$3")" "$rule"
  cat "$3"
  echo
}

cat NOTICE
echo
echo "The program sidecar is linked with the modules below. Their licences follow."
echo
shopt -s nullglob nocaseglob
modules=$(for os in linux darwin windows; do
  GOOS=$os CGO_ENABLED=0 "$go" list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/sidecar
done | LC_ALL=C sort -u)
print_file go "$("$go" env GOVERSION)" "$("$go" env GOROOT)/LICENSE"
while read -r module version dir; do
  found=0
  for file in "$dir"/{license,licence,copying,notice}*; do
    case $file in *.go) continue ;; esac
    [ -f "$file" ] || continue
    print_file "$module" "$version" "$file"
    found=1
  done
  [ $found = 1 ] || { echo "notices: $module $version has no licence in $dir" >&2; exit 1; }
done <<<"$modules"
