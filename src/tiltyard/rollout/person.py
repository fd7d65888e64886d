"""A person as a player: reads commands from a terminal or a pipe, shows observations, returns actions.

Keeps to the Player protocol, so that a person's episode is played and recorded like any other.
"""

from __future__ import annotations

import inspect
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from tiltyard.cells import settled_name
from tiltyard.env import CodeEnv
from tiltyard.players import run_episode
from tiltyard.pool import Pool
from tiltyard.records import EpisodeRecord, Store
from tiltyard.rollout.play import Stage, record_of
from tiltyard.rollout.slots import Slot
from tiltyard.task import RewardRule, Task

HELP = """\
view PATH [FIRST [LAST]]   show a file, or some lines of it
list                       list the files
write PATH                 write a file: in $EDITOR on a terminal, else the lines up to one with only a dot
replace PATH               replace text: the old lines up to a dot, then the new lines up to a dot
test                       run the visible tests
submit                     hand in and end the episode
prompt                     show the task again
{...}                      any action as JSON
quit                       leave without handing in"""

Action = dict[str, Any]


class Left(Exception):
    """The person left before the end of the episode."""


class Person:
    """Asks ``source`` (stdin) and writes to ``sink`` (stderr, for stdout carries the result). Raises Left at its end."""

    name = "person"

    def __init__(self, source: TextIO | None = None, sink: TextIO | None = None) -> None:
        self.source = source if source is not None else sys.stdin
        self.sink = sink if sink is not None else sys.stderr
        self.interactive = self.source.isatty()
        self.files: dict[str, str] = {}
        self.first = ""
        self.commands: dict[str, Callable[..., Action | None]] = {
            "view": self._view,
            "list": lambda: {"tool": "list_files"},
            "write": self._write,
            "replace": self._replace,
            "test": lambda: {"tool": "run_tests"},
            "submit": lambda: {"tool": "submit"},
            "prompt": self._prompt,
            "help": self._help,
            "quit": self._quit,
        }

    def begin(self, task: Task, seed: int | None) -> None:
        self.first = ""
        self.files = {path: data.decode("utf-8", "replace") for path, data in task.start.items()}

    def __call__(self, observation: str, rng: object) -> Action | str:
        if not self.first:
            self.first = observation
            observation += "\n\n" + HELP
        self._say(observation)
        while True:
            line = self._line("> ").strip()
            if line.startswith("{"):
                return line
            action = self._command(line)
            if action is not None:
                return action

    def _command(self, line: str) -> Action | None:
        try:
            words = shlex.split(line)
        except ValueError as error:
            self._say(f"{error}; quote it differently")
            return None
        if not words:
            return None
        name, *arguments = words
        if name not in self.commands:
            self._say(f"there is no command {name!r}; the commands are {', '.join(self.commands)}")
            return None
        command = self.commands[name]
        try:
            inspect.signature(command).bind(*arguments)
            return command(*arguments)
        except (TypeError, ValueError):
            usage = next((row for row in HELP.split("\n") if row.split()[0] == name), name)
            self._say(f"usage: {usage}")
            return None

    # -- commands that take something ------------------------------------------------------------------------------

    def _view(self, path: str, first: str | None = None, last: str | None = None) -> Action:
        action: Action = {"tool": "view_file", "path": path}
        if first is not None:
            action["start_line"] = int(first)
        if last is not None:
            action["end_line"] = int(last)
        return action

    def _write(self, path: str) -> Action | None:
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        if self.interactive and editor:
            content = self._edited(editor, path)
            if content is None:
                return None
        else:
            content = self._block(f"lines of {path}, then a dot")
        self.files[path] = content
        return {"tool": "write_file", "path": path, "content": content}

    def _edited(self, editor: str, path: str) -> str | None:
        with tempfile.TemporaryDirectory(prefix="tiltyard-play-") as folder:
            file = Path(folder, Path(path).name or "file")
            file.write_text(self.files.get(path, ""), encoding="utf-8")
            try:
                code = subprocess.run([*shlex.split(editor), str(file)], check=False).returncode
                content = file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                self._say(f"the editor {editor!r} did not work: {error}")
                return None
        if code != 0:
            self._say(f"the editor ended with status {code}; nothing was written")
            return None
        return content

    def _replace(self, path: str) -> Action:
        old = self._block("the old text, then a dot").removesuffix("\n")
        new = self._block("the new text, then a dot").removesuffix("\n")
        if self.files.get(path, "").count(old) == 1:
            self.files[path] = self.files[path].replace(old, new)
        return {"tool": "replace_text", "path": path, "old": old, "new": new}

    def _prompt(self) -> None:
        self._say(self.first)

    def _help(self) -> None:
        self._say(HELP)

    def _quit(self) -> Action:
        raise Left("you left")

    # -- reading and showing ---------------------------------------------------------------------------------------

    def _block(self, what: str) -> str:
        self._say(f"({what})")
        lines = []
        while (line := self._line("")) != ".":
            lines.append(line + "\n")
        return "".join(lines)

    def _line(self, prompt: str) -> str:
        if self.interactive and prompt:
            self.sink.write(prompt)
            self.sink.flush()
        line = self.source.readline()
        if not line:
            raise Left("the input ended")
        return line.removesuffix("\n")

    def _say(self, text: str) -> None:
        self.sink.write(text + "\n")
        self.sink.flush()


def play_as_person(
    pool: Pool,
    task: str,
    seed: int,
    wall: str,
    reward: RewardRule | None,
    pool_spec: str,
    store: str | os.PathLike[str] | None = None,
    person: Person | None = None,
) -> EpisodeRecord:
    """One episode of a person on one task; its record, stored where ``store`` is given. Raises Left."""
    person = person if person is not None else Person()
    if store is not None:
        Store(store).close()  # one that can't be used is found before the game, not after it
    settings = {"reward": reward} if reward else {}
    wall = settled_name(wall)
    stage = Stage(pool, person, wall, reward, person.name, wall, pool_spec, None, "", settings)
    slot = Slot(0, pool[task].id, 0, 0, seed)
    blank = stage.blank(slot, "it did not begin")
    env = CodeEnv(pool, wall=wall, reward=reward)
    begun = time.monotonic()
    try:
        run_episode(env, person, seed, task_id=task)
        record = replace(record_of(env.episode, blank), seconds=time.monotonic() - begun)
    finally:
        env.close()
    if store is not None:
        with Store(store) as opened:
            record = replace(record, id=opened.add(record))
    return record
