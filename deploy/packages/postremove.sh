#!/bin/sh
# After the program has gone. deb: remove, or purge, when the configuration goes too; rpm: 0 versions are left.
# The user stays, as files of its may; nobody can log in as it.
set -e
case "${1:-}" in
  purge) rm -f /etc/neardup/config.yaml.dpkg-dist /etc/neardup/config.yaml.dpkg-new /etc/neardup/config.yaml.dpkg-old ;;
  remove | 0) ;;
  *) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
fi
# Files that the package did not bring stay, and the folder with them.
if [ "$1" = purge ] && [ -d /etc/neardup ]; then
  rmdir /etc/neardup 2>/dev/null || echo "neardup: /etc/neardup is not empty: what stands in it is yours" >&2
fi
