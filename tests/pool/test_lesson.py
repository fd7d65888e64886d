import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pool_rows import outcomes

from tiltyard.errors import TaskError
from tiltyard.pool import load, load_lenient

Write = Callable[[str, "str | bytes"], Path]


def problems(*rows: Any) -> list[str]:
    with pytest.raises(TaskError) as caught:
        load(list(rows))
    return [str(p) for p in caught.value.problems]


def test_the_plain_dict_is_a_task(lesson: dict[str, Any]) -> None:
    task = load([lesson])["median"]
    assert task.prompt == lesson["prompt"]
    assert dict(task.start) == {"solution.py": lesson["stub"].encode()}
    assert dict(task.reference) == {"solution.py": lesson["ref"].encode()}
    assert task.entry == ("median",)
    assert [t.id for t in task.visible] == ["visible/1"]
    assert [t.id for t in task.hidden] == ["hidden/1", "hidden/2"]
    assert (task.metadata.source, task.metadata.created, task.metadata.difficulty) == (
        "handwritten",
        "2026-10",
        None,
    )
    assert (task.grading, task.reward, task.main) == ("calls", "fraction", "solution.py")
    assert outcomes(task) == {"hidden/1": "", "hidden/2": ""}
    assert outcomes(task, lesson["stub"]) == dict.fromkeys(["hidden/1", "hidden/2"], "NotImplementedError")


def test_a_hidden_test_may_be_any_python_even_one_that_can_only_fail(lesson: dict[str, Any]) -> None:
    lesson["hidden"] += [
        "import no_such_module_here as _\n",
        "for n in range(3):\n    assert median([n]) == n\n",
    ]
    task = load([lesson])[0]
    assert list(outcomes(task).values()) == ["", "", "ModuleNotFoundError", ""]


def test_entry_is_what_the_reference_defines_in_public(lesson: dict[str, Any]) -> None:
    lesson["ref"] += (
        "\nclass Box:\n    pass\n\ndef _helper():\n    def inner(): pass\n\nLIMIT = 3\n\nasync def later(): pass\n"
    )
    assert load([lesson])[0].entry == ("median", "Box", "later")
    assert load([{**lesson, "entry": ["Box"]}])[0].entry == ("Box",)


def test_optional_keys(lesson: dict[str, Any]) -> None:
    task = load(
        [
            {
                **lesson,
                "reward": "all",
                "limits": {"steps": 3, "test_s": 2},
                "tags": ["a"],
                "prelude": "import math\n",
                "start": {"data/words.txt": "one\ntwo\n", "raw.bin": {"base64": "/wA="}},
                "protected": ["data/words.txt"],
                "hidden": [{"code": "assert median([1]) == 1", "id": "one", "time_s": 9}, "pass"],
                "meta": {"tags": ["b", "a"], "license": "MIT", "mood": "good", "depth": {"b": 1, "a": None}},
            }
        ]
    )[0]
    assert (task.reward, task.limits.steps, task.limits.test_s) == ("all", 3, 2.0)
    assert task.start["raw.bin"] == b"\xff\x00" and task.protected == {"data/words.txt"}
    assert [(t.id, t.time_s) for t in task.hidden] == [("one", 9.0), ("hidden/2", None)]
    assert task.metadata.tags == ("a", "b") and task.metadata.license == "MIT"
    assert task.metadata.extra == (("depth", '{"a": null, "b": 1}'), ("mood", "good"))
    assert task.prelude == "import math\n"


def test_programs_on_stdin(lesson: dict[str, Any]) -> None:
    row = {
        **lesson,
        "grading": "stdio",
        "match": "numbers",
        "tolerance": 0.5,
        "visible": [],
        "hidden": [
            {"stdin": "1 2\n", "stdout": "3\n", "args": ["-v"]},
            {"stdout": "", "exit_code": 2, "match": "exact"},
        ],
    }
    task = load([row])[0]
    first, second = task.hidden
    assert (first.stdin, first.stdout, first.args, first.exit_code) == ("1 2\n", "3\n", ("-v",), None)
    assert (first.match, first.tolerance, second.match, second.exit_code) == ("numbers", 0.5, "exact", 2)
    assert task.entry == ()
    assert problems({**row, "hidden": ["print()"]}) == [
        "tasks[0] (task 'median'), hidden[0].code: found 'code' in a test of a task with grading = 'stdio'; "
        "expected stdin, stdout, args, exit_code"
    ]


