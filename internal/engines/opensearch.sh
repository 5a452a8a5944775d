#!/usr/bin/env bash
# opensearch.sh: a real, single-node OpenSearch on 127.0.0.1 (verbs and options: lib.sh), of version 3.6.0, 3.6.0-vectors or 2.19.1, put
# together from the OpenSearch project's own packages on Maven Central:
#   org.opensearch.distribution.integ-test-zip:opensearch  the server (56 MB), since 3.0 with its modules (162 MB)
#   org.opensearch.plugin:*                                the modules of 2.19.1, one jar each (plus their libraries)
#   org.opensearch.plugin:opensearch-knn (zip)             k-NN, Java only: `knn_vector` with engine lucene, no faiss (3.6.0-vectors, 2.19.1)
#   org.opensearch.plugin:neural-search (zip)              hybrid queries (3.6.0-vectors)
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
NAME=opensearch VERSION=3.6.0 PORT=9200 HEAP=1g
arguments "$@"
PEER=$((PORT + 100)) MARK=-Djava.io.tmpdir=$DATA/tmp

KNN= NEURAL= MODULES= JAVA=(21 99) SUMS= RELEASE=${VERSION%-vectors}
case $VERSION in
  3.6.0) ;;
  3.6.0-vectors) KNN=3.6.0.0 NEURAL=3.6.0.0 CHECKSUMS=-c # Maven Central has no checksums beside these zips, so here are those that we have seen
    SUMS='ac392ca28a39b3bf290648a422ef30cb149dda2963a9d7feb26060e932341c9a  opensearch-knn-3.6.0.0.zip
6ef1b206e79391e2e36268e32dc34d27fd8b8a59a8eb0a7393c97d53b038e433  neural-search-3.6.0.0.zip';;
  2.19.1) KNN=2.19.1.0 JAVA=(11 23);; # later ones have no security manager, which 2.x asks for
  *) die "no package is known of version $VERSION";;
esac

# name | artifact | class | extends | libraries it brings (globs)
[ "$VERSION" != 2.19.1 ] || MODULES='
lang-painless|lang-painless|org.opensearch.painless.PainlessPlugin||opensearch-scripting-painless-spi-* antlr4-runtime-* asm-[0-9]* asm-util-* asm-tree-* asm-commons-* asm-analysis-*
analysis-common|analysis-common|org.opensearch.analysis.common.CommonAnalysisPlugin|lang-painless|
ingest-common|ingest-common|org.opensearch.ingest.common.IngestCommonPlugin|lang-painless|opensearch-grok-* opensearch-dissect-* joni-* jcodings-*
mapper-extras|mapper-extras-client|org.opensearch.index.mapper.MapperExtrasPlugin|lang-painless|
lang-expression|lang-expression|org.opensearch.script.expression.ExpressionPlugin||lucene-expressions-* antlr4-runtime-* asm-[0-9]* asm-tree-* asm-commons-*
lang-mustache|lang-mustache-client|org.opensearch.script.mustache.MustachePlugin||compiler-*
parent-join|parent-join-client|org.opensearch.join.ParentJoinPlugin||
percolator|percolator-client|org.opensearch.percolator.PercolatorPlugin||
rank-eval|rank-eval-client|org.opensearch.index.rankeval.RankEvalPlugin||
aggs-matrix-stats|aggs-matrix-stats-client|org.opensearch.search.aggregations.matrix.MatrixAggregationPlugin||
geo|geo|org.opensearch.geo.GeoModulePlugin||
reindex|reindex-client|org.opensearch.index.reindex.ReindexPlugin||opensearch-rest-client-* opensearch-ssl-config-* httpclient-* httpcore-* httpasyncclient-* commons-codec-* commons-logging-*
'

