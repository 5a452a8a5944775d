#!/usr/bin/env bash
# prepare.sh: fetches everything the tests with real engines need into the cache, once: the three engines and their clients in
# Python and JavaScript. Prints where each one is; run again, it does nothing.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1

jobs=()
for install in "./elasticsearch.sh install" "./opensearch.sh install" "./typesense.sh install" "../clients/install.sh python" \
  "../clients/install.sh javascript"; do
  bash $install & jobs+=($!)
done
failed=0
for job in "${jobs[@]}"; do wait "$job" || failed=1; done
exit $failed
