import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiltyard.errors import UsageError
from tiltyard.pool import Pool, load, to_dict, to_folder, to_jsonl
from tiltyard.task import Files, Limits, Metadata, Task, Test

Write = Callable[[str, "str | bytes"], Path]

STRANGE = 'a "quoted" \\ text\twith\x7f \x00 and 𝄞 é \r\n'


def tasks() -> list[Task]:
    """Tasks that use every field, and some that use hardly any."""
    source = "def f():\n    return 1\n"
    calls = Task(
        id="calls/1",
        prompt=f"{STRANGE}'''\n",
        start=Files({"lib/a.py": "x = 1\n", "raw.bin": b"\xff\x00", "win.txt": "a\r\nb"}),
        reference=Files({"lib/a.py": source}),
        hidden=(Test("t::test_a", code="def test_a(): pass\ntest_a()"), Test("free", code="\n\npass", time_s=2.5)),
        visible=(Test("t::test_a", code="def test_a():\n    pass\n\ntest_a()"),),
        protected=frozenset({"raw.bin"}),
        entry=("g", "f"),
        main="lib/a.py",
        prelude="import math\n",
        reward="all",
        limits=Limits(steps=3, test_s=0.1, memory_bytes=1 << 28),
        metadata=Metadata(
            source=STRANGE, created="2026-10-31", difficulty=0.5, license="MIT", tags=("a", STRANGE), image="sha256:x",
            python="3.11", packages=("x==1",), extra=(("mood of the day", STRANGE), ("n", "1")),
        ),
    )  # fmt: skip
    stdio = Task(
        id="stdio",
        prompt="p",
        start=Files(),
        reference=Files({"solution.py": "print(1)\n"}),
        grading="stdio",
        hidden=(
            Test(
                "b",
                stdin="1\r\n",
                stdout="x\n",
                args=("", "-a b"),
                exit_code=0,
                match="numbers",
                tolerance=0.25,
            ),
            Test("c", match="numbers", tolerance=0.25),
        ),
        visible=(Test("b", stdin="1", stdout="x", exit_code=3),),
    )
    plain = Task(
        id=".plain task",
        prompt="p",
        start=Files({"solution.py": "def f(): pass\n"}),
        reference=Files({"solution.py": source}),
        hidden=(Test("hidden/1", code="assert f() == 1"),),
        metadata=Metadata(difficulty="easy"),
    )
    return [stdio, calls, plain]


def test_json_lines_keep_everything(tmp_path: Path) -> None:
    pool = Pool("p", 1, tuple(tasks()))
    for name in ("x.jsonl", "x.jsonl.gz"):
        to_jsonl(pool, tmp_path / name)
        again = load(tmp_path / name)
        assert again.tasks == pool.tasks and again.digest == pool.digest
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.jsonl", "x.jsonl.gz"]
    data = (tmp_path / "x.jsonl.gz").read_bytes()
    to_jsonl(pool, tmp_path / "x.jsonl.gz")
    assert (tmp_path / "x.jsonl.gz").read_bytes() == data
    assert gzip.decompress(data) == (tmp_path / "x.jsonl").read_bytes()


def test_folders_keep_everything(tmp_path: Path) -> None:
    pool = Pool(STRANGE.replace("\0", ""), "v1", tuple(tasks()))
    to_folder(pool, tmp_path / "pool")
    again = load(tmp_path / "pool")
    assert again.tasks == pool.tasks and (again.name, again.version) == (pool.name, pool.version)
    for task in pool:
        to_folder(task, tmp_path / "one" / str(pool.ids.index(task.id)))
        assert load(tmp_path / "one" / str(pool.ids.index(task.id))).tasks == (task,)


def test_folders_hold_files_for_people_where_they_can(tmp_path: Path) -> None:
    to_folder(Pool("p", 1, tuple(tasks())), tmp_path / "p")
    assert sorted(p.name for p in (tmp_path / "p").iterdir()) == [
        "calls_1",
        "pool.toml",
        "stdio",
        "task_.plain_task",
    ]
    assert (tmp_path / "p/calls_1/visible/t.py").read_text() == "def test_a():\n    pass\n"
    assert (tmp_path / "p/stdio/hidden/b.args").read_bytes() == b"\n-a b\n"
    assert (
        tmp_path / "p/calls_1/hidden/tests.json"
    ).exists()  # a time limit of its own: no .py file says that


def test_the_plain_dict_comes_back_as_it_was(lesson: dict[str, Any]) -> None:
    assert to_dict(load(lesson)[0]) == lesson
    assert list(to_dict(load(lesson)[0])) == list(lesson)


def test_the_bundled_pool_keeps_its_digest(tmp_path: Path) -> None:
    pool = load("builtin")
    to_jsonl(pool, tmp_path / "b.jsonl")
    assert load(tmp_path / "b.jsonl").digest == pool.digest
    to_folder(pool, tmp_path / "b")
    assert load(tmp_path / "b").tasks == pool.tasks
    assert not list((tmp_path / "b").rglob("tests.json"))


def test_ids_that_make_one_folder_name(lesson: dict[str, Any], tmp_path: Path) -> None:
    ids = ["a/b", "a_b", "A_B", "...", "_", "x" * 300]
    pool = load([{**lesson, "id": id_} for id_ in ids])
    to_folder(pool, tmp_path / "p")
    assert load(tmp_path / "p").ids == pool.ids


def test_tasks_of_random_texts(lesson: dict[str, Any], tmp_path: Path) -> None:
    rng = random.Random(1)
    alphabet = [
        "\n",
        "\r",
        "\t",
        '"',
        "'",
        "\\",
        "\0",
        "\x1f",
        "\x7f",
        "\x85",
        "\u2028",
        "=",
        "[",
        "#",
        "é",
        "𝄞",
        "a",
        " ",
    ]
    rows = []
    for n in range(40):
        text = "x" + "".join(rng.choices(alphabet, k=rng.randrange(30)))
        test = {"id": f"i{text}", "code": f"f({text!r})"}
        rows.append(
            {**lesson, "id": str(n), "prompt": text, "stub": text, "hidden": [test], "meta": {"source": text}}
        )
    pool = load(rows)
    to_jsonl(pool, tmp_path / "x.jsonl")
    to_folder(pool, tmp_path / "x")
    assert load(tmp_path / "x.jsonl").tasks == pool.tasks
    assert load(tmp_path / "x").tasks == pool.tasks


def test_nothing_that_exists_is_overwritten(lesson: dict[str, Any], write: Write, tmp_path: Path) -> None:
    kept = write("p/notes.txt", "mine")
    for path in (kept.parent, kept):
        with pytest.raises(UsageError, match="exists; expected a new name or an empty folder"):
            to_folder(load(lesson), path)
    assert kept.read_text() == "mine"
    with pytest.raises(UsageError, match=r"can't write .*: No such file or directory"):
        to_jsonl(load(lesson), tmp_path / "no" / "x.jsonl")
    write("x.jsonl", "old")
    to_jsonl(load(lesson), tmp_path / "x.jsonl")
    assert json.loads((tmp_path / "x.jsonl").read_text())["id"] == "median"


def test_what_no_folder_can_say_is_refused(lesson: dict[str, Any], tmp_path: Path) -> None:
    task = load({**lesson, "start": {"__pycache__/x": ""}})[0]
    with pytest.raises(UsageError, match="start/__pycache__/x has a name that folders of tasks don't keep"):
        to_folder(task, tmp_path / "p")
