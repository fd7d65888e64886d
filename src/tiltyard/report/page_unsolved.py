"""The page's section of the never-solved tasks: what failed, what it checks, and the best attempts to read."""

from __future__ import annotations

from tiltyard.report import words
from tiltyard.report.build import Report
from tiltyard.report.markup import Markup, fold, join, section, table, tag
from tiltyard.report.unsolved import FailedTest, Transcript, Unsolved


def never_solved(report: Report) -> Markup:
    """The section; nothing where every task was solved."""
    if not report.never:
        return Markup("")
    said = f"{report.never:,} tasks were attempted and not solved by {', '.join(report.unsolved[0].players)}"
    shown = f"; the first {len(report.unsolved)} are shown" if report.never > len(report.unsolved) else ""
    return section(
        "never",
        "Never solved",
        tag(
            "p",
            f"{said}{shown}. Each is too hard, or wrong. What the failed hidden tests check was looked for in the prompt, the "
            "start files and the visible tests: evidence from the tests' text, not a judgement.",
        )
        if report.unsolved
        else tag("p", f"{report.never:,} tasks; none is shown."),
        *(_unsolved_task(task) for task in report.unsolved),
    )


def _unsolved_task(task: Unsolved) -> Markup:
    nowhere = sum(any(c.untold for c in test.clues) for test in task.tests)
    summary = join(
        [
            tag("b", task.task),
            f" · {task.attempts} attempts, best reward {words.number(task.best_reward)} · "
            f"{len(task.tests) + task.tests_left_out} hidden tests failed",
            Markup(" ") if nowhere else "",
            tag("span", f"{nowhere} check what is told nowhere", cls="tag nowhere") if nowhere else "",
        ]
    )
    tests = table(
        ("hidden test", "failed", "reasons", "what it checks, and where the player could read of it"),
        [
            (
                t.id,
                f"{t.failed} of {t.of}",
                ", ".join(f"{why} {n}" for why, n in t.reasons.items()),
                _clues(t),
            )
            for t in task.tests
        ],
        wide=(2, 3),
    )
    left_out = f"and {task.tests_left_out} more hidden tests" if task.tests_left_out else ""
    return fold(
        summary,
        tests if task.tests else tag("p", "No attempt was graded.", cls="note"),
        tag("p", left_out, cls="note") if left_out else "",
        "" if task.known else tag("p", "The task itself could not be had; see the notes.", cls="note"),
        *(_transcript(t) for t in task.transcripts),
    )


def _clues(test: FailedTest) -> Markup:
    if not test.clues:
        return tag("span", "–", cls="muted")
    parts = []
    for clue in test.clues:
        where = tag(
            "span", ", ".join(clue.where) or "nowhere", cls="tag told" if clue.where else "tag nowhere"
        )
        parts.append(join([f"{clue.kind} ", tag("code", clue.what), " ", where]))
    return join(parts, "<br>")


def _transcript(found: Transcript) -> Markup:
    half = len(found.steps) // 2 if found.steps_left_out else -1
    steps = []
    for n, step in enumerate(found.steps):
        if n == half:
            steps.append(tag("p", f"… {found.steps_left_out} steps left out …", cls="note"))
        number = n + 1 + (found.steps_left_out if 0 <= half <= n else 0)
        ends = f", ended by {step.truncated_by}" if step.truncated_by else ""
        steps.append(
            tag(
                "div",
                tag("div", f"step {number}{', invalid' if step.invalid else ''}{ends}", cls="at"),
                tag("p", step.said, cls="said") if step.said else "",
                tag("pre", step.action),
                tag("pre", step.observation),
                cls="step bad" if step.invalid else "step",
            )
        )
    return fold(
        join([f"{found.player}, reward {words.number(found.reward)}, ", tag("code", found.episode)]),
        *(steps or [tag("p", "No step.", cls="note")]),
        tag(
            "p", "The whole of it: ", tag("code", f"tiltyard show-episode STORE {found.episode}"), cls="note"
        ),
    )
