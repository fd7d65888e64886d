"""Other names: what is the task's own changes everywhere at once, and nothing else does."""

from __future__ import annotations

import ast
import itertools
import random
import re
from typing import Any

import pytest

from tiltyard.pool import load
from tiltyard.sources.perturb import prose
from tiltyard.sources.perturb.fresh import Namer
from tiltyard.sources.perturb.model import CantError
from tiltyard.sources.perturb.names import survey
from tiltyard.sources.perturb.parts import put_together, taken_apart
from tiltyard.sources.perturb.rename import rename
from tiltyard.task import Files, Task, Test

BUILTIN = load("builtin")


def calls(ref: str, hidden: str, prompt: str = "Do it.", **more: Any) -> Task:
    row = {"id": "t", "prompt": prompt, "stub": "", "ref": ref, "hidden": [hidden], **more}
    return load([row])[0]


def renamed(task: Task, seed: int = 1, **more: Any) -> Task:
    return rename(task, random.Random(seed), **more).task


def ref(task: Task) -> str:
    return task.reference[task.main].decode()


def identifiers(source: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        for name in ("id", "attr", "arg", "name"):
            value = getattr(node, name, None)
            if isinstance(value, str):
                found.add(value)
    return found


def run(task: Task) -> None:
    """Solution and tests in one process, as far as plain tests need it."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(ref(task), names)
    exec(task.prelude, names)
    for test in task.hidden:
        exec(test.code, names)


def test_taking_apart_and_putting_together_changes_nothing() -> None:
    for task in BUILTIN[::6]:
        assert put_together(task, {}) == task
        again = put_together(task, taken_apart(task).code)
        assert again == task and again.digest == task.digest


def test_everything_that_is_the_tasks_own_changes_together() -> None:
    task = calls(
        "class Shelf:\n"
        "    limit_of_books = 3\n"
        "    def __init__(self, room_left=2):\n        self.room_left = room_left\n"
        "    def put_book(self, book_title, *, loudly=False):\n"
        "        self.last_book = book_title\n        return len(book_title) + loudly\n"
        "    @property\n    def newest_one(self):\n        return self.last_book\n"
        "def filled_shelf(*some_titles):\n"
        "    made_shelf = Shelf(room_left=5)\n"
        "    for one_title in some_titles:\n        made_shelf.put_book(book_title=one_title)\n"
        "    return made_shelf\n",
        "s = filled_shelf('ab', 'c')\nassert s.newest_one == 'c' and s.room_left == 5\n"
        "assert s.put_book('xyz', loudly=True) == 4 and Shelf.limit_of_books == 3",
    )
    made = renamed(task)
    run(made)
    gone = {
        "Shelf",
        "limit_of_books",
        "room_left",
        "put_book",
        "book_title",
        "loudly",
        "last_book",
        "newest_one",
    }
    gone |= {"filled_shelf", "some_titles", "made_shelf", "one_title"}
    assert not gone & identifiers(ref(made)) and not gone & identifiers(made.hidden[0].code)
    assert set(made.entry).isdisjoint(task.entry) and len(made.entry) == 2
    assert made.digest != task.digest


@pytest.mark.parametrize(
    ("source", "test", "stays"),
    [
        # an attribute of Python's own objects, and a parameter of its functions
        ("class Box:\n    def keys(self):\n        return {}.keys()\n", "assert not Box().keys()", "keys"),
        ("def f(x, key=None):\n    return sorted(x, key=key)\n", "assert f([2, 1], key=None) == [1, 2]", "key"),
        # looked up by its text
        ("class Box:\n    def open_it(self):\n        return 1\ndef f(b):\n    return getattr(b, 'open_it')()\n", "assert f(Box()) == 1", "open_it"),
        ("class Box:\n    def on_save(self):\n        return 1\n    def call_it(self, w):\n        return getattr(self, 'on_' + w)()\n", "assert Box().call_it('save') == 1", "on_save"),
        ("def f():\n    some_value = 3\n    return '{some_value}'.format(**locals())\n", "assert f() == '3'", "some_value"),
        ("def f(first_one):\n    return first_one\n", "assert f(**{'first_one': 4}) == 4", "first_one"),
        ("from collections import namedtuple\nP = namedtuple('P', 'left_side right_side')\ndef f():\n    return P(left_side=1, right_side=2)\n", "assert f().left_side == 1", "left_side"),
        # shown
        ("def f(some_value):\n    return f'{some_value=}'\n", "assert f(3) == 'some_value=3'", "some_value"),
        ("from dataclasses import dataclass\n@dataclass\nclass Point:\n    x_axis: int\ndef f():\n    return repr(Point(1))\n", "assert f() == 'Point(x_axis=1)'", "x_axis"),
        ("class BadThing(Exception):\n    pass\ndef f():\n    return type(BadThing()).__name__\n", "assert f() == 'BadThing'", "BadThing"),
        # members that a base class makes something of
        ("import enum\nclass Colour(enum.Enum):\n    dark_red = 1\ndef f():\n    return Colour.dark_red.name\n", "assert f().startswith('dark')", "dark_red"),
        ("import ast\nclass V(ast.NodeVisitor):\n    def visit_Name(self, node):\n        self.seen_name = node.id\ndef f(t):\n    v = V()\n    v.visit(ast.parse(t))\n    return v.seen_name\n", "assert f('a') == 'a'", "visit_Name"),
        # a name of Python, of an import, of a star
        ("from math import gcd\ndef f(a, b):\n    return gcd(a, b)\n", "assert f(4, 6) == 2", "gcd"),
        ("from math import *\ndef f(q_value):\n    return floor(q_value)\n", "assert f(1.5) == 1", "floor"),
    ],
)  # fmt: skip
def test_what_someone_else_knows_it_by_stays(source: str, test: str, stays: str) -> None:
    task = calls(source, test)
    run(task)
    made = renamed(task)
    run(made)
    assert re.search(rf"\b{stays}\b", ref(made))


def test_texts_that_are_code_change_and_texts_that_are_data_do_not() -> None:
    task = calls(
        '__all__ = ["join_parts", "Holder"]\n'
        "from typing import Literal\n"
        "class Holder:\n"
        '    """Holds. See `join_parts` and join_parts(1, 2)."""\n'
        '    def twin_of(self, other_holder: "Holder") -> "list[Holder]":\n        return [other_holder]\n'
        'def join_parts(left_part, right_part, mode: Literal["left_side"] = "left_side"):\n'
        '    """Join left_part and right_part.\n\n    >>> join_parts("left_part", 2)\n    \'left_part2\'\n'
        '    :param left_part: the first\n    """\n'
        "    # left_part comes first\n"
        '    return f"{left_part}{right_part}"\n',
        "assert join_parts(left_part='no left_part', right_part=2) == 'no left_part2'",
    )
    made = renamed(task)
    run(made)
    text = ref(made)
    assert not re.findall(
        r"\b(join_parts|Holder|left_part|twin_of|other_holder)\b(?![2'])",
        text.replace('("left_part", 2)', ""),
    )
    assert '"left_side"' in text and '("left_part", 2)' in text
    names = {node.name for node in ast.parse(text).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    listed = ast.literal_eval(re.search(r"__all__ = (\[.*\])", text)[1])  # type: ignore[index]
    assert set(listed) == names
    # a text that is data blocks the name that stands in it with a use beside it, and is never changed itself
    assert "'no left_part'" in made.hidden[0].code


def test_names_in_fstrings_keyword_arguments_and_other_alphabets() -> None:
    task = calls(
        "def größe(länge, breite_cm=2):\n    summe_x = länge * breite_cm\n    return f'{summe_x:>{länge}} cm'\n",
        "assert größe(länge=3, breite_cm=4) == ' 12 cm'\nassert größe(1) == '2 cm'",
        prompt="Write `größe(länge, breite_cm=2)`; größe(3) is '  6 cm'.",
    )
    made = renamed(task)
    run(made)
    assert "größe(" not in ref(made).replace(made.entry[0], "") and "länge" not in identifiers(ref(made))
    assert f"`{made.entry[0]}(" in made.prompt and "größe(" not in made.prompt.replace(made.entry[0], "")


def test_the_prompt_says_the_new_names_where_the_old_ones_were_code() -> None:
    task = calls(
        "def median(xs, weight_of=None):\n    return sorted(xs)[len(xs) // 2]\n",
        "assert median([3, 1, 2]) == 2",
        prompt='Write median(xs, weight_of). The median is in the middle. `median([1])` is 1; "median(xs)" is a text, and xs '
        "is a list.\n\n```python\nmedian([1, 2, 3])  # weight_of is None\n```\n\n```text\nmedian = 3\n```\n",
    )
    # `median` stands in a block that is data: it can't be told from what goes in and comes out
    made = renamed(task)
    assert "median" in made.entry
    free = calls(ref(task), task.hidden[0].code, prompt=task.prompt.partition("```text")[0])
    made = renamed(free)
    run(made)
    [new] = made.entry
    assert made.prompt.startswith(f"Write {new}(") and "The median is in the middle" in made.prompt
    assert f"`{new}([1])`" in made.prompt and '"median(xs)" is a text' in made.prompt
    assert "weight_of" not in made.prompt and " xs " not in made.prompt


def test_a_number_stuck_to_a_name_keeps_the_name() -> None:
    task = calls(
        "def value_at(x):\n    return 2 * x\n",
        "assert value_at(2) == 4",
        prompt="value_at(x) is 2x for any x.",
    )
    made = renamed(task)
    assert "2x for any x" in made.prompt and "value_at" not in made.prompt


def test_files_and_their_imports() -> None:
    task = BUILTIN["fix_ledger"]
    made = renamed(task, files=True)
    assert not {*task.start} & {*made.start} and made.main in {*made.start, *made.reference}
    assert made.main != task.main and not {p for p in made.reference if p not in made.start}
    roots = {path.split("/")[0] for path in made.start}
    assert roots.isdisjoint({path.split("/")[0] for path in task.start})
    for test in made.hidden:
        assert "from ledger" not in test.code


def suite_task(tests: str, source: str, ids: list[str]) -> Task:
    return Task(
        id="s", prompt="Mend `pkg/core_part.py`: add_up(first_one) is wrong.", grading="pytest", reward="all", way="in-process",
        start=Files({"pkg/__init__.py": "", "pkg/core_part.py": source.replace("+ 1", "+ 2"), "pyproject.toml": '[project]\nname = "pkg"\n'}),
        reference=Files({"pkg/core_part.py": source}), suite=Files({"tests/test_core_part.py": tests}),
        hidden=tuple(Test(i) for i in ids),
    )  # fmt: skip


def test_a_suite_its_files_and_its_ids() -> None:
    tests = (
        "import pytest\nfrom pkg.core_part import add_up, take_off\nfrom pkg import core_part\n"
        "@pytest.fixture\ndef given_number():\n    return 3\n"
        "@pytest.mark.parametrize('how, out', [(add_up, 4), (take_off, 2)])\n"
        "def test_it(given_number, how, out):\n    assert how(given_number) == out\n"
        "def test_add(given_number, tmp_path):\n    assert core_part.add_up(first_one=given_number) == 4\n"
    )
    source = "def add_up(first_one):\n    return first_one + 1\n\n\ndef take_off(first_one):\n    return first_one - 1\n"
    ids = ["tests/test_core_part.py::test_it[add_up-4]", "tests/test_core_part.py::test_it[take_off-2]", "tests/test_core_part.py::test_add"]  # fmt: skip
    task = suite_task(tests, source, ids)
    made = renamed(task)
    code = made.suite["tests/test_core_part.py"].decode()
    # what pytest makes ids of stays, and so does the project's name, which a file of settings says
    assert "add_up" in code and "first_one" not in code and "given_number" not in code and "tmp_path" in code
    moved = renamed(task, files=True)
    [path] = moved.suite
    assert path != "tests/test_core_part.py" and path.startswith("tests/test_")
    assert [test.id.partition("::")[0] for test in moved.hidden] == [path] * 3
    assert "pkg/core_part.py" not in moved.start and "core_part.py" not in moved.prompt
    assert "pkg/__init__.py" in moved.start


def test_code_that_does_not_parse_and_tasks_without_a_name() -> None:
    broken = calls(
        "def f(a_value):\n    return a_value\n",
        "assert f(1) == 1",
        start={"other.py": "def broken(:\n    f = a_value\n"},
    )
    with pytest.raises(CantError):
        renamed(broken)
    assert "does not parse" in survey(broken, taken_apart(broken)).stays["a_value"]
    program = load([{"id": "p", "prompt": "Print 1.", "stub": "", "ref": "print(1)\n", "grading": "stdio", "hidden": [{"stdin": "", "stdout": "1\n"}]}])[0]  # fmt: skip
    with pytest.raises(CantError):
        renamed(program)


def test_the_same_seed_gives_the_same_names_and_another_seed_others() -> None:
    task = BUILTIN["lru_cache"]
    assert renamed(task, 3) == renamed(task, 3)
    assert len({renamed(task, seed).digest for seed in (3, 4)}) > 1


def test_new_names_are_fresh_and_in_style() -> None:
    namer = Namer(random.Random(0), {"find_it", "max_value"})
    for old, kind, style in (
        ("LRUCache", "class", r"[A-Z][A-Za-z]+"), ("_private_thing", "value", r"_[a-z][a-z_]+"), ("MAX_ITEMS", "value", r"[A-Z][A-Z_]+"),
        ("camelCase", "callable", r"[a-z]+[A-Za-z]+"), ("x", "value", r"[a-z_]+"), ("größe", "callable", r"[a-zöß_]+"), ("__x__y", "value", r"__[a-z_]+"),
    ):  # fmt: skip
        made = {namer.name(old, kind) for _ in range(30)}
        assert len(made) == 30 and old not in made
        assert all(name.isidentifier() for name in made)
        assert re.fullmatch(style + r"(_?(NO|No|no)_?\d+)?", sorted(made)[0]), sorted(made)[0]


def test_pieces_cover_a_text() -> None:
    text = 'A `span`, ``two``, f(x) and "a quote".\n>>> f(1)\n1\n```\nx = 1\n```\n~~~text\nf(\n~~~\n:param x: y\n'
    found = list(prose.pieces(text, frozenset({"f"})))
    covered = "".join(text[p.start : p.end] for p in found)
    assert all(a.end <= b.start for a, b in itertools.pairwise(found))
    assert {p.kind for p in found} == {prose.CODE, prose.DATA, prose.PROSE, prose.QUOTED}
    assert "span" in covered and "f(x)" in [text[p.start : p.end] for p in found if p.kind == prose.CODE]