# What each module may do under the Java security manager. The jars do not carry it, so it stands here.
policy() {
  case $1 in
    lang-painless) echo 'grant { permission java.lang.RuntimePermission "createClassLoader"; permission java.lang.RuntimePermission "getClassLoader"; };';;
    lang-expression) echo 'grant { permission java.lang.RuntimePermission "createClassLoader"; permission java.lang.RuntimePermission "getClassLoader";'
      for c in java.lang.String org.apache.lucene.expressions.Expression org.apache.lucene.search.DoubleValues java.lang.Math org.apache.lucene.util.MathUtil org.apache.lucene.util.SloppyMath org.apache.lucene.expressions.js.ExpressionMath; do
        echo "permission org.opensearch.script.ClassPermission \"$c\";"; done; echo '};';;
    lang-mustache) echo 'grant { permission java.lang.RuntimePermission "accessDeclaredMembers"; };';;
    reindex) echo 'grant { permission java.net.SocketPermission "*", "connect"; permission java.net.NetPermission "getProxySelector"; };';;
  esac
}

pom() {
  echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>local</groupId><artifactId>modules</artifactId><version>1</version><packaging>pom</packaging><dependencies>'
  local name art rest
  while IFS='|' read -r name art rest; do
    [ -n "$name" ] && echo "<dependency><groupId>org.opensearch.plugin</groupId><artifactId>$art</artifactId><version>$VERSION</version></dependency>"
  done <<<"$MODULES"
  echo "<dependency><groupId>org.opensearch.distribution.integ-test-zip</groupId><artifactId>opensearch</artifactId><version>$RELEASE</version><type>zip</type></dependency>"
  [ -z "$KNN" ] || plugin opensearch-knn "$KNN"
  [ -z "$NEURAL" ] || plugin neural-search "$NEURAL"
  echo '</dependencies></project>'
}

plugin() { # NAME VERSION
  echo "<dependency><groupId>org.opensearch.plugin</groupId><artifactId>$1</artifactId><version>$2</version><type>zip</type>"
  echo '<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>'
}

fetch() {
  pom >"$1/pom.xml"
  mvn_get -f "$1/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies -DoutputDirectory="$1/libs"
  if [ -n "$SUMS" ]; then
    (cd "$1/libs" && sha256sum -c --quiet <<<"$SUMS" >&2) || die "a package of version $VERSION is not the one that was tested"
  fi
  mkdir "$1/server"
  unpack "$1/libs/opensearch-$RELEASE.zip" "$1/server"
  mv "$1"/server/opensearch-* "$1/home"
  local name art class extends libs lib module
  while IFS='|' read -r name art class extends libs; do
    [ -n "$name" ] || continue
    module=$1/home/modules/$name; mkdir -p "$module"
    cp "$1/libs/$art-$VERSION.jar" "$module/"
    for lib in $libs; do cp "$1"/libs/$lib.jar "$module/"; done
    printf '%s\n' "description=$name" "version=$VERSION" "name=$name" "classname=$class" java.version=11 "opensearch.version=$VERSION" \
      custom.foldername= "extended.plugins=$extends" has.native.controller=false >"$module/plugin-descriptor.properties"
    if [ -n "$(policy "$name")" ]; then policy "$name" >"$module/plugin-security.policy"; fi
  done <<<"$MODULES"
  mkdir -p "$1/home/plugins" "$1/home/logs"
  if [ -n "$KNN" ]; then unpack "$1/libs/opensearch-knn-$KNN.zip" "$1/home/plugins/opensearch-knn"; fi
  if [ -n "$NEURAL" ]; then unpack "$1/libs/neural-search-$NEURAL.zip" "$1/home/plugins/opensearch-neural-search"; fi
  chmod 755 "$1"/home/bin/*
}

launch() {
  local jdk; jdk=$(java_home "${JAVA[@]}" "${OPENSEARCH_JAVA_HOME:-}")
  java_config opensearch.yml
  if [ -n "$NOBODY" ]; then chown -R 65534:65534 "$DATA"; fi
  cd "$DATA"
  java_env OPENSEARCH_JAVA_HOME="$jdk" OPENSEARCH_PATH_CONF="$DATA/config" OPENSEARCH_TMPDIR="$DATA/tmp" \
    timeout "$START_LIMIT" "${RUNAS[@]}" "$HOME_DIR/bin/opensearch" -d </dev/null
}

healthy() { get "$URL/_cluster/health?wait_for_status=yellow&timeout=5s" >/dev/null && get "$URL/" >/dev/null; }

run
