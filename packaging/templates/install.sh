#!/bin/sh
# Installs the programs for the current user; `usage` says how.
set -eu

usage() {
  cat <<'END'
Installs vault-search, vault-index, vault-tools and vault-agent for the current user:
  install.sh [--version VERSION] [--to FOLDER] [--uninstall]
Downloads the archive of this system, checks its SHA-256 checksum, and puts the programs into FOLDER (~/.local/bin),
their manuals and completions into ~/.local/share. Needs curl or wget, and no root.
END
}

fail() { echo "error: $*" >&2; exit 1; }

# Prints the files of the installation, each beside its place.
files() {
  for name in vault-agent vault-search vault-index vault-tools; do
    echo "$name $to/$name"
    echo "completions/$name.bash $share/bash-completion/completions/$name"
    echo "completions/$name.fish $share/fish/vendor_completions.d/$name.fish"
    echo "completions/_$name $share/zsh/site-functions/_$name"
  done
}

remove() {
  files | while read -r _ file; do rm -f "$file"; done
  rm -f "$share"/man/man1/vault-agent.1 "$share"/man/man1/vault-agent-*.1 "$share"/man/man1/vault-search.1 \
    "$share"/man/man1/vault-index.1 "$share"/man/man1/vault-index-*.1 "$share"/man/man1/vault-tools.1
}

download() { # URL FILE
  if command -v curl >/dev/null; then
    # Not even a redirect may lead to an address without encryption.
    if [ "${VAULT_AGENT_RELEASES-}" ]; then curl -fsSL "$1" -o "$2"; else curl --proto '=https' -fsSL "$1" -o "$2"; fi
  elif command -v wget >/dev/null; then
    wget -q "$1" -O "$2"
  else
    fail "curl or wget is needed"
  fi || fail "$1 cannot be downloaded"
}

checksum() {
  if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

# The shell has read the whole file before it runs anything, so a download that was cut off does nothing.
main() {
  version=@VERSION@
  to=${HOME:?}/.local/bin
  share=${XDG_DATA_HOME:-$HOME/.local/share}
  releases=${VAULT_AGENT_RELEASES:-@REPOSITORY@/releases/download}
  uninstall=
  while [ $# -gt 0 ]; do
    case $1 in
      --version) version=${2:?--version needs a version, for example @VERSION@}; version=${version#v}; shift ;;
      --to) to=${2:?--to needs a folder}; shift ;;
      --uninstall) uninstall=1 ;;
      --help | -h) usage; exit ;;
      *) fail "unknown option $1 (options: --version VERSION, --to FOLDER, --uninstall)" ;;
    esac
    shift
  done

  if [ "$uninstall" ]; then
    remove
    echo "removed the programs from $to; indexes and settings stay" \
      "(run \`vault-index forget\` before uninstalling to delete those of a vault)"
    exit
  fi

  case $(uname -s) in
    Linux) system=unknown-linux-gnu ;;
    Darwin) system=apple-darwin ;;
    *) fail "there is no archive for $(uname -s); on Windows use install.ps1" ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) cpu=x86_64 ;;
    aarch64 | arm64) cpu=aarch64 ;;
    *) fail "there is no archive for $(uname -m); build the programs with cargo" ;;
  esac

  # As on Alpine, whose ldd names it.
  if [ $system = unknown-linux-gnu ] && ldd --version 2>&1 | grep -qi musl; then system=unknown-linux-musl; fi

  name=vault-v$version-$cpu-$system
  mkdir -p "$to"
  # Beside the programs, because programs may be forbidden to run in /tmp.
  scratch=$(mktemp -d "$to/.vault-agent-XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  trap 'exit 1' INT TERM HUP
  download "$releases/v$version/SHA256SUMS" "$scratch/SHA256SUMS"
  download "$releases/v$version/$name.tar.gz" "$scratch/$name.tar.gz"
  expected=$(sed -n "s/^\([0-9a-f]*\)  $name\.tar\.gz$/\1/p" "$scratch/SHA256SUMS")
  [ "$expected" ] || fail "SHA256SUMS of version $version has no line for $name.tar.gz"
  [ "$(checksum "$scratch/$name.tar.gz")" = "$expected" ] ||
    fail "$name.tar.gz does not have the checksum that SHA256SUMS names; nothing is changed"
  tar -xzf "$scratch/$name.tar.gz" -C "$scratch"
  "$scratch/$name/vault-agent" --version >/dev/null ||
    fail "vault-agent $version does not run on this system; nothing is changed. Build the programs with cargo"

  remove
  mkdir -p "$share/man/man1"
  mv "$scratch/$name/vault-agent" "$to/vault-agent"
  for other in vault-search vault-index vault-tools; do
    # One file serves all four commands. A hard link takes no space; some file systems have none.
    ln "$to/vault-agent" "$to/$other" 2>/dev/null || ln -s vault-agent "$to/$other"
  done
  cp "$scratch/$name"/man/*.1 "$share/man/man1/"
  files | while read -r from file; do
    case $from in completions/*) mkdir -p "$(dirname "$file")"; cp "$scratch/$name/$from" "$file" ;; esac
  done

  echo "installed vault-agent $version, vault-search, vault-index and vault-tools in $to"
  case ${SHELL-} in
    # Not asked of zsh, because it would have to run the person's configuration to know its fpath.
    */zsh)
      echo "completions: if your fpath lacks the folder, add to ~/.zshrc before compinit:" \
        "fpath=(\"$share/zsh/site-functions\" \$fpath)" ;;
  esac
  case :$PATH: in
    *":$to:"*) echo "try: vault-search --vault FOLDER-OF-YOUR-NOTES WORDS" ;;
    *) echo "$to is not in PATH; add to the configuration of your shell: export PATH=\"$to:\$PATH\"" ;;
  esac
}

main "$@"
