#!/usr/bin/env bash
# suites.sh install|installed: the test suites that the engines' projects publish for their REST interfaces, into the cache, once
# (lib.sh says where). install prints the folder; in it are rest-api-spec/test, the tests, and rest-api-spec/api, the endpoints, of
#
#   opensearch     2.19.0, the release of that line whose suite stands on Maven Central
#   elasticsearch  7.10.2, the last whose tests do: the packages of later releases hold the endpoints alone
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
NAME=suites VERSION=2.19.0-7.10.2 PORT=0 HEAP=
arguments "$@"

copy() { # DIR GROUP:ARTIFACT:VERSION
  mvn_get org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy -Dartifact="$2" -DoutputDirectory="$1/jars"
}

fetch() {
  local engine version
  for engine in opensearch:2.19.0 elasticsearch:7.10.2; do
    version=${engine#*:} engine=${engine%:*}
    copy "$1" "org.$engine:rest-api-spec:$version"
    mkdir -p "$1/home/$engine"
    unpack "$1/jars/rest-api-spec-$version.jar" "$1/home/$engine" rest-api-spec
  done
}

run
