import json
from typing import Any

from tiltyard.pool import describe, load, summary

SECRET = "assert median([1, 2, 3, 4]) == 2.5"


def test_a_description_is_plain_data_without_what_is_hidden(lesson: dict[str, Any]) -> None:
    task = load({**lesson, "start": {"raw.bin": {"base64": "/wA="}}, "prelude": "oracle = 1"})[0]
    shown = describe(task)
    text = json.dumps(shown)
    assert shown["hidden"] == 2 and shown["id"] == "median" and shown["digest"] == task.digest
    assert shown["start"] == {"raw.bin": {"bytes": 2}, "solution.py": lesson["stub"]}
    assert shown["visible"] == [{"id": "visible/1", "code": lesson["visible"][0], "time_s": None}]
    assert shown["limits"]["steps"] == 12 and shown["metadata"]["source"] == "handwritten"
    assert SECRET not in text and "sorted" not in text and "oracle" not in text


def test_all_of_it_when_asked(lesson: dict[str, Any]) -> None:
    shown = describe(load({**lesson, "prelude": "oracle = 1"})[0], hidden=True)
    json.dumps(shown)
    assert [t["code"] for t in shown["hidden"]] == lesson["hidden"]
    assert shown["reference"] == {"solution.py": lesson["ref"]} and shown["prelude"] == "oracle = 1"


def test_programs_show_what_goes_in_and_out(lesson: dict[str, Any]) -> None:
    row = {
        **lesson,
        "grading": "stdio",
        "visible": [{"stdin": "1", "stdout": "2", "args": ["-x"]}],
        "hidden": [{"stdout": ""}],
    }
    (test,) = describe(load(row)[0])["visible"]
    assert (test["stdin"], test["stdout"], test["args"], test["match"]) == ("1", "2", ["-x"], "lines")
    assert "code" not in test


def test_a_summary_has_one_row_a_task(lesson: dict[str, Any]) -> None:
    pool = load([lesson, {**lesson, "id": "b", "prompt": "\n# " + "x" * 99, "tags": ["t"]}])
    rows = summary(pool)
    json.dumps(rows)
    assert [(r["id"], r["visible"], r["hidden"], r["files"], r["tags"]) for r in rows] == [
        ("median", 1, 2, 1, []),
        ("b", 1, 2, 1, ["t"]),
    ]
    assert rows[0]["title"] == "Write median(xs). An empty list raises ValueError."
    assert rows[1]["title"] == "x" * 79 + "…" and rows[1]["digest"] == pool["b"].digest
