#!/usr/bin/env bash
# The Codex command-line client does one small task against the proxy: codex_task.sh CODEX PROGRAM FOLDER, where
# PROGRAM is scripted_backend and FOLDER an empty one. Nothing but loopback is needed.
set -euo pipefail
codex=$1 program=$2 folder=$3

mkdir -p "$folder/home" "$folder/task"
mkfifo "$folder/stdin"
"$program" <"$folder/stdin" >"$folder/address" &
server=$!
exec 9>"$folder/stdin"
trap 'exec 9>&-; kill "$server" 2>/dev/null || true' EXIT
until [[ -s $folder/address ]]; do
  kill -0 "$server"
  sleep 0.1
done

cat >"$folder/home/config.toml" <<TOML
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

# The model's part of the conversation: two commands, then words about what they printed.
script='say I write the file.
call exec_command {"cmd": "printf crimson-harbor > note.txt"}
then
call exec_command {"cmd": "cat note.txt"}
then
repeat'

cd "$folder/task"
CODEX_HOME=$folder/home PROXY_KEY="a key" timeout 60 "$codex" exec --skip-git-repo-check \
  --dangerously-bypass-approvals-and-sandbox --json "$script" </dev/null >"$folder/events" 2>"$folder/errors" ||
  { cat "$folder/events" "$folder/errors" >&2; exit 1; }
if [[ $(cat note.txt) != crimson-harbor ]] ||
  ! grep '"agent_message"' "$folder/events" | grep -q 'tool_result.*crimson-harbor' ||
  ! grep -q '"turn.completed"' "$folder/events"; then
  cat "$folder/events" "$folder/errors" >&2
  exit 1
fi
echo "codex wrote the file, read it, and was told of it"