def test_equal_limits_written_differently_have_one_digest(lesson: dict[str, Any]) -> None:
    a, b = (load([{**lesson, "limits": {"test_s": s}}])[0] for s in (2, 2.0))
    assert a.digest == b.digest


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"hiden": []},
            "tasks[0], hiden: found an unknown key; expected only known keys; did you mean 'hidden'?",
        ),
        (
            {"xyz": 1},
            "tasks[0], xyz: found an unknown key; expected only known keys; the keys are: id, grading,",
        ),
        (
            {"limits": {"step": 1}},
            "tasks[0], limits.step: found an unknown key; expected only known keys; did you mean",
        ),
        ({"limits": {"steps": "3"}}, "tasks[0], limits.steps: found '3' (text); expected a whole number"),
        ({"limits": {"steps": True}}, "tasks[0], limits.steps: found True (bool); expected a whole number"),
        (
            {"limits": {"steps": 0}},
            "tasks[0] (task 'median'), limits.steps: found 0; expected a finite number above 0",
        ),
        ({"prompt": None}, "tasks[0], prompt: found null; expected text"),
        (
            {"prompt": " \n"},
            "tasks[0] (task 'median'), prompt: found nothing; expected what the player is asked to do",
        ),
        ({"id": 7}, "tasks[0], id: found 7 (int); expected text"),
        ({"visible": "assert 1"}, "tasks[0], visible: found 'assert 1' (text); expected a list"),
        (
            {"hidden": [3]},
            "tasks[0], hidden[0]: found 3 (int); expected Python as text, or a table with 'code'",
        ),
        ({"hidden": []}, "tasks[0] (task 'median'), hidden: found no hidden test; expected at least one"),
        (
            {"hidden": ["assert ="]},
            "tasks[0] (task 'median'), hidden[0].code: found code that does not compile",
        ),
        ({"ref": "def f(:"}, "tasks[0] (task 'median'), reference: found solution.py that does not compile"),
        ({"ref": None}, "tasks[0] (task 'median'), ref: found nothing; expected the text of a solution"),
        ({"reward": "some"}, "tasks[0] (task 'median'), reward: found 'some'; expected one of fraction, all"),
        (
            {"meta": {"created": "October"}},
            "tasks[0] (task 'median'), created: found 'October'; expected an ISO date",
        ),
        (
            {"meta": {"difficulty": [1]}},
            "tasks[0], meta.difficulty: found a list of 1; expected a word, a number or null",
        ),
        (
            {"start": {"../x": "1"}},
            "tasks[0] (task 'median'), start: found a path with an empty, '.' or '..' part",
        ),
        ({"start": {"a": {"base64": "?"}}}, "tasks[0] (task 'median'), start['a'].base64: found bad base64"),
        (
            {"start": {"solution.py": ""}},
            "tasks[0] (task 'median'), start['solution.py']: found 'solution.py', which is",
        ),
        ({"start": {"a": {}}}, "tasks[0] (task 'median'), start['a']: found no content"),
        ({"protected": ["x"]}, "tasks[0] (task 'median'), protected: found 'x', which is not a start file"),
        (
            {"limits": {"file_bytes": 10}},
            "tasks[0] (task 'median'), start/solution.py: found a file of 46 bytes",
        ),
        (
            {"limits": {"disk_bytes": 10}},
            "tasks[0] (task 'median'), start: found 46 bytes in all; expected at most 10",
        ),
    ],
)
def test_what_is_wrong_is_named(lesson: dict[str, Any], change: dict[str, Any], expected: str) -> None:
    found = problems({**lesson, **change})
    assert any(p.startswith(expected) for p in found), found


@pytest.mark.parametrize("key", ["id", "prompt", "hidden"])
def test_a_missing_key_is_named(lesson: dict[str, Any], key: str) -> None:
    del lesson[key]
    assert problems(lesson) == [f"tasks[0], {key}: found nothing; expected a value, for this key is required"]


def test_one_bad_task_hides_neither_the_others_errors_nor_the_others(lesson: dict[str, Any]) -> None:
    rows = [
        {**lesson, "id": "a", "reward": "x"},
        {**lesson, "id": "b"},
        {**lesson, "id": "c", "hidden": []},
        5,
    ]
    assert [p.split(":")[0] for p in problems(*rows)] == [
        "tasks[0] (task 'a'), reward",
        "tasks[2] (task 'c'), hidden",
        "tasks[3]",
    ]
    pool, found = load_lenient(rows)
    assert pool.ids == ("b",) and len(found) == 3


def test_json_lines(lesson: dict[str, Any], write: Write) -> None:
    rows = [lesson, {**lesson, "id": "two", "prompt": "two\u2028lines"}]
    path = write("own.jsonl", "\n".join(json.dumps(r, ensure_ascii=False) for r in rows) + "\n\n")
    pool = load(str(path))
    assert (pool.name, pool.ids) == ("own", ("median", "two"))
    assert pool.digest == load(rows).digest and pool.version == pool.digest[:12]
    assert load(path) == pool


def test_one_id_twice_names_both_places(lesson: dict[str, Any], write: Write) -> None:
    path = write("own.jsonl", f"{json.dumps(lesson)}\n\n{json.dumps(lesson)}\n")
    with pytest.raises(TaskError) as caught:
        load(path)
    assert str(caught.value) == (
        f"{path}:3, id: found 'median', which is also the id of {path}:1; expected ids that differ within a pool"
    )
