"""``bash``: one command in the player's cell, in a shell that seems to live on from command to command.

Each command is a shell of its own, which finds the folder, variables, functions and options of the one before, and
leaves its own for the next. What it starts ends with it, as everything in a cell's run does; a command that is killed
leaves the state as it was before. The state lies in the cell, in the player's home: it is the player's, and fools
nobody else. Both streams come back as one text, in the order in which they were written.
"""

from __future__ import annotations

from tiltyard.cells.protocol import CellFileError, Run
from tiltyard.tools import text
from tiltyard.tools.hands import Bench

QUIET_SHARE = 0.5
"""Of the time that a command has, what it may take without printing anything."""
LEAST_QUIET_S = 5.0

_SHELL = r"""
exec 2>&1 < /dev/null
__state="$HOME/.shell_state" __command="$1" __start="$PWD"
set --
__save() {
    local __status=$? __name
    {
        printf 'cd %q 2>/dev/null || { echo "[the folder %q is gone; back in the workspace]"; cd %q; }\n' \
            "$PWD" "$PWD" "$__start"
        for __name in $(compgen -v); do
            case $__name in
                BASH*|COMP_*|DIRSTACK|EPOCH*|EUID|FUNCNAME|GROUPS|HISTCMD|LINENO|PIPESTATUS|PPID|RANDOM|SECONDS|SHELLOPTS|\
                SHLVL|SRANDOM|UID|_|__*) ;;
                *) declare -p "$__name" ;;
            esac
        done
        declare -f
        alias -p
        shopt -p
        set +o
    } > "$__state.new" 2>/dev/null && mv -f "$__state.new" "$__state" 2>/dev/null
    exit "$__status"
}
[ -f "$__state" ] && . "$__state" 2>/dev/null
set +e +u +v +x
trap __save EXIT
eval "$__command"
"""


def bash(bench: Bench, command: str) -> str:
    """Run the command; its output, with how it ended where that was not with status 0."""
    limits = bench.limits
    run = Run(
        ("bash", "-c", _SHELL, "bash", command),
        wall_s=limits.run_s,
        quiet_s=max(LEAST_QUIET_S, QUIET_SHARE * limits.run_s),
        cpu_s=limits.cpu_s,
        output_bytes=limits.output_bytes,
    )
    try:
        result = bench.cell.run(run)
    except CellFileError as error:
        return f"The command can't be run: {text.safe(str(error))}"
    shown = text.decode(result.stdout)
    if result.stdout_dropped:
        at = len(result.stdout) - limits.output_bytes // 2
        head, tail = text.decode(result.stdout[:at]), text.decode(result.stdout[at:])
        shown = f"{head}\n[… {result.stdout_dropped} bytes left out …]\n{tail}"
    shown = text.cut_middle(shown.rstrip("\n"), limits.observation_chars - 400)
    if result.timed_out:
        end = f"[killed: it took longer than {run.wall_s:g} seconds, or printed nothing for {run.quiet_s:g}; "
        end += "the shell is as it was before]"
    elif result.rc < 0:
        end = f"[killed by signal {-result.rc}; the shell is as it was before]"
    else:
        end = f"[exit status {result.rc}]" if result.rc else ""
    return "\n".join(part for part in (shown, end) if part) or "[no output]"
