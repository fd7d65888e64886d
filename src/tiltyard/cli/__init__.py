"""The command line. Every command is a thin call into the room that does the work, and shows what came back.

Promises: stdout carries the result alone (with ``--json`` one JSON document, else text); progress and everything else
goes to stderr. Exit codes: 0; 1 for a result that is bad news; 2 for an error, said in one short message without a
traceback; 130 and 143 after SIGINT and SIGTERM; 141 when who read stdout went away. Rooms are imported where they are
used, so that ``--help`` and ``version`` are quick.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from tiltyard.cli import adequacy as adequacy
from tiltyard.cli import breakage as breakage
from tiltyard.cli import environments as environments
from tiltyard.cli import episodes as episodes
from tiltyard.cli import grade as grade
from tiltyard.cli import machine as machine
from tiltyard.cli import mine as mine
from tiltyard.cli import perturb as perturb
from tiltyard.cli import plan as plan
from tiltyard.cli import pools as pools
from tiltyard.cli import predictions as predictions
from tiltyard.cli import redteam as redteam
from tiltyard.cli import report as report
from tiltyard.cli import transcripts as transcripts
from tiltyard.cli.common import app
from tiltyard.errors import TiltyardError

__all__ = ["app", "main"]


def _fail(error: TiltyardError) -> NoReturn:
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(Text("error: ", style="bold red") + Text(str(error), style="red"))
    raise SystemExit(2)


def _open_streams() -> None:
    """Without this, a store would be opened as file 1 or 2 where those were closed, and be written over by messages."""
    for fd, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(fd)
        except OSError:
            while (new := os.open(os.devnull, os.O_RDWR)) < fd:
                pass
            if new != fd:
                os.dup2(new, fd)
                os.close(new)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(fd, mode, encoding="utf-8", closefd=False))


def main() -> None:
    """The entry point of ``tiltyard`` and ``python -m tiltyard``."""
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # an ASCII locale must not turn a message into a traceback
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except TiltyardError as error:
        _fail(error)
