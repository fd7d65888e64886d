"""From a commit and what was found of it to the task: prompt, metadata, limits; and one task of each kind only.

A task whose message says too little has the tag ``needs_prompt``, the reason in its metadata, and a prompt that only says
where it is from. Nothing is run here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from tiltyard.git import Repository
from tiltyard.images import Images
from tiltyard.pool.repository import REPOSITORY_LIMITS, repository_task
from tiltyard.sources.mine.dig import Entry, as_built
from tiltyard.sources.mine.history import Candidate
from tiltyard.sources.mine.material import Material, draft, take_apart
from tiltyard.task import Metadata, Task

NEEDS_PROMPT = "needs_prompt"
MAX_NAMES = 12
SAME_TESTS = "the same fix of the same tests as another task"
_FOOT = (
    "\n\nThat is to be done in the code of the repository {name}, which lies in the current folder. Hidden tests decide; "
    "those that pass now must still pass."
)
_NAMED = "\n\nThe hidden tests use names that are not there yet: {names}."
_NOTHING = (
    "The repository {name} lies in the current folder. What is to be done in it is still to be written here: the "
    "commit that this task is made of does not say it ({why})."
)


def finish(repository: Repository, name: str, candidate: Candidate, entry: Entry, images: Images) -> Task:
    """The task of a commit. GitError: the repository no longer has it. ArenaError: its image can't be kept."""
    material = take_apart(repository, candidate)
    bare = draft(name, candidate, material)
    made = repository_task(
        bare.id,
        _prompt(name, material),
        images.add(as_built(bare)),
        material.suite,
        entry.fail_to_pass,
        entry.pass_to_pass,
        material.reference,
        metadata=_metadata(repository, name, candidate, entry, material),
        plugins=entry.plugins,
        limits=REPOSITORY_LIMITS,
    )
    return replace(made, way=entry.way)


def needs_prompt(task: Task) -> bool:
    """Whether somebody has still to write what is to be done."""
    return NEEDS_PROMPT in task.metadata.tags


def _prompt(name: str, material: Material) -> str:
    said = material.said
    if said.why:
        return _NOTHING.format(name=name, why=said.why)
    unsaid = [
        word for word in material.new_names if not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", said.text)
    ]
    named = _NAMED.format(names=", ".join(f"`{word}`" for word in unsaid[:MAX_NAMES])) if unsaid else ""
    return said.text + named + _FOOT.format(name=name)


def _metadata(
    repository: Repository, name: str, candidate: Candidate, entry: Entry, material: Material
) -> Metadata:
    said = material.said
    facts = {
        "commit": candidate.sha,
        "base_commit": candidate.base,
        "commit_date": candidate.commit_date,
        "author_date": candidate.author_date,
        "upstream": " ".join(said.upstream),
        "merge": "yes" if candidate.is_merge else "",
        "source_lines": str(candidate.lines),
        "needs_prompt": said.why,
        "left_out_of_prompt": "; ".join(said.leaks),
        "flaky": " ".join(entry.flaky),
        "needs_order": " ".join(entry.ordered),
        "message": candidate.message if said.why else "",
    }
    tags = ["repository", "mined"]
    tags += ["new_names"] if entry.unloaded else []
    tags += [NEEDS_PROMPT] if said.why else []
    return Metadata(
        source=name,
        created=candidate.commit_date[:10],
        license=material.license,
        tags=tuple(tags),
        python=entry.python,
        packages=entry.packages,
        extra=tuple((key, value) for key, value in facts.items() if value),
    )


def once_each(tasks: Iterable[Task]) -> tuple[list[Task], list[Task]]:
    """Tasks that differ in what they ask, oldest kept, in their order; and those that another one repeats: the same tests
    must pass, and the same reference makes them."""
    chosen: dict[tuple[object, ...], Task] = {}
    repeated: list[Task] = []
    given = list(tasks)
    for task in reversed(given):
        mark = (tuple(sorted(task.fail_to_pass)), task.reference)
        if mark in chosen:
            repeated.append(task)
        else:
            chosen[mark] = task
    kept = {task.id for task in chosen.values()}
    return [task for task in given if task.id in kept], repeated
