#compdef exp
# zsh completion for exp. Written by: exp completion zsh

_exp() {
    local tab=$'\t' line text found=1
    local -a whole partial
    for line in "${(@f)$("${(@Q)words[1,CURRENT]}" --generate-bash-completion 2>/dev/null)}"; do
        [[ -n $line ]] || continue
        text=${line%%$tab*}
        line=${text//:/\\:}${${line#$text}/$tab/:}
        # No space after what is not the whole word.
        if [[ $text == *[/=] ]]; then
            partial+=("$line")
        else
            whole+=("$line")
        fi
    done
    (( $#whole )) && _describe 'exp' whole && found=0
    (( $#partial )) && _describe 'exp' partial -S '' && found=0
    return found
}

if [[ ${funcstack[1]} == _exp ]]; then
    _exp "$@"
elif (( $+functions[compdef] )); then
    compdef _exp exp
fi
