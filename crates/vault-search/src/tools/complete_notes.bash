
# The names of notes, where a command takes one; else what is generated above.
_vault_tools_notes() {
    local name names=()
    while IFS= read -r name; do
        names+=("$name")
    done < <("${1/#\~/$HOME}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if [[ ${#names[@]} -eq 0 ]]; then
        _vault__tools "$@"
    else
        # The shell quotes what it inserts.
        compopt -o filenames 2>/dev/null
        COMPREPLY=("${names[@]}")
    fi
}
complete -F _vault_tools_notes -o bashdefault -o default vault-tools
