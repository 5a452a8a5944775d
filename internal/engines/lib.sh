# lib.sh: what elasticsearch.sh, opensearch.sh and typesense.sh have in common. Sourced, not run.
#
#   <engine>.sh install|start|status|stop|purge [--version V] [--port N] [--data DIR] [--heap 1g]
#
#   install  fetches the server into the cache, once; all others need no network after it
#   start    starts it on 127.0.0.1 and waits until it answers; starting a running server only reports it
#   status   reports it, or exits 3
#   stop     stops it and keeps its data
#   purge    kills it and removes its data directory
#
# The report is one line on standard output: up name=… version=… url=… pid=… data=…
# Exit 75 says that a port was taken: try again with another.
#
# An engine script sets NAME, VERSION (the default), PORT and HEAP, calls arguments "$@", sets PEER (a second port it needs)
# and MARK (an argument that only this server has on its command line), defines fetch, launch and healthy, and calls run.
#
# Environment: NEARDUP_CACHE (default ${XDG_CACHE_HOME:-~/.cache}/neardup), MVN, JAVA_HOME, ES_JAVA_HOME,
# OPENSEARCH_JAVA_HOME; NEARDUP_ENGINE_SETTINGS, more lines of a Java server's settings; NEARDUP_ENGINE_TLS, a folder with tls.crt, tls.key and ca.crt (PEM): clients come by TLS then, and to Elasticsearch
# with a certificate of ca.crt and as the user neardup with the password neardup-test.
set -euo pipefail

START_LIMIT=150     # seconds until a server must answer; 10 to 30 are usual
FETCH_LIMIT=900     # seconds for one try of a download
LOCK_LIMIT=1800     # seconds to wait for an installation that runs already

log() { echo "$NAME: $*" >&2; }
die() { log "$@"; exit 1; }

arguments() {
  CMD=${1:-} DATA=; [ $# -gt 0 ] && shift
  while [ $# -gt 0 ]; do
    case $1 in
      --version) VERSION=${2:?}; shift 2;;
      --port) PORT=${2:?}; shift 2;;
      --data) DATA=${2:?}; shift 2;;
      --heap) HEAP=${2:?}; shift 2;;
      *) die "unknown argument $1";;
    esac
  done
  case $PORT in ''|*[!0-9]*) die "--port: not a number: $PORT";; esac
  own_user
  HOME_DIR=$CACHE/$NAME-$VERSION
  DATA=${DATA:-$CACHE/run/$NAME-$PORT}
  case $DATA in /*) ;; *) DATA=$PWD/$DATA;; esac
  URL=http://127.0.0.1:$PORT PEMS=${NEARDUP_ENGINE_TLS:-} ASK=()
  if [ -n "$PEMS" ]; then
    URL=https://127.0.0.1:$PORT ASK=(--cacert "$PEMS/ca.crt" --cert "$PEMS/tls.crt" --key "$PEMS/tls.key" -u neardup:neardup-test)
  fi
}

# The Java servers refuse uid 0. For root they run in a user namespace in which root looks like uid 1000: files stay
# reachable and nothing needs a chown. Where that is not allowed they run as nobody, out of a world-readable cache.
own_user() {
  RUNAS=() NOBODY=
  CACHE=${NEARDUP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/neardup}
  if [ "$(id -u)" = 0 ] && [ "$NAME" != typesense ]; then
    if unshare -U --map-user=1000 --map-group=1000 true 2>/dev/null; then
      RUNAS=(unshare -U --map-user=1000 --map-group=1000)
    else
      RUNAS=(setpriv --reuid=65534 --regid=65534 --clear-groups) NOBODY=1
      CACHE=${NEARDUP_CACHE:-/var/tmp/neardup}
    fi
  fi
}

retry() { # COMMAND…
  local i; for i in 1 2 3; do
    timeout "$FETCH_LIMIT" "$@" >"$TMP/download.log" 2>&1 && return 0
    tail -n 10 "$TMP/download.log" >&2
    log "download try $i of 3 failed"; sleep $((i * 3))
  done
  return 1
}

# mvn_get runs Maven with a repository of our own, so that huge downloads do not stay. A wrong or missing checksum fails it, but for
# CHECKSUMS=-c, where the caller checks what came.
mvn_get() { # ARGUMENTS…
  local mvn=${MVN:-mvn}
  command -v "$mvn" >/dev/null || die "Apache Maven is needed to fetch this server: install it (package maven) or set MVN"
  retry "$mvn" -B -q "${CHECKSUMS:--C}" -Dmaven.repo.local="$TMP/m2" "$@" || die "could not fetch it with $mvn: is its repository reachable?"
}

unpack() { # ZIP DIR [FOLDER-IN-ZIP]
  if command -v unzip >/dev/null; then unzip -q "$1" ${3:+"$3/*"} -d "$2"; return; fi
  python3 - "$@" <<'PY'
import sys, zipfile
zip_path, target, *folder = sys.argv[1:]
with zipfile.ZipFile(zip_path) as z:
    z.extractall(target, [n for n in z.namelist() if not folder or n.startswith(folder[0] + '/')])
PY
}

installed() { [ -d "$HOME_DIR" ]; } # it gets this name when it is complete

install() {
  installed && return 0
  mkdir -p "$CACHE"
  exec 9>"$CACHE/.$NAME-$VERSION.lock"
  flock -w "$LOCK_LIMIT" 9 || die "another installation has held $CACHE/.$NAME-$VERSION.lock for $LOCK_LIMIT s"
  if ! installed; then
    TMP=$(mktemp -d "$CACHE/.$NAME.XXXXXX"); trap 'rm -rf "$TMP"' EXIT
    log "fetching version $VERSION (once)"
    fetch "$TMP"      # leaves the server in $TMP/home
    chmod -R a+rX "$TMP/home"
    mv "$TMP/home" "$HOME_DIR"
    rm -rf "$TMP"; trap - EXIT
  fi
  exec 9>&-
}

# java_home MIN MAX [PREFERRED…] prints the home of a Java of that version.
java_home() {
  local min=$1 max=$2 c m; shift 2
  for c in "$@" "${JAVA_HOME:-}" /usr/lib/jvm/* "$(readlink -f "$(command -v java)" | sed 's|/bin/java$||')"; do
    [ -n "$c" ] && [ -x "$c/bin/java" ] || continue
    m=$(env -u JAVA_TOOL_OPTIONS "$c/bin/java" -version 2>&1 | sed -nE 's/.*version "([0-9]+).*/\1/p')
    if [ "${m:-0}" -ge "$min" ] && [ "$m" -le "$max" ]; then echo "$c"; return; fi
  done
  die "no Java from $min to $max found: install one (package openjdk-$min-jdk) or set JAVA_HOME"
}

