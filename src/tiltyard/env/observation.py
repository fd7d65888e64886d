"""The first observation: everything that a player is told before its first action. The same bytes for the same task.

It says what is asked, what is there, how it is graded and what the caps are; nothing of a hidden test but that there
are some.
"""

from __future__ import annotations

from tiltyard.env.workspace import Workspace, case_names, test_blocks
from tiltyard.task import Limits, Task
from tiltyard.tools import tools_of
from tiltyard.tools.text import cut_middle, name, plural, safe

MAX_FIRST = 200_000
"""Characters of the first observation. A prompt is shown whole; a task whose prompt is longer than this is cut."""
_MAX_FILES = 200
_MAX_TESTS = 6000


def first_observation(task: Task, limits: Limits, place: Workspace) -> str:
    """The text that ``reset`` returns."""
    parts = [task.prompt.strip("\n"), _solution(task), _files(place)]
    if task.visible:
        parts.append(_tests(task))
    parts += [_tools(task), _rules(task, limits)]
    return cut_middle(safe("\n\n".join(p for p in parts if p)), MAX_FIRST)


def _solution(task: Task) -> str:
    if task.grading == "stdio":
        return f"Your program is {name(task.main)}: it reads standard input and writes standard output."
    if task.grading == "pytest":
        return ""  # the prompt says what to change; there is no one file of a solution
    if task.entry:
        return f"The tests take {', '.join(task.entry)} from {name(task.main)}."
    return f"Your solution is {name(task.main)}."


def _files(place: Workspace) -> str:
    if not place.files:
        return "The workspace is empty."
    rows = []
    for path, data in list(place.files.items())[:_MAX_FILES]:
        protected = ", protected" if path in place.protected else ""
        rows.append(f"  {name(path)} ({plural(len(data), 'byte')}{protected})")
    if len(place.files) > _MAX_FILES:
        rows.append(f"  … and {len(place.files) - _MAX_FILES} more; list_files() shows them")
    return "Files in the workspace:\n" + "\n".join(rows)


def _tests(task: Task) -> str:
    if task.grading == "pytest":
        body = "\n".join(f"pytest {test.id}" for test in task.visible)
    elif task.grading == "calls":
        body = "\n\n".join(test_blocks(task.visible))
    else:
        blocks = []
        for label, test in zip(case_names(task.visible), task.visible, strict=True):
            args = f" with the arguments {' '.join(map(repr, test.args))}" if test.args else ""
            code = f", exit status {test.exit_code}" if test.exit_code else ""
            blocks.append(
                f"{label}{args}{code}\ninput:\n{_indent(test.stdin)}\noutput:\n{_indent(test.stdout)}"
            )
        body = "\n\n".join(blocks)
    return "Visible tests:\n" + _indent(cut_middle(body, _MAX_TESTS, "the workspace has them as files"))


def _indent(content: str) -> str:
    return "\n".join("  " + line if line else "" for line in content.removesuffix("\n").split("\n"))


def _tools(task: Task) -> str:
    return "Tools:\n" + "\n".join(f"  {t.signature}: {t.description}" for t in tools_of(task.shell))


def _rules(task: Task, limits: Limits) -> str:
    rule = (
        "the share of hidden tests that pass"
        if task.reward == "fraction"
        else "1 if all hidden tests pass, else 0"
    )
    return (
        f"The reward comes at submit: {rule}. Only what you submit counts; without submit it is 0.\n"
        f"You have {plural(limits.steps, 'action')} (each counts, also an invalid one), {limits.tokens} tokens of actions "
        f"and answers together, and {limits.episode_s:g} seconds. One run of the visible tests may take "
        f"{limits.run_s:g} seconds, and a test {limits.test_s:g}."
    )


ENDED = {
    "steps": "That was the last action of this episode: it is over, without a submission.",
    "tokens": "The token limit of this episode is reached: it is over, without a submission.",
    "time": "The time of this episode is up: it is over, without a submission.",
}


def with_end(observation: str, ended_by: str, max_chars: int) -> str:
    """The observation with a last line that says which cap ended the episode, if one did."""
    if ended_by not in ENDED:
        return observation
    note = "\n" + ENDED[ended_by]
    return cut_middle(observation, max(0, max_chars - len(note))) + note
