#!/usr/bin/env bash
# The official conformance suite against the server over HTTP:
#   conformance.sh NODE NEXT STABLE PROGRAM
# NODE is Node 22 or newer, NEXT and STABLE are the scripts of two versions of the suite (dist/index.js), PROGRAM is
# vault-agent. The checks that do not apply stand in conformance-*.yml with their reasons. Any other failure fails the
# run, and so does a check that stands there and passes.
set -euo pipefail
node=$1 next=$2 stable=$3 program=$4
lists=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

folder=$(mktemp -d)
mkdir "$folder/Notes"
printf '# Garden\n\nPrune the roses in March. See [[Home]].\n' >"$folder/Notes/Garden.md"
printf 'See [[Garden]]. #allotment\n' >"$folder/Notes/Home.md"

: >"$folder/errors"
env -i HOME="$folder" PATH="$PATH" "$program" mcp --vault "$folder/Notes" --http 127.0.0.1:0 2>>"$folder/errors" &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" || true; rm -rf "$folder"' EXIT
address=
deadline=$((SECONDS + 20))
until [[ -n $address ]]; do
  if ! kill -0 "$server" || ((SECONDS > deadline)); then
    cat "$folder/errors" >&2
    exit 1
  fi
  address=$(sed -n 's/^note: listening on //p' "$folder/errors")
  sleep 0.05
done

suite() { # SCRIPT REVISION
  local log="$folder/log"
  if ! timeout 60 "$node" "$1" server --url "$address" --suite all --spec-version "$2" \
    --expected-failures "$lists/conformance-$2.yml" -o "$folder/results" >"$log" 2>&1; then
    cat "$log" "$folder/errors" >&2
    return 1
  fi
  printf 'conformance %s, %s: ' "$("$node" "$1" --version)" "$2"
  sed -n 's/^Total: \(.*\) failed$/\1 do not apply/p' "$log"
}

failed=0
suite "$next" 2026-07-28 || failed=1
suite "$next" 2025-11-25 || failed=1
suite "$stable" 2025-11-25 || failed=1
exit "$failed"
