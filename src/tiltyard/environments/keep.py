"""The environments of many tasks at once: built ahead, listed, and taken away by size and age.

``collect`` looks at the whole cache: environments, and images with their trees. What was used longest ago goes first;
what a living process uses stays. Everything that is taken away can be made again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from tiltyard.environments.building import Built, about, all_built, build, home, is_built, remove
from tiltyard.environments.model import BuildError, Environment, environment_of
from tiltyard.errors import ArenaError
from tiltyard.images import Images, Kept
from tiltyard.task import Task
from tiltyard.workers import Interrupted, Progress

UNUSED_S = 7 * 86400.0
"""How long a list of pins that was worked out is kept without being used."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """How it went with one environment of a pool: ``outcome`` is ``built``, ``there`` (it was), or ``failed`` with the kind
    of reason and the words of who refused. ``tasks``: how many need it."""

    environment: Environment
    tasks: int
    outcome: str
    seconds: float = 0.0
    kind: str = ""
    reason: str = ""
    notes: tuple[str, ...] = ()
    reward: None = None


@dataclass(frozen=True, slots=True)
class Removed:
    """What ``collect`` took away, and what is left. Sizes in bytes."""

    environments: int
    images: int
    trees: int
    bytes: int
    left: int


def environments_of(tasks: Iterable[Task]) -> dict[Environment, int]:
    """The environments that these tasks need, with the number of tasks of each, the most needed first."""
    counts: dict[Environment, int] = {}
    for task in tasks:
        environment = environment_of(task)
        if environment is not None:
            counts[environment] = counts.get(environment, 0) + 1
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0].digest)))


def prepare(
    tasks: Iterable[Task], *, workers: int = 1, builds: bool = True, progress: Progress | None = None
) -> tuple[Prepared, ...]:
    """Build what these tasks need and the cache does not have, ``workers`` at a time. One that can't be built is among
    the results and stops no other. Raises ``workers.Interrupted`` with the results so far on Ctrl-C."""
    counts = environments_of(tasks)
    done: list[Prepared] = []
    if progress is not None:
        progress.begin(len(counts))
    pool = ThreadPoolExecutor(max(1, workers), thread_name_prefix="environment")
    try:
        jobs = [pool.submit(_prepare, environment, count, builds) for environment, count in counts.items()]
        for one in _as_they_end(jobs):
            done.append(one)
            if progress is not None:
                progress.advance(one)
    except KeyboardInterrupt:
        pool.shutdown(wait=True, cancel_futures=True)  # what is being built ends, or is thrown away next time
        raise Interrupted(tuple(done), None) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        if progress is not None:
            progress.end()
    return tuple(done)


def _as_they_end(jobs: list[Future[Prepared]]) -> Iterator[Prepared]:
    for job in as_completed(jobs):
        try:
            yield job.result()
        except CancelledError:
            continue


def _prepare(environment: Environment, tasks: int, builds: bool) -> Prepared:
    if is_built(environment):
        return Prepared(environment, tasks, "there", notes=_notes(environment))
    started = time.monotonic()
    try:
        build(environment, builds=builds)
    except BuildError as error:
        return Prepared(environment, tasks, "failed", time.monotonic() - started, error.kind, str(error))
    except ArenaError as error:
        return Prepared(environment, tasks, "failed", time.monotonic() - started, "other", str(error))
    return Prepared(environment, tasks, "built", time.monotonic() - started, notes=_notes(environment))


def _notes(environment: Environment) -> tuple[str, ...]:
    found = about(environment)
    return found.notes if found is not None else ()


def collect(
    max_bytes: int, *, older_than_s: float | None = None, now: Callable[[], float] = time.time
) -> Removed:
    """Take away what was used longest ago until environments, images and trees of the cache have at most
    ``max_bytes`` together, and whatever was not used for ``older_than_s`` seconds. What cannot be taken away, for a process
    uses it, counts."""
    store = Images()
    images = {one.image: one for one in store.list()}
    everything: list[Built | Kept] = [*all_built(), *images.values()]
    oldest = now() - older_than_s if older_than_s is not None else float("-inf")
    total, freed, environments = 0, 0, 0
    kept_images: list[str] = []
    for one in sorted(everything, key=lambda one: -one.used):
        size = one.bytes if isinstance(one, Built) else 2 * one.bytes  # an image, and its tree
        keep = total + size <= max_bytes and one.used >= oldest
        if isinstance(one, Built) and not keep and remove(one.digest):
            environments, freed = environments + 1, freed + one.bytes
            continue
        total += size if keep or isinstance(one, Built) else 0
        if keep and isinstance(one, Kept):
            kept_images.append(one.image)
    gone = store.collect(0, keep=kept_images) if len(kept_images) < len(images) else None
    _forget_old_pins(now() - max(UNUSED_S, older_than_s or 0.0))
    if gone is None:
        return Removed(environments, 0, 0, freed, total)
    return Removed(environments, gone.images, gone.trees, freed + gone.bytes, total)


def _forget_old_pins(before: float) -> None:
    for file in (home() / "resolved").glob("*.json"):
        try:
            if file.stat().st_mtime < before:
                file.unlink()
        except OSError:
            continue
