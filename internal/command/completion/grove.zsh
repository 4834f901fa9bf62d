#compdef grove
# Completion of grove in zsh: in a directory of $fpath as _grove, or loaded with: source <(grove completion zsh)
_grove() {
    local line files word meaning
    local -a candidates
    local program=${words[1]/#\~/$HOME}
    for line in "${(@f)$("$program" complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
        if [[ $line == :files ]]; then
            files=1
        elif [[ -n $line ]]; then
            word="${line%%$'\t'*}"
            meaning="${line#*$'\t'}"
            candidates+=("${word//:/\\:}${meaning:+:$meaning}")
        fi
    done
    (( $#candidates )) && _describe grove candidates
    if [[ -n $files ]]; then
        [[ $PREFIX == --*=* ]] && compset -P '--*='
        _files
    fi
}
if [[ $funcstack[1] == _grove ]]; then
    _grove "$@"
else
    compdef _grove grove
fi
