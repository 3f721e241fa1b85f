
# The names of notes, where a command takes one; else what is generated above.
_vault_tools_notes() {
    local -a names
    names=("${(@f)$(${~words[1]} __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -z "${names[1]}" ]]; then
        _vault-tools "$@"
    else
        compadd -U -a names
    fi
}
if (( $+functions[compdef] )); then
    compdef _vault_tools_notes vault-tools
fi
