"""``tiltyard environments``: what is there, building for a pool, taking away."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from typer.testing import CliRunner

from tiltyard.cli import app

Make = Callable[..., Path]


def tiltyard(*args: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["environments", *args])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout


def pool(folder: Path) -> str:
    rows = [
        {
            "id": f"task{n}",
            "prompt": "p",
            "start": {"solution.py": ""},
            "hidden": [{"id": "a", "code": "assert x"}],
            "reference": {"solution.py": "x = 1"},
            "meta": {"packages": packages},
        }
        for n, packages in enumerate((["demo==1.0"], ["demo==1.0"], [], ["nosuch==1.0"]))
    ]
    file = folder / "pool.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(file)


def test_build_list_collect(make_wheel: Make, tmp_path: Path) -> None:
    make_wheel("demo", "1.0", {"demo.py": ""})
    tasks = pool(tmp_path)
    code, out = tiltyard("build", tasks, "--json")
    rows = {tuple(row["packages"]): row for row in json.loads(out)}
    assert code == 1, "one can't be built"
    assert rows["demo==1.0",]["outcome"] == "built" and rows["demo==1.0",]["tasks"] == 2
    assert rows["nosuch==1.0",]["kind"] == "package" and "nosuch" in rows["nosuch==1.0",]["reason"]
    code, out = tiltyard("build", tasks, "--task", "task0")
    assert code == 0 and "there" in out and "1 environments for 1 tasks of 1" in out
    code, out = tiltyard("build", tasks)
    assert (
        code == 1
        and "1 can't be built, 1 tasks lack theirs" in out
        and "1 tasks need none of their own" in out
    )
    code, out = tiltyard("list")
    assert code == 0 and "demo==1.0" in out and "1 environments" in out
    code, out = tiltyard("list", "--json")
    assert [row["packages"] for row in json.loads(out)["environments"]] == [["demo==1.0"]]
    code, out = tiltyard("collect", "--max-gb", "1")
    assert code == 0 and "removed 0 environments" in out
    # this process uses the one that it has built: it stays, and says that it does
    code, out = tiltyard("collect", "--max-gb", "0", "--json")
    assert code == 0 and json.loads(out)["environments"] == 0 and json.loads(out)["left"] > 0
