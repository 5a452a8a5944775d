#!/bin/sh
# Before an rpm is unpacked: files of the group neardup need it.
set -e
getent group neardup >/dev/null || groupadd --system neardup
getent passwd neardup >/dev/null ||
  useradd --system --gid neardup --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin --comment 'neardup sidecar' neardup
