#!/usr/bin/env bash
# prepare.sh: fetches everything the tests with real engines need into the cache, once: the three engines, Flink, their clients in
# Python and JavaScript, and a browser. Prints where each one is; run again, it does nothing.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1

jobs=()
for install in "./elasticsearch.sh install" "./opensearch.sh install" "./typesense.sh install" "./flink.sh install" "../clients/install.sh python" \
  "../clients/install.sh javascript"; do
  bash $install & jobs+=($!)
done
# A browser can't be fetched into the cache: where it is missing and can't be installed, only CI needs it.
bash ../clients/install.sh browser || [ "${CI:-}" != true ] & jobs+=($!)
failed=0
for job in "${jobs[@]}"; do wait "$job" || failed=1; done
exit $failed
