#!/bin/sh
# Installs vault-search, vault-index, vault-tools and vault-agent for the current user:
#   install.sh [--version VERSION] [--to FOLDER] [--uninstall]
# Downloads the archive of this system, checks its SHA-256 sum, and puts the programs into FOLDER (~/.local/bin), their
# manuals and completions into ~/.local/share. Needs curl or wget, and no root.
set -eu

version=@VERSION@
to=${HOME:?}/.local/bin
share=${XDG_DATA_HOME:-$HOME/.local/share}
releases=${VAULT_AGENT_RELEASES:-@REPOSITORY@/releases/download}
uninstall=

fail() { echo "error: $*" >&2; exit 1; }

while [ $# -gt 0 ]; do
  case $1 in
    --version) version=${2:?--version needs a version, for example @VERSION@}; version=${version#v}; shift ;;
    --to) to=${2:?--to needs a folder}; shift ;;
    --uninstall) uninstall=1 ;;
    --help | -h) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit ;;
    *) fail "unknown option $1 (options: --version VERSION, --to FOLDER, --uninstall)" ;;
  esac
  shift
done

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

if [ "$uninstall" ]; then
  remove
  echo "removed the programs from $to; indexes and settings stay (before it, \`vault-index forget\` deletes those of a vault)"
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
if [ $system = unknown-linux-gnu ] && ldd --version 2>&1 | grep -qi musl; then
  fail "the archives need glibc, and this system has musl; build the programs with cargo"
fi

download() { # URL FILE
  if command -v curl >/dev/null; then
    curl -fsSL "$1" -o "$2"
  elif command -v wget >/dev/null; then
    wget -q "$1" -O "$2"
  else
    fail "curl or wget is needed"
  fi || fail "$1 cannot be downloaded"
}

sum() {
  if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

name=vault-v$version-$cpu-$system
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
download "$releases/v$version/SHA256SUMS" "$scratch/SHA256SUMS"
download "$releases/v$version/$name.tar.gz" "$scratch/$name.tar.gz"
expected=$(sed -n "s/^\([0-9a-f]*\)  $name\.tar\.gz$/\1/p" "$scratch/SHA256SUMS")
[ "$expected" ] || fail "SHA256SUMS of version $version has no line for $name.tar.gz"
[ "$(sum "$scratch/$name.tar.gz")" = "$expected" ] || fail "$name.tar.gz does not have the sum that SHA256SUMS names; nothing is installed"
tar -xzf "$scratch/$name.tar.gz" -C "$scratch"

remove
mkdir -p "$to" "$share/man/man1"
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
case :$PATH: in
  *":$to:"*) echo "try: vault-search --vault FOLDER-OF-YOUR-NOTES WORDS" ;;
  *) echo "$to is not in PATH; add to the configuration of your shell: export PATH=\"$to:\$PATH\"" ;;
esac
