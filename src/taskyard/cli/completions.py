"""`taskyard completions`: what a shell needs to ask us; the answers come from `__complete`."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.output import answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser

# Each script sends the words up to and including the one under the cursor, and gets lines of
# `candidate<TAB>description`. Words go as arguments, never through `eval`.
_BASH = r"""# bash completion for taskyard; in ~/.bashrc: eval "$(taskyard completions bash)"
_taskyard() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("$(printf '%q' "${line%%$'\t'*}")")
    done < <("${COMP_WORDS[0]}" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 0 ]] && compopt -o default
    return 0
}
complete -F _taskyard taskyard
"""

_ZSH = r"""#compdef taskyard
# zsh completion for taskyard; in ~/.zshrc, after compinit: eval "$(taskyard completions zsh)"
_taskyard() {
    local line
    local -a candidates
    while IFS= read -r line; do
        candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done < <("${words[1]}" __complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)
    if (( ${#candidates} )); then
        _describe -V 'taskyard' candidates
    else
        _files
    fi
}
compdef _taskyard taskyard
"""

_FISH = r"""# fish completion for taskyard; in config.fish: taskyard completions fish | source
function __taskyard_complete
    set -l words (commandline -opc) (commandline -ct)
    command $words[1] __complete -- $words[2..-1] 2>/dev/null
end
complete -c taskyard -f -k -a '(__taskyard_complete)'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def _arguments(parser: Parser) -> None:
    parser.add("shell", choices=tuple(SCRIPTS), metavar="SHELL", help="bash, zsh or fish.")


def _run(args: Args) -> int:
    script = SCRIPTS[args.shell].rstrip("\n")
    return answer(args, lambda: {"shell": args.shell, "script": script}, lambda: [script], ids=[script])


COMPLETIONS = Command(
    _run,
    _arguments,
    "Print the completion script for a shell: commands, options, lists, agents, ids of tasks with their\n"
    "subjects and of jobs with what they are, as they are when you press Tab.",
    examples=('eval "$(taskyard completions bash)"', "taskyard completions fish | source"),
)
