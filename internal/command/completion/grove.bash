# Completion of grove in bash. Load it with: source <(grove completion bash)
_grove() {
    local rest=${COMP_LINE:0:COMP_POINT} part line i n=0
    local -a words
    words=('')
    rest=${rest#*"${COMP_WORDS[0]}"}
    for ((i = 1; i <= COMP_CWORD; i++)); do # bash cuts words at = and :, grove does not
        part=${COMP_WORDS[i]}
        if [[ $rest == [[:space:]]* ]]; then
            n=$((n + 1))
            words[n]=''
        fi
        words[n]+=$part
        rest=${rest#"${rest%%[![:space:]]*}"}
        rest=${rest#"$part"}
    done
    local cur=${words[n]} program=${COMP_WORDS[0]/#\~/$HOME}
    local tail=${cur##*[=:]}
    local head=${cur%"$tail"}
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ $line == :files ]]; then
            compopt -o filenames 2>/dev/null
            while IFS= read -r line; do
                COMPREPLY+=("$line")
            done < <(compgen -f -- "$tail")
        else
            line=${line%%$'\t'*}
            COMPREPLY+=("${line#"$head"}")
        fi
    done < <("$program" complete "${words[@]:1}" 2>/dev/null)
}
complete -F _grove grove
