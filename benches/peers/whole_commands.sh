#!/usr/bin/env bash
# Times whole commands beside ripgrep and iwe, and measures peak memory:
#   benches/peers/whole_commands.sh BIN [--vectors] [--large]
#
# BIN is the folder of the release binaries vault-index, vault-search, make_vault and embed_query. It needs hyperfine, rg and GNU
# time; iwe (`cargo install iwe@0.29.3 --locked`) for its row. With --vectors the memory of first syncs with vectors
# is measured too, which takes minutes; without, one index with vectors is made once and kept. With --large a vault of
# 100,000 passages is indexed, once, in some ten minutes, and searched beside a process that only embeds the query.
#
# Ours and the peer's runs take turns for ROUNDS rounds; a ratio is that of the medians within a round, and the median
# of the rounds is printed. Vaults and indexes are kept in WORK. NOTES and SMALL make them smaller, to try this out.
set -euo pipefail

[[ $# -ge 1 && -x $1/vault-index ]] || { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }
BIN=$(cd "$1" && pwd)
WITH_VECTORS= LARGE=
for option in "${@:2}"; do
  case $option in
    --vectors) WITH_VECTORS=1 ;;
    --large) LARGE=1 ;;
    *) echo "there is no option $option" >&2; exit 2 ;;
  esac
done
WORK=${WORK:-/tmp/vault-bench}
ROUNDS=${ROUNDS:-3}
NOTES=${NOTES:-5000}
SMALL=${SMALL:-20000}
WORD=${WORD:-garden}

for tool in hyperfine rg /usr/bin/time; do
  command -v "$tool" >/dev/null || { echo "$tool is missing" >&2; exit 2; }
done
[[ $WORK != *" "* && $BIN != *" "* ]] || { echo "paths with spaces are not supported" >&2; exit 2; }
mkdir -p "$WORK"
WORK=$(cd "$WORK" && pwd)
# Nobody's own settings.
unset VAULT_DIR VAULT_INDEX_FILE VAULT_MODEL VAULT_BASE_URL RIPGREP_CONFIG_PATH
export XDG_CONFIG_HOME=$WORK/config XDG_CACHE_HOME=$WORK/cache

vault() { # NAME NOTES BYTES LINKS SEED
  [[ -d $WORK/$1 ]] && return
  echo "making the vault $1" >&2
  "$BIN/make_vault" "$WORK/$1.part" "${@:2}"
  mv "$WORK/$1.part" "$WORK/$1"
}

sync() { # VAULT INDEX OPTION…
  echo "$BIN/vault-index sync --vault $WORK/$1 --index $WORK/$2/index.db ${*:3}"
}

median() { sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

# Prints a row: both medians, their ratio, the bar.
row() { # TITLE BAR RUNS OURS PEER [PREPARE-OURS]
  local round result=$WORK/hyperfine.csv prepare=() ratios=() ours=() peers=() medians
  [[ -n ${6:-} ]] && prepare=(--prepare "$6" --prepare true)
  for ((round = 0; round < ROUNDS; round++)); do
    hyperfine --shell none --style none --warmup 2 --runs "$3" --output pipe --export-csv "$result" \
      "${prepare[@]}" "$4" "$5" >"$WORK/hyperfine.log" 2>&1 || { cat "$WORK/hyperfine.log" >&2; exit 1; }
    # Columns from the end: mean, stddev, median, user, system, min, max; in seconds.
    mapfile -t medians < <(awk -F, 'NR > 1 { print 1000 * $(NF - 4) }' "$result")
    ours+=("${medians[0]}") peers+=("${medians[1]}")
    ratios+=("$(awk -v a="${medians[0]}" -v b="${medians[1]}" 'BEGIN { print a / b }')")
  done
  printf '| %s | %.1f ms | %.1f ms | %.2f | %s |\n' "$1" "$(printf '%s\n' "${ours[@]}" | median)" \
    "$(printf '%s\n' "${peers[@]}" | median)" "$(printf '%s\n' "${ratios[@]}" | median)" "$2"
}

peak() { # COMMAND: its peak memory in MB
  local seen=$WORK/time.txt
  # Unquoted: a command with its arguments.
  /usr/bin/time -v -o "$seen" $1 >/dev/null 2>&1 || { cat "$seen" >&2; exit 1; }
  awk '/Maximum resident set size/ { printf "%.0f", $NF / 1024 }' "$seen"
}

first_sync_row() { # NOTES WHAT VAULT INDEX OPTION…
  local mb
  rm -rf "${WORK:?}/$4"
  mb=$(peak "$(sync "${@:3}")")
  echo "| $1 notes, $2 vectors | $mb |"
}

vault notes "$NOTES" 1500 6 2
vault notes-twice "$((2 * NOTES))" 1500 6 2
vault small "$SMALL" 600 3 1

echo "commit $(git -C "$(dirname "$0")" rev-parse --short HEAD 2>/dev/null || echo unknown), $(nproc) cores," \
  "$(awk -F': ' '/model name/ { print $2; exit }' /proc/cpuinfo), $(rg --version | head -n 1)"

echo
echo '| first sync, peak memory | MB |'
echo '| --- | --- |'
first_sync_row "$NOTES" without notes text-index --no-vectors
first_sync_row "$((2 * NOTES))" without notes-twice text-index --no-vectors
if [[ -n $WITH_VECTORS ]]; then
  first_sync_row "$NOTES" with notes index
  first_sync_row "$((2 * NOTES))" with notes-twice index-twice
elif [[ ! -e $WORK/index/index.db ]]; then
  echo "making the index with vectors, which takes minutes" >&2
fi
# A first sync that was cut short goes on here; and files that were too young at the last look are read once more.
$(sync notes index) >/dev/null
sleep 3
$(sync notes index) >/dev/null

search="$BIN/vault-search --no-sync --vault $WORK/notes --index $WORK/index/index.db"
echo
echo '| whole command | ours | beside it | ratio | bar |'
echo '| --- | --- | --- | --- | --- |'
for mode in hybrid lexical; do
  row "search, $mode, \`rg -i -c\`" "4 (2 with the hot path)" 20 \
    "$search --mode $mode $WORD" "rg -i -c $WORD $WORK/notes"
done
if [[ -n $LARGE ]]; then
  vault large 36000 1500 6 3
  $(sync large large-index) >/dev/null
  large="$BIN/vault-search --no-sync --vault $WORK/large --index $WORK/large-index/index.db"
  for mode in semantic hybrid; do
    row "search of 100,000 passages, $mode, \`embed_query\`" 3 20 "$large --mode $mode $WORD" "$BIN/embed_query $WORD"
  done
fi
row "sync, nothing changed, \`rg --files\`" 3 20 "$(sync notes index)" "rg --files $WORK/notes"
if command -v iwe >/dev/null; then
  # A folder is a library of iwe's once it holds `.iwe`, which our walk passes by.
  cd "$WORK/small"
  [[ -d .iwe ]] || iwe init --defaults >/dev/null
  row "first sync of $SMALL small notes without vectors, \`iwe stats\`" "1, and 1500 ms" 5 \
    "$(sync small small-index --no-vectors)" "iwe stats" "rm -rf $WORK/small-index"
  row "search by words in $SMALL small notes, \`iwe find --lexical\`" 1 10 \
    "$BIN/vault-search --no-sync --mode lexical --vault $WORK/small --index $WORK/small-index/index.db $WORD" \
    "iwe find --lexical $WORD"
  echo
  iwe --version
else
  echo "no iwe: its row is left out" >&2
fi