# java_config lays out the data directory of a Java server: its own configuration, no GC log, crash files into $DATA.
java_config() { # SETTINGS-FILE
  mkdir -p "$DATA"/{config/jvm.options.d,data,logs,tmp,snapshots}
  cp "$HOME_DIR/config/log4j2.properties" "$DATA/config/"
  grep -vE '^[^#]*(-Xlog:gc|-Xloggc|-XX:\+?PrintGC|-XX:ErrorFile|HeapDumpPath|HeapDumpOnOutOfMemoryError|-Xm[sx])' \
    "$HOME_DIR/config/jvm.options" >"$DATA/config/jvm.options"
  printf -- '-Xms%s\n-Xmx%s\n-XX:ErrorFile=%s/logs/hs_err_pid%%p.log\n' "$HEAP" "$HEAP" "$DATA" >"$DATA/config/jvm.options.d/local.options"
  cat >"$DATA/config/$1" <<YML
cluster.name: neardup
node.name: node-1
path.data: $DATA/data
path.logs: $DATA/logs
path.repo: $DATA/snapshots
network.host: 127.0.0.1
http.port: $PORT
transport.port: $PEER
discovery.type: single-node
cluster.routing.allocation.disk.threshold_enabled: false
indices.breaker.total.use_real_memory: false # or one test is refused (429) for the garbage of another
${NEARDUP_ENGINE_SETTINGS:-}
YML
}

java_env() { env -u JAVA_TOOL_OPTIONS -u _JAVA_OPTIONS -u JAVA_OPTS -u ES_JAVA_OPTS -u OPENSEARCH_JAVA_OPTS -u JAVA_HOME "$@"; }

get() { curl -fsS -m 10 --noproxy '*' "${ASK[@]}" "$@" 2>/dev/null; }
taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# pid prints our server's process id. The mark holds the data directory, so nobody else's process is ever meant; it is
# read from a file because grep's own command line must not match.
pid() {
  local f; f=$(grep -lzxF -f <(echo "$MARK") /proc/[0-9]*/cmdline 2>/dev/null | head -1) || true
  [ -n "$f" ] || return 1
  f=${f#/proc/}; echo "${f%/cmdline}"
}

report() { echo "up name=$NAME version=$VERSION url=$URL pid=$1 data=$DATA"; }

give_up() {
  log "$1"
  tail -n 20 "$DATA"/*.log "$DATA"/logs/*.log >&2 2>/dev/null || true
  end_it KILL
  if grep -qiE 'address already in use|BindException|failed to listen|fail to listen' "$DATA"/*.log "$DATA"/logs/*.log 2>/dev/null; then exit 75; fi
  exit 1
}

start() {
  local p port t0
  install
  mkdir -p "$DATA"
  exec 8>"$DATA/lock"; flock -w "$START_LIMIT" 8 || die "another start or stop holds $DATA/lock"
  t0=$SECONDS
  if ! pid >/dev/null; then
    for port in "$PORT" "$PEER"; do if taken "$port"; then log "port $port is taken"; exit 75; fi; done
    if [ -n "$NOBODY" ]; then chown 65534:65534 "$DATA"; fi
    launch 8>&- >"$DATA/launch.log" 2>&1 || give_up "the server did not start"
  fi
  until p=$(pid) && healthy; do
    [ $((SECONDS - t0)) -lt "$START_LIMIT" ] || give_up "no answer from $URL after $START_LIMIT s"
    [ -n "$p" ] || [ $((SECONDS - t0)) -lt 5 ] || give_up "the server ended while starting"
    sleep 0.2
  done
  report "$p"
}

end_it() { # SIGNAL
  local p i; p=$(pid) || return 0
  kill -"$1" "$p" 2>/dev/null || true
  for ((i = 0; i < 300; i++)); do pid >/dev/null || return 0; sleep 0.1; done
  log "pid $p ignored SIG$1 for 30 s, killing it"
  kill -KILL "$p" 2>/dev/null || true; sleep 1
  ! pid >/dev/null || die "pid $p cannot be stopped"
}

run() {
  case $CMD in
    install) install; echo "$HOME_DIR";;
    installed) installed;;
    start) start;;
    status) if p=$(pid) && healthy; then report "$p"; else echo "$NAME on port $PORT is not running"; exit 3; fi;;
    stop) end_it TERM;;
    purge) end_it KILL; rm -rf "$DATA";;   # nothing of it is wanted, so there is no need to wait for a clean end
    *) die "usage: $NAME.sh install|start|status|stop|purge [--version V] [--port N] [--data DIR] [--heap 1g]";;
  esac
}
