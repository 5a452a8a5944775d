#!/usr/bin/env bash
# prepare.sh [engines|older|python|javascript|browser|flink|suites]…: fetches what the tests with real engines need into the cache, once: the
# engines' current majors, other versions of them, their clients, a browser, Flink, the engines' own test suites; all of it where nothing is named. Prints where each one is; run again, it does nothing.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
[ $# -gt 0 ] || set -- engines older python javascript browser flink suites

jobs=()
fetch() { bash "$@" & jobs+=($!); }
for what in "$@"; do
  case $what in
    engines) for engine in elasticsearch opensearch typesense; do fetch $engine.sh install; done;;
    older) fetch elasticsearch.sh install --version 8.19.13
      for version in 2.19.1 3.6.0-vectors; do fetch opensearch.sh install --version $version; done;;
    python|javascript) fetch ../clients/install.sh "$what";;
    flink|suites) fetch "$what.sh" install;;
    # A browser can't be fetched into the cache: where it is missing and can't be installed, only CI needs it.
    browser) { bash ../clients/install.sh browser || [ "${CI:-}" != true ]; } & jobs+=($!);;
    *) echo "prepare.sh: unknown: $what" >&2; exit 2;;
  esac
done
failed=0
for job in "${jobs[@]}"; do wait "$job" || failed=1; done
exit $failed
