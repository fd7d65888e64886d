"""A task that is about a repository: its files at one commit, a suite of which some tests fail before the fix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tiltyard.pool.nodeids import in_order
from tiltyard.task import Files, Limits, Metadata, Task, Test

REPOSITORY_LIMITS = Limits(
    steps=100,
    tokens=1_000_000,
    episode_s=3600.0,
    run_s=120.0,
    load_s=60.0,
    test_s=30.0,
    grade_s=900.0,
    cpu_s=600.0,
    memory_bytes=2 << 30,
    processes=128,
    open_files=1024,
    disk_bytes=512 << 20,
    disk_files=40_000,
)
"""What a repository's suite and a shell in it need, where a task says nothing else."""
MAX_VISIBLE = 200
VERSION_CONTROL = (".git", ".hg", ".svn")


def repository_task(
    id: str,
    prompt: str,
    start: Files,
    suite: Mapping[str, bytes],
    fail_to_pass: Sequence[str],
    pass_to_pass: Sequence[str],
    reference: Files,
    *,
    metadata: Metadata,
    visible: Iterable[str] | None = None,
    pythonpath: tuple[str, ...] = (),
    plugins: tuple[str, ...] = (),
    limits: Limits = REPOSITORY_LIMITS,
) -> Task:
    """The task. ``suite`` are the trusted test files, ``reference`` what the fix changes (and takes away); ``visible``
    the start's test files that the player may run (None: those of the suite that the start has). Ids are pytest's node
    ids. Raises TaskError."""
    kept = [name for name in pass_to_pass if name not in {*fail_to_pass}]
    seen = [path for path in suite if path in start and _is_tests(path)] if visible is None else list(visible)
    homes = {name.partition("[")[0].partition("::")[0] for name in (*fail_to_pass, *kept)}
    trusted = {path: suite[path] if path in suite else start.get(path, b"") for path in homes}
    return Task(
        id=id,
        prompt=prompt,
        start=start,
        hidden=tuple(Test(name) for name in in_order([*fail_to_pass, *kept], trusted)),
        pass_to_pass=tuple(dict.fromkeys(kept)),
        reference=reference,
        suite=Files(dict(suite)),
        visible=tuple(Test(path) for path in dict.fromkeys(seen[:MAX_VISIBLE])),
        grading="pytest",
        reward="all",
        limits=limits,
        metadata=metadata,
        pythonpath=pythonpath,
        plugins=plugins,
        shell=True,
    )


def without_history(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files without any version control's: what is to come must not lie in a workspace."""
    return {path: data for path, data in files.items() if not is_history(path)}


def is_history(path: str) -> bool:
    """Whether a path lies in a version control's folder."""
    return bool({*VERSION_CONTROL} & {*path.split("/")})


def _is_tests(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.endswith(".py") and (name.startswith("test") or name.endswith(("_test.py", "_tests.py")))
