#!/usr/bin/env bash
# flink.sh: a real Apache Flink on 127.0.0.1 (verbs and options: lib.sh): a jobmanager, two taskmanagers of one slot each, and the SQL
# gateway, each a process of its own, put together from the Flink project's own packages:
#   PyPI   apache-flink-libraries          Flink's jars (230 MB), without its start scripts: its main classes are started here
#   Maven  flink-sql-gateway, -api         the gateway, which is not among them
#
# The url of the report is the gateway's. --heap is the heap of each taskmanager. Two more verbs:
#
#   taskmanager   starts one more, or one in the place of one that was killed; prints its process id
#   gateway       kills the gateway and starts it anew
#
# It takes four ports: P gateway, P+1 web and REST of the jobmanager, P+2 its talk with the taskmanagers, P+3 its files.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
NAME=flink VERSION=1.20.3 PORT=8083 HEAP=512m
arguments "$@"
PEER=$((PORT + 1)) MARK=-Dneardup.flink=$DATA # of all its processes

SHA_LIBRARIES=f07f07a46bb272c1e851379ed92105928367019db31240091a5367fc92800289

fetch() {
  echo "apache-flink-libraries==$VERSION --hash=sha256:$SHA_LIBRARIES" >"$1/requirements.txt"
  retry python3 -m pip download -q --disable-pip-version-check --no-deps --no-binary :all: --require-hashes \
    -r "$1/requirements.txt" -d "$1" || die "could not fetch it with pip"
  mkdir -p "$1/home/lib" "$1/home/gateway"
  tar xzf "$1"/apache*flink*libraries-*.tar.gz -C "$1/home/lib" --strip-components=3 --wildcards '*/deps/lib/*.jar'
  local artifact none='<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>'
  { echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>local</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging><dependencies>'
    for artifact in flink-sql-gateway flink-sql-gateway-api; do
      echo "<dependency><groupId>org.apache.flink</groupId><artifactId>$artifact</artifactId><version>$VERSION</version>$none</dependency>"
    done
    echo '</dependencies></project>'; } >"$1/pom.xml"
  mvn_get -f "$1/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies -DoutputDirectory="$1/home/gateway"
}

configure() {
  mkdir -p "$DATA"/{conf,logs,tmp}
  printf '%s\n' 'rootLogger.level = INFO' 'rootLogger.appenderRef.c.ref = c' 'appender.c.type = CONSOLE' 'appender.c.name = c' \
    'appender.c.layout.type = PatternLayout' 'appender.c.layout.pattern = %d{HH:mm:ss,SSS} %-5p %c{1} - %m%n' >"$DATA/conf/log4j2.properties"
  # What a taskmanager may take is told in full, since the scripts that would work it out are not there. A lost one is noticed within seconds.
  cat >"$DATA/conf/config.yaml" <<YML
jobmanager.rpc.address: 127.0.0.1
jobmanager.rpc.port: $((PORT + 2))
jobmanager.bind-host: 127.0.0.1
jobmanager.memory.process.size: 512m
taskmanager.host: 127.0.0.1
taskmanager.bind-host: 127.0.0.1
taskmanager.numberOfTaskSlots: 1
taskmanager.cpu.cores: 1
taskmanager.memory.framework.heap.size: 64m
taskmanager.memory.task.heap.size: ${HEAP%m}m
taskmanager.memory.framework.off-heap.size: 64m
taskmanager.memory.framework.off-heap.batch-shuffle.size: 32m
taskmanager.memory.task.off-heap.size: 0m
taskmanager.memory.managed.size: 64m
taskmanager.memory.network.min: 48m
taskmanager.memory.network.max: 48m
taskmanager.memory.jvm-metaspace.size: 192m
taskmanager.memory.jvm-overhead.min: 64m
taskmanager.memory.jvm-overhead.max: 64m
heartbeat.interval: 1000
heartbeat.timeout: 15000
rest.address: 127.0.0.1
rest.bind-address: 127.0.0.1
rest.port: $PEER
rest.bind-port: $PEER
blob.server.port: $((PORT + 3))
blob.storage.directory: $DATA/tmp
io.tmp.dirs: $DATA/tmp
parallelism.default: 2
sql-gateway.endpoint.rest.address: 127.0.0.1
sql-gateway.endpoint.rest.bind-address: 127.0.0.1
sql-gateway.endpoint.rest.port: $PORT
sql-gateway.endpoint.rest.bind-port: $PORT
YML
}

