#!/bin/sh
# After unpacking. deb: configure [the version before]; rpm: how many versions are there now.
set -e
case "${1:-}" in
  configure) before=${2:-} ;;
  1) before= ;;
  2) before=some ;;
  *) exit 0 ;;
esac

getent group neardup >/dev/null || groupadd --system neardup
getent passwd neardup >/dev/null ||
  useradd --system --gid neardup --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin --comment 'neardup sidecar' neardup

# The configuration may hold secrets. What an administrator has changed of its permissions later stays.
if [ -z "$before" ]; then
  chown root:neardup /etc/neardup /etc/neardup/config.yaml
  chmod 0750 /etc/neardup
  chmod 0640 /etc/neardup/config.yaml
fi

# The service is not started by itself: until it is configured it would stand in front of nothing.
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
  [ -z "$before" ] || systemctl try-restart neardup.service || true
fi
