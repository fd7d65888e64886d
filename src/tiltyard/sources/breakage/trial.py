"""One break tried: made, run, run again in another way, and described by what it makes of calls.

The result depends on the break and on the subject alone: not on what was tried before, nor on who tries it.
"""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tiltyard.cells.protocol import CellFileError, CellLost, Run
from tiltyard.errors import ArenaError
from tiltyard.mutate import Mutation, apply, natural, program
from tiltyard.referee.inside.suite import NOT_COLLECTED
from tiltyard.referee.inside.testrun import GONE
from tiltyard.referee.result import cell_limits
from tiltyard.sources.breakage.draw import Break, Change
from tiltyard.sources.breakage.observing import Seen, observe
from tiltyard.sources.breakage.prompt import prompt_of
from tiltyard.sources.breakage.ready import Ready, Walls, hangs, outcomes_of, with_time
from tiltyard.sources.breakage.report import Broken, Fate, Trial
from tiltyard.sources.breakage.symptoms import Symptom, of_program, symptom_of, tells
from tiltyard.task import Files, Test
from tiltyard.verdict import Outcome

LOOKED_AT = 5
"""Failing tests of which a symptom is made, at most."""
SHOWN = 3
NOT_LOADED = (NOT_COLLECTED, "the solution did not load", f"{GONE} while loading")
MODEL = "model"


class _FellOut(Exception):
    def __init__(self, fate: Fate, reason: str = "") -> None:
        super().__init__(fate)
        self.fate, self.reason = fate, reason


