#!/bin/sh
# Before the program goes. deb: remove; rpm: 0 versions are left. Not on upgrades.
set -e
case "${1:-}" in
  remove | 0) ;;
  *) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
  systemctl stop neardup.service || true
fi
if command -v systemctl >/dev/null; then
  systemctl --no-reload disable neardup.service >/dev/null 2>&1 || true
fi
