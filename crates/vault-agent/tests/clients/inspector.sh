#!/usr/bin/env bash
# The inspector's command line lists and calls the tools, as a client of the old revisions and of the newest:
#   inspector.sh NODE INSPECTOR PROGRAM
# NODE is Node 22.19 or newer, INSPECTOR the script clients/launcher/build/index.js of @modelcontextprotocol/inspector,
# PROGRAM vault-agent.
set -euo pipefail
node=$1 inspector=$2 program=$(realpath "$3")

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/Notes"
printf '# Garden\n\nPrune the roses in March.\n' >"$folder/Notes/Garden.md"
# It looks for a keychain otherwise.
export HOME=$folder MCP_INSPECTOR_SECRET_STORE=memory
unset XDG_STATE_HOME XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME

server="\"type\": \"stdio\", \"command\": \"$program\", \"args\": [\"mcp\", \"--vault\", \"$folder/Notes\"]"
server+=", \"env\": {\"HOME\": \"$folder\"}"
cat >"$folder/config.json" <<JSON
{"mcpServers": {
  "legacy": {$server, "protocolEra": "legacy"},
  "modern": {$server, "protocolEra": "modern"}
}}
JSON

# Runs a method, and checks its exit code and, as an expression of JavaScript, what it printed.
expect() { # ERA EXIT CHECK ARGUMENT…
  local era=$1 exit=$2 check=$3 got=0
  shift 3
  timeout 30 "$node" "$inspector" --cli --config "$folder/config.json" --server "$era" --format json --method "$@" \
    >"$folder/out" 2>"$folder/errors" </dev/null || got=$?
  if ((got != exit)) || ! "$node" -e "
    const { result } = JSON.parse(require('fs').readFileSync(0, 'utf8'));
    if (!($check)) process.exit(1);" <"$folder/out"; then
    printf '%s, %s: exit code %d instead of %d, or not this: %s\n' "$era" "$*" "$got" "$exit" "$check" >&2
    cat "$folder/out" "$folder/errors" >&2
    return 1
  fi
}

for era in legacy modern; do
  version=2025-11-25
  [[ $era == legacy ]] || version=2026-07-28
  expect "$era" 0 "result.protocolVersion === '$version' && result.serverInfo.name === 'vault-agent'" initialize
  # It also ends with an error for a schema that some models' providers refuse.
  expect "$era" 0 "result.tools.at(-1).name === 'undo'" tools/list --strict
  expect "$era" 0 "result.structuredContent.content.startsWith('# Garden')" \
    tools/call --tool-name read_note --tool-arg path=Garden.md
  expect "$era" 5 "result.isError && result.structuredContent.error.code === 'NOT_FOUND'" \
    tools/call --tool-name read_note --tool-arg path=None.md
  expect "$era" 0 "result.structuredContent.status === 'needs_approval'" \
    tools/call --tool-name append_to_note --tool-args-json '{"path": "Garden.md", "content": "- more"}'
  expect "$era" 0 "result.contents[0].text.startsWith('# Garden')" resources/read --uri vault://Notes/Garden.md
  echo "inspector, $era: 6 cases"
done
[[ $(<"$folder/Notes/Garden.md") != *more* ]]
