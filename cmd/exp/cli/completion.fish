# fish completion for exp. Written by: exp completion fish

function __exp_candidates
    set -l words (commandline -opc) (commandline -ct)
    $words --generate-bash-completion 2>/dev/null
end

complete -c exp -f -a '(__exp_candidates)'
