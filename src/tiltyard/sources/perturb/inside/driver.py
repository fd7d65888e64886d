"""Runs in a cell, beside a solution: what tests see of it, and what examples come to. Imports the standard library only.

The job is a file; the answer is one too, for what the solution prints must not get into it. Values are told as ``repr``,
and only where that says all: a literal that reads back as the same.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

MOST = 4000


def told(value: Any) -> str | None:
    """The literal that is this value, or None."""
    try:
        text = repr(value)
        if len(text) > MOST:
            return None
        again = ast.literal_eval(text)
    except Exception:
        return None
    return text if type(again) is type(value) and again == value else None


def fresh(job: Any, note: Any) -> dict[str, Any]:
    """The names that tests find, with the solution loaded anew."""
    for name in job["modules"]:
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    main = importlib.import_module(job["main"])
    names: dict[str, Any] = {"__name__": "tests", "_seen_value": note}
    exec(compile(job["prelude"], "prelude", "exec"), names)
    names.update({name: getattr(main, name) for name in job["entry"]})
    return names


def run(job: Any, item: Any) -> dict[str, Any]:
    seen: dict[str, list[str | None]] = {}

    def note(number: object, value: object) -> None:
        seen.setdefault(str(number), []).append(told(value))

    try:
        names = fresh(job, note)
        if item["kind"] == "expression":
            return {"value": told(eval(compile(item["code"], "example", "eval"), names))}
        if item["kind"] == "block":
            values = []
            for node in ast.parse(item["code"]).body:
                if isinstance(node, ast.Expr):
                    values.append(
                        repr(eval(compile(ast.Expression(node.value), "block", "eval"), names))[:MOST]
                    )
                else:
                    exec(compile(ast.Module([node], []), "block", "exec"), names)
            return {"values": values}
        exec(compile(item["code"], "test", "exec"), names)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return {"error": type(error).__name__, "seen": seen}
    return {"seen": seen}


def main() -> None:
    """Argument: the folder of the solution, from which the answer's name is made."""
    folder = sys.argv[1]
    with open("job.json", encoding="utf-8") as file:
        job = json.load(file)
    sys.path.insert(0, str(Path(folder).resolve()))
    os.chdir(folder)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    answer = [run(job, item) for item in job["items"]]
    os.chdir("..")
    with open("answer-" + folder + ".json", "w", encoding="utf-8") as file:
        json.dump(answer, file)


if __name__ == "__main__":
    main()
