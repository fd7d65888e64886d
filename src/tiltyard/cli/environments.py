"""The commands of environments: list, build, collect."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiltyard.cli.common import (
    Globs,
    Json,
    PoolSpec,
    Tags,
    Workers,
    app,
    chosen_pool,
    new_table,
    print_json,
    print_out,
    say,
)

if TYPE_CHECKING:
    from tiltyard.environments.keep import Prepared

GB = 1 << 30
group = typer.Typer(
    help="The Pythons and packages that tasks of repositories need: built once, used in cells.",
    no_args_is_help=True,
)
app.add_typer(group, name="environments")


@group.command("list")
def list_(as_json: Json = False) -> None:
    """What the cache of this machine holds: environments, the most recently used first, and images.

    Example: `tiltyard environments list`
    """
    from tiltyard.environments.building import all_built
    from tiltyard.environments.interpreters import pythons
    from tiltyard.images import Images, cache_folder

    found, images = all_built(), Images().list()
    if as_json:
        rows = [
            {
                "environment": one.digest,
                "python": one.version,
                "packages": list(one.environment.packages),
                "bytes": one.bytes,
                "used": one.used,
                "notes": list(one.notes),
            }
            for one in found
        ]
        pictures = [{"image": i.image, "files": i.files, "bytes": i.bytes, "used": i.used} for i in images]
        here = [{"version": ".".join(map(str, p.version)), "path": p.path} for p in pythons()]
        print_json({"cache": str(cache_folder()), "environments": rows, "images": pictures, "pythons": here})
        return
    table = new_table("environment", "python", "packages", "MB", "last used", "notes")
    for one in found:
        packages = ", ".join(one.environment.pins.values()) or "-"
        notes = "; ".join(one.notes)
        table.add_row(one.digest[:12], one.version, packages, f"{one.bytes / 1e6:.1f}", _ago(one.used), notes)
    print_out(table)
    size = sum(one.bytes for one in found)
    print_out(
        f"{len(found)} environments, {size / 1e6:.1f} MB; {len(images)} images, "
        f"{sum(i.bytes for i in images) / 1e6:.1f} MB; in {cache_folder()}"
    )
    print_out(
        f"Pythons that cells can have here: {', '.join(p.minor for p in reversed(pythons())) or 'none'}"
    )


@group.command()
def build(
    pool: PoolSpec,
    task: Globs = None,
    tag: Tags = None,
    workers: Workers = 1,
    wheels_only: Annotated[
        bool,
        typer.Option(
            "--wheels-only", help="Build nothing from source, which runs a package's code with your rights."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Build the environments that a pool's tasks need, with the network; what is there already is left alone.

    Exit status 1 if one can't be built. Started again it goes on where it was.

    Example: `tiltyard environments build pools/toolz --workers 2`
    """
    from tiltyard.environments.keep import prepare
    from tiltyard.rollout.bar import Bar
    from tiltyard.workers import Interrupted

    chosen = chosen_pool(pool, task, tag, None)
    code = 0
    try:
        results = prepare(
            chosen, workers=workers, builds=not wheels_only, progress=Bar(f"environments of {pool}")
        )
    except Interrupted as interrupted:
        results, code = interrupted.partial, interrupted.exit_code
        say("interrupted: the same command goes on")
    if as_json:
        print_json([_as_json(one) for one in results])
    else:
        _show(results, len(chosen))
    if code or any(one.outcome == "failed" for one in results):
        raise typer.Exit(code or 1)


def _as_json(one: Prepared) -> dict[str, Any]:
    return {
        "environment": one.environment.digest,
        "python": one.environment.version,
        "packages": list(one.environment.packages),
        "tasks": one.tasks,
        "outcome": one.outcome,
        "seconds": round(one.seconds, 3),
        "kind": one.kind,
        "reason": one.reason,
        "notes": list(one.notes),
    }


def _show(results: tuple[Prepared, ...], tasks: int) -> None:
    table = new_table("environment", "python", "packages", "tasks", "outcome", "s", "why, or notes")
    for one in results:
        why = f"{one.kind}: {one.reason}" if one.reason else "; ".join(one.notes)
        seconds = f"{one.seconds:.1f}" if one.outcome != "there" else "-"
        count = str(len(one.environment.packages))
        table.add_row(
            one.environment.digest[:12],
            one.environment.version,
            count,
            str(one.tasks),
            one.outcome,
            seconds,
            why,
        )
    if results:
        print_out(table)
    served = sum(one.tasks for one in results)
    failed = [one for one in results if one.outcome == "failed"]
    print_out(
        f"{len(results)} environments for {served} tasks of {tasks}; {tasks - served} tasks need none of their own"
        + (
            f"; {len(failed)} can't be built, {sum(one.tasks for one in failed)} tasks lack theirs"
            if failed
            else ""
        )
    )


@group.command()
def collect(
    max_gb: Annotated[float, typer.Option("--max-gb", metavar="N", min=0.0, help="What may be left, in GB.")],
    older_than: Annotated[
        float | None,
        typer.Option(
            "--older-than", metavar="DAYS", min=0.0, help="Also what was not used for so many days."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Take environments, images and their trees out of the cache, the least recently used first. What a living process
    uses stays; what is taken away is made again when it is needed.

    Example: `tiltyard environments collect --max-gb 5 --older-than 30`
    """
    from tiltyard.environments.keep import collect as take_away

    gone = take_away(int(max_gb * GB), older_than_s=None if older_than is None else older_than * 86400.0)
    if as_json:
        print_json(
            {
                "environments": gone.environments,
                "images": gone.images,
                "trees": gone.trees,
                "bytes": gone.bytes,
                "left": gone.left,
            }
        )
        return
    print_out(
        f"removed {gone.environments} environments, {gone.images} images and {gone.trees} trees, "
        f"{gone.bytes / 1e6:.1f} MB; {gone.left / 1e6:.1f} MB are left"
    )


def _ago(when: float) -> str:
    seconds = max(0.0, time.time() - when)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return "just now"
