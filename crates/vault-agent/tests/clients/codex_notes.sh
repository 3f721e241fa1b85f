#!/usr/bin/env bash
# The Codex command-line client changes a note by the server that `mcp install codex` sets up:
#   codex_notes.sh CODEX SCRIPTED_BACKEND VAULT_AGENT FOLDER
# FOLDER is an empty one. The model is a script, and a person at a terminal says yes; nothing but loopback is needed.
set -euo pipefail
codex=$1 backend=$2 program=$3 folder=$4

export HOME=$folder/home CODEX_HOME=$folder/home/.codex
unset XDG_STATE_HOME XDG_CACHE_HOME XDG_CONFIG_HOME VAULT_DIR VAULT_INDEX_FILE
mkdir -p "$CODEX_HOME" "$folder/notes" "$folder/task"
printf -- '- begun\n' >"$folder/notes/Log.md"
printf 'Herons nest in the poplars.\n' >"$folder/notes/Birds.md"

mkfifo "$folder/stdin"
"$backend" <"$folder/stdin" >"$folder/address" &
server=$!
exec 9>"$folder/stdin"
trap 'exec 9>&-; kill "$server" 2>/dev/null || true' EXIT
until [[ -s $folder/address ]]; do
  kill -0 "$server"
  sleep 0.1
done

cat >"$CODEX_HOME/config.toml" <<TOML
# The user's own settings.
model = "parrot"
model_provider = "proxy"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.proxy]
name = "proxy"
base_url = "$(cat "$folder/address")"
wire_api = "responses"
env_key = "PROXY_KEY"
requires_openai_auth = false
request_max_retries = 0
stream_max_retries = 0
TOML
# Where nobody sits at it, Codex declines every question by itself.
"$program" mcp install codex --vault "$folder/notes" --ask-outside
"$program" mcp doctor codex

codex_does() { # SCRIPT
  (cd "$folder/task" && PROXY_KEY="a key" timeout 60 "$codex" exec --skip-git-repo-check \
    --dangerously-bypass-approvals-and-sandbox --json "$1" </dev/null >"$folder/events" 2>"$folder/errors") ||
    failed "codex failed"
}

failed() { # WHY
  cat "$folder/events" "$folder/errors" >&2
  echo "$1" >&2
  exit 1
}

# Says yes at a terminal to each change that waits for one, if the note is still TEXT.
person() { # TEXT…
  local number=0 waiting text
  for text; do
    until waiting=$(grep -ls '"approved": false' "$HOME"/.local/state/vault-agent/approvals/*.json); do
      sleep 0.1
    done
    [[ $(cat "$folder/notes/Log.md") == "$text" ]] || exit 1
    number=$((number + 1))
    echo y | script -qec "$program approve $(basename "$waiting" .json)" /dev/null >"$folder/shown-$number"
    touch "$folder/approved-$number"
  done
}

append='call mcp__vault__append_to_note {"path": "Log.md", "content": "- done"}'
# The model waits for the person as one does who is told to.
wait_for() { echo "call exec_command {\"cmd\": \"until [ -e $folder/approved-$1 ]; do sleep 0.1; done\", \"yield_time_ms\": 30000}"; }

person '- begun' $'- begun\n- done' &
codex_does "call mcp__vault__search_notes {\"query\": \"where do herons nest\"}
then
$append
then
$(wait_for 1)
then
$append
then
call exec_command {\"cmd\": \"cp $folder/notes/Log.md $folder/after\"}
then
call mcp__vault__undo {}
then
$(wait_for 2)
then
call mcp__vault__undo {}
then
repeat"
wait $! || failed "a change was made before the person said yes"
[[ $(cat "$folder/after") == $'- begun\n- done' ]] || failed "the change that was approved was not made"
[[ $(cat "$folder/notes/Log.md") == "- begun" ]] || failed "the change was not undone"
grep -q '"path":"Birds.md"' <(tr -d '\\' <"$folder/events") || failed "the note was not found"
grep -q 'needs_approval' "$folder/events" || failed "nobody was asked"
grep -q '+- done' "$folder/shown-1" || failed "the person was not shown the change"

# The same without a person.
codex_does "$append
then
$append
then
call mcp__vault__undo {}
then
repeat"
[[ $(cat "$folder/notes/Log.md") == "- begun" ]] || failed "a change was made without a person"
grep -q 'needs_approval' "$folder/events" || failed "the change was not asked for"

"$program" mcp uninstall codex
! grep -q vault "$CODEX_HOME/config.toml" || failed "the server is still in the configuration"
echo "codex found a note, and changed another with a person's yes only"