# What Flink's own scripts give a Java of 17.
OPENS=(--add-exports=java.base/sun.net.util=ALL-UNNAMED --add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED)
for package in lang net io nio lang.reflect text time util util.concurrent util.concurrent.atomic util.concurrent.locks; do
  OPENS+=("--add-opens=java.base/java.$package=ALL-UNNAMED")
done
OPENS+=(--add-opens=java.base/sun.nio.ch=ALL-UNNAMED)

process() { # NAME HEAP CLASSPATH ARGUMENTS…: prints its process id
  local name=$1 heap=$2 path=$3 jdk; shift 3
  jdk=$(java_home 11 21)
  # exec all the way, so that $! is the Java process itself
  (exec env -u JAVA_TOOL_OPTIONS -u _JAVA_OPTIONS -u HADOOP_CLASSPATH -u HADOOP_CONF_DIR FLINK_CONF_DIR="$DATA/conf" FLINK_LIB_DIR="$HOME_DIR/lib" \
    setsid "$jdk/bin/java" "$MARK" "-Xmx$heap" -XX:+UseSerialGC -XX:MaxMetaspaceSize=192m -Djava.net.preferIPv4Stack=true \
    "-Djava.io.tmpdir=$DATA/tmp" "-Dlog4j.configurationFile=$DATA/conf/log4j2.properties" "${OPENS[@]}" -cp "$path" "$@" \
    </dev/null >"$DATA/logs/$name.log" 2>&1) &
  echo $!
}

taskmanager() { # NUMBER
  process "taskmanager$1" "${HEAP}" "$HOME_DIR/lib/*" -XX:MaxDirectMemorySize=112m \
    org.apache.flink.runtime.taskexecutor.TaskManagerRunner --configDir "$DATA/conf" -D "taskmanager.resource-id=taskmanager$1" >>"$DATA/taskmanagers"
  tail -n 1 "$DATA/taskmanagers"
}

gateway() {
  process gateway 384m "$HOME_DIR/lib/*:$HOME_DIR/gateway/*" -XX:TieredStopAtLevel=1 org.apache.flink.table.gateway.SqlGateway >"$DATA/gateway"
}

launch() {
  local port i
  for port in $((PORT + 2)) $((PORT + 3)); do if taken "$port"; then log "port $port is taken"; exit 75; fi; done
  configure
  process jobmanager 320m "$HOME_DIR/lib/*" -XX:TieredStopAtLevel=1 org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint --configDir "$DATA/conf" \
    --executionMode cluster
  gateway
  for ((i = 0; i < 150; i++)); do taken $((PORT + 2)) && break; sleep 0.2; done # a taskmanager too early waits 10 s for its next try
  taskmanager 1; taskmanager 2
}

healthy() {
  get "$URL/v1/info" >/dev/null && get "http://127.0.0.1:$PEER/overview" | grep -q '"taskmanagers":[2-9]'
}

end_it() { # SIGNAL
  local i list
  for ((i = 0; i < 300; i++)); do
    list=$(grep -lzxF -f <(echo "$MARK") /proc/[0-9]*/cmdline 2>/dev/null | sed 's|/proc/||; s|/cmdline||') || true
    [ -n "$list" ] || return 0
    kill -"$1" $list 2>/dev/null || true
    sleep 0.1
  done
  die "process $list cannot be stopped"
}

case $CMD in
  taskmanager) taskmanager $(($(wc -l <"$DATA/taskmanagers") + 1));;
  gateway) kill -KILL "$(cat "$DATA/gateway")"; while taken "$PORT"; do sleep 0.1; done; gateway;;
  *) run;;
esac