@dataclass
class Bench:
    """What a worker keeps: the walls, the subjects, and how the working code was seen to behave."""

    walls: Walls
    ready: Sequence[Ready]
    seed: int

    def __post_init__(self) -> None:
        self._seen: dict[tuple[int, int], tuple[Seen | None, Seen | None]] = {}

    def try_break(self, number: int, one: Break) -> Trial:
        """Try a break of the subject of that number."""
        begun = time.monotonic()
        name = self.ready[number].subject.name
        try:
            broken = self._broken(number, one)
            trial = Trial(name, "kept", one.kind, broken)
        except _FellOut as out:
            trial = Trial(name, out.fate, one.kind, reason=out.reason)
        except ArenaError as error:
            trial = Trial(name, "void", one.kind, reason=str(error))
        return replace(trial, seconds=time.monotonic() - begun)

    def _broken(self, number: int, one: Break) -> Broken:
        ready = self.ready[number]
        made = [_natural(ready, change) for change in one.changes]
        changed = _applied(ready, made)
        order = sorted(one.tests)
        if len(made) > 1:
            for change in made:
                files = Files(_applied(ready, [change])).over(ready.task.start)
                if all(o.passed for o in self._run(ready, files, sorted(change.tests)).values()):
                    raise _FellOut("one does nothing")
        files = Files(changed).over(ready.task.start)
        outcomes = self._run(ready, files, order)
        failing = [i for i, o in outcomes.items() if not o.passed]
        if not failing:
            raise _FellOut("not noticed")
        if len(failing) == len(ready.task.hidden):
            raise _FellOut("all fail")
        again = outcomes_of(self.walls(1), ready.task, files, order[::-1])
        if hangs(again):  # on a busy machine, perhaps
            again = outcomes_of(self.walls(1), ready.task, files, order[::-1])
        if hangs(again) or any(_said(again[i]) != _said(o) for i, o in outcomes.items()):
            raise _FellOut("unstable")
        symptoms = self._symptoms(number, made, files, failing)
        if not symptoms:
            raise _FellOut("nothing to tell")
        return _described(ready, self.seed, made, changed, outcomes, symptoms)

    def _run(self, ready: Ready, files: Files, order: list[int]) -> Mapping[int, Outcome]:
        outcomes = outcomes_of(self.walls(0), ready.task, files, order)
        if hangs(outcomes):  # once may be chance
            outcomes = outcomes_of(self.walls(0), ready.task, files, order)
        if any(o.reason.startswith(NOT_LOADED) for o in outcomes.values()):
            raise _FellOut("does not load")
        if hangs(outcomes) or any(o.reason.startswith(GONE) for o in outcomes.values()):
            raise _FellOut("hangs")
        return outcomes

    # -- symptoms --------------------------------------------------------------------------------------------------

    def _symptoms(
        self, number: int, made: Sequence[Change], files: Files, failing: Sequence[int]
    ) -> list[Symptom]:
        """Of a part of the failing tests, the clearest ones."""
        ready = self.ready[number]
        rng = random.Random(f"{self.seed} {ready.subject.task.digest} {failing}")
        looked = rng.sample(list(failing), min(LOOKED_AT, len(failing)))
        forbidden = _forbidden(ready, made, failing)
        found: dict[str, Symptom] = {}
        most = min(SHOWN, max(1, len(failing) // 2))
        for index in looked:
            if sum(not one.odd for one in found.values()) >= most:
                break
            one = self._symptom(number, index, files)
            if one is not None and not tells(one, forbidden):
                found.setdefault(json.dumps([one.lines, one.got]), one)
        clear = [one for one in found.values() if not one.odd] or list(found.values())
        return sorted(clear, key=lambda one: one.rank)[:most]

    def _symptom(self, number: int, index: int, files: Files) -> Symptom | None:
        ready = self.ready[number]
        if ready.task.grading == "stdio":
            return self._of_program(ready, ready.task.hidden[index], files)
        if (number, index) not in self._seen:
            start = ready.task.start
            self._seen[number, index] = (
                self._look(ready, start, index, 0),
                self._look(ready, start, index, 1),
            )
        right, again = self._seen[number, index]
        wrong = self._look(ready, files, index, 0)
        if right is None or again is None or wrong is None:
            return None
        return symptom_of(right.trace, again.trace, wrong.trace)

    def _look(self, ready: Ready, files: Files, index: int, hash_seed: int) -> Seen | None:
        seconds = 2 * (ready.task.hidden[index].time_s or ready.task.limits.test_s)
        task = with_time(ready.task, seconds)
        seen = observe(
            self.walls(hash_seed), task, files, [index], "calls", ready.subject.targets, seconds + 30.0
        )
        return seen.get(index)

    def _of_program(self, ready: Ready, test: Test, files: Files) -> Symptom | None:
        run = Run(
            ("python", ready.task.main, *test.args),
            test.stdin.encode(),
            test.time_s or ready.task.limits.test_s,
        )
        cell = self.walls(0).open(files, cell_limits(ready.task.limits))
        try:
            result = cell.run(run)
        except (CellFileError, CellLost):
            return None
        finally:
            cell.close()
        said = result.stderr.decode(errors="replace").strip().splitlines()
        got = _ended(result.stdout.decode(errors="replace"), result.rc, said[-1] if said else "")
        return of_program(test.stdin, test.args, got, _ended(test.stdout, test.exit_code or 0, ""))


def _ended(stdout: str, status: int, said: str) -> str:
    ending = f"(exit status {status}{': ' + said if said else ''})" if status else ""
    return "\n".join(part for part in (stdout.rstrip("\n"), ending) if part) or "(nothing is printed)"


def _said(outcome: Outcome) -> tuple[bool, str]:
    return outcome.passed, outcome.reason


def _natural(ready: Ready, change: Change) -> Change:
    source = ready.task.start[change.path].decode()
    before = program(source)
    if change.mutation.operator == MODEL:
        made: Mutation | None = change.mutation
    else:
        if program(apply(source, [change.mutation])) in (None, before):
            raise _FellOut("no change")
        made = natural(source, change.mutation)
    if made is None:
        raise _FellOut("looks injected")
    if program(apply(source, [made])) in (None, before):
        raise _FellOut("no change")
    return replace(change, mutation=made)


def _applied(ready: Ready, changes: Sequence[Change]) -> dict[str, bytes]:
    by_path: dict[str, list[Mutation]] = {}
    for change in changes:
        by_path.setdefault(change.path, []).append(change.mutation)
    out = {}
    for path, mutations in by_path.items():
        text = apply(ready.task.start[path].decode(), mutations)
        if program(text) is None:
            raise _FellOut("no change", "the changes together do not compile")
        out[path] = text.encode()
    return out


def _forbidden(ready: Ready, made: Sequence[Change], failing: Sequence[int]) -> list[str]:
    """What a report may not say: names of the tests, private names and paths of the change."""
    words = [ready.task.hidden[i].id.split("[")[0].rpartition("::")[2] for i in failing]
    words += [c.path for c in made if "/" in c.path]
    for change in made:
        words += [part for part in change.mutation.scope.split(".") if part[:1] == "_" and part[:2] != "__"]
    return [word for word in words if len(word) > 2]


def _described(
    ready: Ready, seed: int, made: Sequence[Change], changed: Mapping[str, bytes], outcomes: Mapping[int, Outcome],
    symptoms: Sequence[Symptom],
) -> Broken:  # fmt: skip
    hidden = ready.task.hidden
    failing = [i for i, o in outcomes.items() if not o.passed]
    diff = "\n".join(f"{c.path} {c.mutation.start} {c.mutation.end} {c.mutation.text}" for c in sorted(made))
    mark = hashlib.sha256(f"{ready.subject.task.digest}\n{diff}".encode()).hexdigest()
    rng = random.Random(f"{seed} {mark}")
    distance = min((_distance(ready, change, failing) for change in made), default=0)
    lines = sum(max(1, c.mutation.before.count("\n"), c.mutation.text.count("\n")) for c in made)
    name = f"`{ready.subject.name}`" if ready.subject.own_suite else "this code"
    behaviour = [[hidden[i].id, outcomes[i].reason] for i in sorted(failing)]
    places = sorted({(c.path, c.mutation.scope) for c in made})
    return Broken(
        subject=ready.subject.name,
        mark=mark[:10],
        changed=Files(changed),
        failing=tuple(hidden[i].id for i in sorted(failing)),
        passing=tuple(hidden[i].id for i in sorted(outcomes) if outcomes[i].passed),
        prompt=prompt_of(name, symptoms, ready.subject.described, len(made), rng),
        likeness=hashlib.sha256(
            json.dumps([ready.subject.task.digest, behaviour, places]).encode()
        ).hexdigest(),
        kinds=tuple(c.mutation.operator for c in made),
        distance=distance,
        lines=lines,
    )


def _distance(ready: Ready, change: Change, failing: Sequence[int]) -> int:
    """How many functions lie between a failing test and the change, where they are nearest."""
    of = [(line, depths) for (path, line), depths in ready.depths.items() if path == change.path]
    above = [(line, depths) for line, depths in of if line <= change.mutation.line]
    if not above:
        return 0
    _, depths = max(above, key=lambda pair: pair[0])
    return min((depths[i] for i in failing if i in depths), default=0)
