"""The progress bar, on stderr: how many of how many, the rate, the time left, and what came out so far.

Drawn by the caller's thread only: a thread that draws would hold locks while worker processes are forked.
"""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

REDRAW_S = 0.1


class Bar:
    """A :class:`tiltyard.workers.Progress`. Draws nothing where stderr is no terminal.

    It takes results of runs (mean reward so far, voids) and of validations (fit, unfit, void).
    """

    def __init__(self, what: str, console: Console | None = None) -> None:
        self.what = what
        self.console = console if console is not None else Console(stderr=True)
        self.bar: Progress | None = None
        self.counts: dict[str, int] = {}
        self.sum = 0.0
        self.drawn = 0.0
        self.noted = ""

    def begin(self, total: int) -> None:
        if not self.console.is_terminal:
            return
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[so_far]}"),
            console=self.console,
            auto_refresh=False,
            transient=True,
        )
        self.begun = time.monotonic()
        self.bar.start()
        self.task = self.bar.add_task(self.what, total=total, rate="", so_far="")
        self.bar.refresh()

    def advance(self, result: Any) -> None:
        kind = getattr(result, "outcome", None)
        if kind is None:
            kind = "void" if result.reward is None else "played"
            self.sum += result.reward or 0.0
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if self.bar is None:
            return
        self.bar.advance(self.task)
        self._draw()

    def note(self, text: str) -> None:
        """What else is worth showing, such as requests that are tried again; it stands until the next note."""
        self.noted = text
        self._draw()

    def _draw(self) -> None:
        if self.bar is not None and time.monotonic() - self.drawn > REDRAW_S:
            done = sum(self.counts.values())
            rate = f"{done / max(time.monotonic() - self.begun, 1e-9):.1f}/s"
            self.bar.update(self.task, rate=rate, so_far=self.so_far())
            self.bar.refresh()
            self.drawn = time.monotonic()

    def so_far(self) -> str:
        """``mean 0.972, void 1`` or ``fit 12, unfit 1``."""
        parts = []
        if (played := self.counts.get("played")) is not None:
            parts.append(f"mean {self.sum / played:.3f}")
        parts += [f"{kind} {n}" for kind, n in self.counts.items() if kind != "played"]
        parts += [self.noted] if self.noted else []
        return ", ".join(parts)

    def end(self) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None
