# bash completion for exp. Written by: exp completion bash
#
# Words are split at spaces only: bash itself also splits at ":" and "=", which
# stand inside run references and flags. So quoted spaces are not understood.

_exp() {
    local line=${COMP_LINE:0:COMP_POINT} words current candidate quoted split
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    current=${words[${#words[@]}-1]}

    # bash replaces only what follows the last of its word breaks.
    split=""
    if [[ $current == *[:=]* ]]; then
        case $COMP_WORDBREAKS in
            *:*=* | *=*:*) split=${current%"${current##*[:=]}"} ;;
            *:*) split=${current%"${current##*:}"} ;;
            *=*) split=${current%"${current##*=}"} ;;
        esac
    fi

    COMPREPLY=()
    while IFS=$'\t' read -r candidate _; do
        [[ -n $candidate ]] || continue
        printf -v quoted %q "${candidate#"$split"}"
        COMPREPLY+=("${quoted/#\\\~\//\~/}") # a quoted ~ would not be the home
    done < <("${words[@]}" --generate-bash-completion 2>/dev/null)

    # No space after part of a word.
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/=] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}

complete -F _exp exp
