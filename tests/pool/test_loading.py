import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiltyard.errors import TaskError, UsageError
from tiltyard.pool import load, load_lenient

Write = Callable[[str, "str | bytes"], Path]


def test_the_bundled_pool_is_well_formed() -> None:
    pool = load("builtin")
    assert pool.name == "builtin"
    assert isinstance(pool.version, int) and pool.version >= 1
    assert len(pool) >= 40
    assert {"median", "rle_encode", "roman_to_int", "merge_intervals", "is_balanced_brackets"} <= set(
        pool.ids
    )
    assert load("builtin").digest == pool.digest
    assert all(task.metadata.source and task.metadata.created and task.metadata.tags for task in pool)


def test_lists_hold_dicts_and_tasks_and_single_ones_are_pools_too(lesson: dict[str, Any]) -> None:
    task = load(lesson)[0]
    pool = load([task, {**lesson, "id": "other"}])
    assert pool.ids == ("median", "other")
    assert load(task).ids == ("median",)
    assert load(pool) is not None and load(pool).tasks == pool.tasks
    assert load(iter([lesson])).ids == ("median",)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("buildin", "did you mean 'builtin'"),
        ("humanevl:rows.jsonl", "did you mean 'humaneval'"),
        ("mbbp:rows.jsonl", "did you mean 'mbpp'"),
        ("humaneval:", "names no file; expected humaneval:FILE"),
        ("humaneval:/no/such/file", "no such file or folder: /no/such/file"),
        ("no/such/folder", "no such file or folder: no/such/folder"),
        ("rows.jsonl", "no such file or folder: rows.jsonl"),
        (
            "xyzzy",
            "'xyzzy' names no pool, .*'builtin', 'humaneval:FILE', .*'mbpp:FILE', .*'exercism:DIR', a .jsonl file",
        ),
        ("", "names no pool"),
        ("x" * 5000, "names no pool"),
        ("humaneval:" + "x" * 5000, "no such file or folder"),
        ("x/" * 5000, "no such file or folder"),
        ("~nosuchuser/tasks", "no such file or folder"),
        (3, "3 .int. names no pool"),
        (b"builtin", "names no pool"),
        ([], "has no task in it"),
    ],
)
def test_a_spec_that_names_no_pool_says_what_does(spec: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load(spec)


def test_an_empty_file_and_an_empty_folder(write: Write) -> None:
    with pytest.raises(UsageError, match="has no row in it"):
        load(write("rows.jsonl", "\n\n"))
    with pytest.raises(UsageError, match="has no task folder in it"):
        load(write("pool/README.md", "nothing yet").parent)


def test_the_kind_is_found_by_the_fields_not_by_the_name(lesson: dict[str, Any], write: Write) -> None:
    path = write("humaneval.jsonl", json.dumps(lesson))
    assert load(path).ids == ("median",)
    with pytest.raises(UsageError, match=r"holds rows of tasks; expected humaneval or humaneval\+"):
        load(f"humaneval:{path}")
    row = {
        "task_id": 1,
        "text": "Add.",
        "code": "def add(a, b):\n  return a + b\n",
        "test_list": ["assert add(1, 2) == 3"],
    }
    other = write("own.jsonl", json.dumps(row))
    assert load(other).name == load(f"mbpp:{other}").name == "mbpp"
    with pytest.raises(UsageError, match=f"holds rows of mbpp; expected humaneval or .*; use mbpp:{other}"):
        load(f"humaneval:{other}")
    with pytest.raises(UsageError, match="is a folder; expected the file"):
        load(f"mbpp:{path.parent}")


def test_a_row_of_another_kind_among_the_right_ones_is_named(write: Write) -> None:
    row = {
        "task_id": 1,
        "text": "Add.",
        "code": "def add(a, b):\n  return a + b\n",
        "test_list": ["assert add(1, 2) == 3"],
    }
    path = write("rows.jsonl", f"{json.dumps(row)}\n{json.dumps({'what': 'else'})}\n")
    pool, problems = load_lenient(f"mbpp:{path}")
    assert pool.ids == ("Mbpp/1",)
    assert [str(p) for p in problems] == [
        f"{path}:2: found a row with the keys what; expected a row of mbpp+ or mbpp"
    ]
    with pytest.raises(TaskError):
        load(f"mbpp:{path}", tasks=["Mbpp/1"])


@pytest.mark.parametrize("spec", ["{}", "humaneval:{}"])
def test_what_is_no_regular_file_is_refused_and_not_waited_for(spec: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    for path in (tmp_path / "pipe.jsonl", "/dev/zero"):
        with pytest.raises(UsageError, match="expected a regular file"):
            load(spec.format(path))


def test_a_published_file_without_one_good_row_says_what_is_wrong(write: Write) -> None:
    path = write("HumanEval.jsonl", b"\xd4\x00\n")
    with pytest.raises(TaskError, match="not UTF-8"):
        load(f"humaneval:{path}")


@pytest.mark.parametrize("id", ["a\u2028b", "a\u202eb", "\ud800", " a", "a ", "a\x7f"])
def test_an_id_that_a_list_of_ids_would_lose_is_refused(id: str, lesson: dict[str, Any]) -> None:
    with pytest.raises(TaskError, match="printable"):
        load([{**lesson, "id": id}])


@pytest.mark.parametrize(
    "change", [{"prompt": "x\ud800"}, {"meta": {"source": "\ud800"}}, {"tags": ["\udfff"]}]
)
def test_text_that_nobody_could_send_or_store_is_refused(
    change: dict[str, Any], lesson: dict[str, Any]
) -> None:
    with pytest.raises(TaskError, match="lone surrogates"):
        load([{**lesson, **change}])


@pytest.mark.parametrize("code", ["assert " + "-" * 100_000 + "1", "assert " + "(" * 300 + "1" + ")" * 300])
def test_code_that_the_compiler_gives_up_on_is_a_problem_of_the_task(
    code: str, lesson: dict[str, Any], write: Write
) -> None:
    with pytest.raises(TaskError, match=r"does not compile"):
        load([{**lesson, "hidden": [code]}])
    with pytest.raises(TaskError, match=r"does not compile"):
        load([{**lesson, "prelude": code}])
    with pytest.raises(TaskError, match=r"does not compile"):
        load([{**lesson, "ref": code + "\n"}])
    write("pool/deep/task.toml", "")
    write("pool/deep/prompt.md", "x")
    write("pool/deep/reference/solution.py", "def f(): pass\n")
    folder = write("pool/deep/hidden/test_f.py", code).parent.parent
    with pytest.raises(TaskError, match=r"does not compile"):
        load(folder)
