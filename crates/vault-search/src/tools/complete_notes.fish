
# The names of notes, where a command takes one.
complete -c vault-tools -a '(vault-tools __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
