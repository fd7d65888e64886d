"""Variants of whole pools: validated, different, the same by seed, with their lineage; order, words and numbers."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tiltyard.cells import make_wall
from tiltyard.errors import UsageError
from tiltyard.images import Images
from tiltyard.pool import Pool, load, to_folder, to_jsonl
from tiltyard.referee import Referee
from tiltyard.sources.perturb import KINDS, as_pool, lineage, perturb
from tiltyard.sources.perturb.by_model import ModelWords, wrong_with
from tiltyard.sources.perturb.constants import other_constants
from tiltyard.sources.perturb.model import CantError
from tiltyard.sources.perturb.rename import rename
from tiltyard.sources.perturb.reorder import reorder, reordered
from tiltyard.sources.perturb.wording import facts, reword
from tiltyard.task import Files, Metadata, Task, Test
from tiltyard.workers import Interrupted, Stop

BUILTIN = load("builtin")
SOME = ["caesar_shift", "lru_cache", "io_word_count", "fix_ledger"]


def one(**row: Any) -> Task:
    return load([{"id": "t", "prompt": "Do it.", "stub": "", **row}])[0]


# -- the whole --------------------------------------------------------------------------------------------------------


def test_variants_of_bundled_tasks_are_fit_different_and_say_what_they_are(tmp_path: Path) -> None:
    pool = BUILTIN.select(SOME)
    report = perturb(pool, kinds=KINDS, seed=3, workers=2)
    assert [made.of for made in report.made] == list(pool.ids) and len(report.tasks) == 4
    made = as_pool(pool, report)
    assert not {t.digest for t in made} & {t.digest for t in pool} and not set(made.ids) & set(pool.ids)
    wall = make_wall("auto")
    try:
        referee = Referee(wall, controls=True)
        for task in made:
            assert referee.grade(task, task.reference.over(task.start)).reward == 1.0
            assert referee.grade(task, task.start).reward == 0.0
    finally:
        wall.close()
    for task in made:
        of = lineage(task.metadata)
        assert of is not None and pool[of[0]].digest == of[1] and pool[of[0]].prompt != task.prompt
        assert "seed=3 variant=1" in dict(task.metadata.extra)["perturbation"]
        assert task.metadata.license == pool[of[0]].metadata.license
    # the original solution is none of the variant where a name that tests use is another one
    lru, old = made[1], pool["lru_cache"]
    assert lru.entry != old.entry and "LRUCache" not in lru.prompt
    to_jsonl(made, tmp_path / "p.jsonl")
    to_folder(made, tmp_path / "p")
    for again in (load(str(tmp_path / "p.jsonl")), load(str(tmp_path / "p"))):
        assert again.digest == made.digest
        assert [t.metadata.extra for t in again] == [t.metadata.extra for t in made]


def test_the_same_seed_gives_the_same_variants_whatever_the_workers() -> None:
    pool = BUILTIN.select(["caesar_shift", "io_word_count"])
    reports = [perturb(pool, kinds=("rename", "prompt"), seed=1, count=2, workers=n) for n in (0, 2)]
    assert reports[0].made == reports[1].made
    assert len({task.digest for task in reports[0].tasks}) == 4
    other = perturb(pool, kinds=("rename", "prompt"), seed=2, workers=0)
    assert not {t.digest for t in other.tasks} & {t.digest for t in reports[0].tasks}


def test_what_breaks_a_task_is_left_out_and_the_rest_is_kept() -> None:
    source = "def long_name_of_it(number_in):\n    return len(long_name_of_it.__code__.co_name) + number_in\n"
    task = one(
        ref=source,
        hidden=["assert long_name_of_it(1) == 16"],
        prompt="Write `long_name_of_it`. Returns 16 if given 1.",
    )
    report = perturb([task], kinds=("rename", "prompt"), workers=0)
    [made] = report.made
    assert made.task is not None and made.kinds == ("prompt",)
    assert "unfit with it: the reference scores 0" in made.left_out["rename"]
    assert made.task.reference == task.reference
    assert report.by_kind["rename"]["made"] == 0 and report.by_kind["prompt"]["made"] == 1


def test_what_can_not_be_perturbed_says_why() -> None:
    unfit = one(ref="def f(some_value):\n    return 1\n", hidden=["assert f(1) == 2"], prompt="Write `f`.")
    plain = replace(
        one(ref="print(1)\n", grading="stdio", hidden=[{"stdin": "", "stdout": "1\n"}]), id="plain"
    )
    report = perturb([unfit, plain], kinds=("rename",), workers=0)
    assert not report.tasks
    assert [one.reason.partition(":")[0] for one in report.made] == [
        "the original is unfit",
        "no kind of change applies",
    ]
    with pytest.raises(UsageError, match="nothing to write"):
        as_pool(Pool("x", 1, (unfit, plain)), report)


def test_a_suite_of_a_repository() -> None:
    tests = "from store_room.boxes import pack_box\n\n\ndef test_pack():\n    assert pack_box(item_count=3) == 4\n\n\ndef test_none():\n    assert pack_box(0) == 0\n"
    good = "def pack_box(item_count):\n    return item_count + 1 if item_count else 0\n"
    task = Task(
        id="repo", prompt="`pack_box(3)` gives 5. Mend `store_room/boxes.py`.", grading="pytest", reward="all", way="in-process", shell=True,
        start=Files({"store_room/__init__.py": "", "store_room/boxes.py": good.replace("+ 1", "+ 2"), "README.md": "Use `pack_box`.\n"}),
        reference=Files({"store_room/boxes.py": good}), suite=Files({"tests/test_boxes.py": tests}),
        hidden=(Test("tests/test_boxes.py::test_pack"), Test("tests/test_boxes.py::test_none")), pass_to_pass=("tests/test_boxes.py::test_none",),
        metadata=Metadata(source="store", created="2025-01-02", extra=(("base_commit", "abc"),)),
    )  # fmt: skip
    report = perturb([task], kinds=("rename", "files"), workers=0)
    [made] = report.tasks
    assert report.made[0].kinds == ("rename", "files") and not report.made[0].left_out
    every = "".join(
        data.decode() for files in (made.start, made.reference, made.suite) for data in files.values()
    )
    assert not re.search(r"\b(pack_box|item_count)\b", every + made.prompt)
    assert not {"store_room/boxes.py", "tests/test_boxes.py"} & {*made.start, *made.suite, *made.reference}
    assert dict(made.metadata.extra)["base_commit"] == "abc" and made.fail_to_pass != task.fail_to_pass


def test_a_start_that_is_an_image_stays_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILTYARD_CACHE", str(tmp_path / "cache"))
    good = "def pack_box(item_count):\n    return item_count + 1\n"
    task = Task(
        id="repo", prompt="`pack_box(3)` gives 5.", grading="pytest", reward="all", way="in-process",
        start=Images().add({"boxes.py": good.replace("1", "2").encode(), "data.bin": b"\xff\x00"}), reference=Files({"boxes.py": good}),
        suite=Files({"test_boxes.py": "from boxes import pack_box\n\n\ndef test_pack():\n    assert pack_box(3) == 4\n"}), hidden=(Test("test_boxes.py::test_pack"),),
    )  # fmt: skip
    made = rename(task, random.Random(1)).task
    assert made.start.image and made.start.image != task.start.image and made.start["data.bin"] == b"\xff\x00"
    assert b"pack_box" not in re.sub(rb"\w+_pack_box|pack_box_\w+", b"", made.start["boxes.py"])
    to_jsonl([made], tmp_path / "p.jsonl")
    assert load(str(tmp_path / "p.jsonl"))[0].digest == made.digest
    same = reword(task, random.Random(1)).task
    assert same.start is task.start


def test_an_interruption_keeps_what_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    class Early(Stop):
        def __enter__(self) -> Any:
            return self

    class Progress:
        def begin(self, total: int) -> None:
            self.stop: Any = None

        def advance(self, result: Any) -> None:
            stops[-1].ask(2)

        def end(self) -> None: ...

    stops: list[Stop] = []

    def stop() -> Stop:
        stops.append(Early())
        return stops[-1]

    monkeypatch.setattr("tiltyard.workers.Stop", stop)
    with pytest.raises(Interrupted) as caught:
        perturb(BUILTIN, tasks=SOME, kinds=("prompt",), workers=0, progress=Progress())
    assert len(caught.value.partial.tasks) == 1 and caught.value.partial.planned == 4


def test_bad_requests() -> None:
    for kinds, count in ((("words",), 1), ((), 1), (("rename",), 0)):
        with pytest.raises(UsageError, match="expected"):
            perturb(BUILTIN, kinds=kinds, count=count)


def test_the_command(tmp_path: Path) -> None:
    to_jsonl(
        [
            one(
                ref="def add_up(xs):\n    return sum(xs)\n",
                hidden=["assert add_up([1, 2]) == 3"],
                prompt="Write `add_up(xs)`.",
            )
        ],
        tmp_path / "pool.jsonl",
    )
    out = tmp_path / "other"
    command = [
        sys.executable,
        "-m",
        "tiltyard",
        "perturb",
        str(tmp_path / "pool.jsonl"),
        "--kinds",
        "rename,prompt,reorder",
    ]
    done = subprocess.run([*command, "--out", str(out), "--with-originals"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "1 of 1 variants kept" in done.stdout and "no two definitions" in done.stdout
    assert set(load(str(out)).ids) == {"t", "t~s0v1"}
    again = subprocess.run([*command, "--out", str(out), "--json"], capture_output=True, text=True)
    assert again.returncode == 2 and "exists; expected" in again.stderr and "Traceback" not in again.stderr
    assert not again.stdout


# -- order ------------------------------------------------------------------------------------------------------------

CODE = '''"""Tools."""


def first():
    return second()


# about the second
def second():
    return 2


def third(x=second()):
    return x


def fourth():
    return 4


def fifth():
    return fourth() + 1


class Base:
    pass


class Upper(Base):
    """Doc."""

    size = 1

    def one(self):
        return 1

    def two(self):
        return self.one()

    @property
    def three(self):
        return 3

    @three.setter
    def three(self, value):
        pass
'''


def test_only_what_may_move_moves() -> None:
    seen = set()
    for seed in range(6):
        made, names = reordered(CODE, str(seed))
        order = [
            line.split("(")[0].split()[-1].rstrip(":")
            for line in made.splitlines()
            if line.startswith(("def", "class"))
        ]
        assert Counter(order) == Counter(["first", "second", "third", "fourth", "fifth", "Base", "Upper"])
        assert order.index("second") < order.index("third") and order.index("Base") < order.index("Upper")
        lines = made.splitlines()
        assert lines[lines.index("def second():") - 1] == "# about the second" and "    size = 1" in lines
        assert Counter(made.split()) == Counter(CODE.split())
        namespace: dict[str, Any] = {}
        exec(made, namespace)
        assert namespace["first"]() == 2 and namespace["third"]() == 2 and namespace["Upper"]().two() == 1
        assert names and made != CODE
        seen.add(made)
    assert len(seen) > 1
    assert reordered("import inspect\n" + CODE + "\nprint(inspect.getsource(first))\n", "1") == (
        "import inspect\n" + CODE + "\nprint(inspect.getsource(first))\n", ()
    )  # fmt: skip


def test_start_reference_and_prompt_agree_on_the_order() -> None:
    stub = "def a_one():\n    pass\n\n\ndef b_two():\n    pass\n\n\ndef c_three():\n    raise NotImplementedError\n"
    solved = stub.replace("raise NotImplementedError", "return 3")
    task = one(
        stub=stub,
        ref=solved,
        hidden=["assert c_three() == 3"],
        prompt=f"Finish c_three:\n\n```python\n{stub}```\n",
    )
    made = reorder(task, "7").task
    text = made.start["solution.py"].decode()
    assert text != stub and text in made.prompt
    assert made.reference["solution.py"].decode() == text.replace("raise NotImplementedError", "return 3")
    with pytest.raises(CantError):
        reorder(one(ref="def f():\n    return 1\n", hidden=["assert f() == 1"]), "1")


# -- words ------------------------------------------------------------------------------------------------------------


def test_other_words_keep_every_fact() -> None:
    for task in BUILTIN[::4]:
        made = reword(task, random.Random(5)).task
        assert made.prompt != task.prompt and facts(made.prompt) == facts(task.prompt)
        assert made.prompt == reword(task, random.Random(5)).task.prompt


def test_sentences_of_importers_have_templates() -> None:
    row = {"task_id": "HumanEval/0", "entry_point": "f", "prompt": 'def f(x):\n    """Double.\n    >>> f(2)\n    4\n    """\n', "canonical_solution": "    return 2 * x\n", "test": "def check(candidate):\n    assert candidate(2) == 4\n"}  # fmt: skip
    other = {
        "task_id": 2,
        "text": "Write a function to double a number.",
        "code": "def f(x):\n    return 2 * x\n",
        "test_list": ["assert f(2) == 4"],
    }
    from tiltyard.pool.humaneval import read_humaneval
    from tiltyard.pool.mbpp import read_mbpp

    for task in (read_humaneval(row, "x", []), read_mbpp(other, "x", [])):
        assert task is not None
        made = reword(task, random.Random(1)).task
        assert "Complete the function" not in made.prompt and "Write a function to" not in made.prompt
        assert "This must hold" not in made.prompt
        assert facts(made.prompt) == facts(task.prompt)


def test_a_models_words_are_checked() -> None:
    before = 'Write `f(x)`, which gives 3 for "abc".\n\n```python\nf("abc")\n```\n'
    good = 'Provide `f(x)`. It is 3 for "abc":\n\n```python\nf("abc")\n```\n'
    assert wrong_with(before, good) == ""
    for bad, why in (
        ("", "no statement"), (before, "the same words"), (good.replace("3", "4"), "lost, or added"), (good.replace("f(x)", "g(x)"), "lost, or added"),
        (good.replace('f("abc")\n', 'f("ab")\n'), "lost, or added"), (good * 9, "longer"), (good.replace("It is", "It is 7 or"), "lost, or added"),
    ):  # fmt: skip
        assert why in wrong_with(before, bad), bad


def test_a_model_rewords_over_a_real_socket(tmp_path: Path) -> None:
    pytest.importorskip("openai")
    from tests.players.model_server import Asked, Say, serving

    from tiltyard.players.model import ModelPlayer, Reach, model_settings

    def brain(asked: Asked) -> Say:
        if "never" in asked.prompt:
            return Say("<statement>It is 99.</statement>")
        if asked.turn == 0:  # forgets a number, and is told so
            return Say("<statement>Provide `f(x)`.</statement>")
        assert "'3'" in asked.last
        return Say("<statement>Provide `f(x)`: it is 3, whatever comes.</statement>")

    tasks = [one(ref="def f(x):\n    return 3\n", hidden=["assert f(1) == 3"], prompt=p) for p in ("Write `f(x)`, always 3.", "Write `f(x)`, never 4 but 3.")]  # fmt: skip
    with serving(brain) as server:
        settings = model_settings("openai:m", protocol="code", system="s")
        player = ModelPlayer(settings, Reach(server.base("openai"), retries=0))
        pool = [replace(task, id=f"t{n}") for n, task in enumerate(tasks)]
        report = perturb(pool, kinds=("prompt",), words=ModelWords(player, 2), workers=0)
        to_jsonl(pool, tmp_path / "pool.jsonl")
        command = [
            sys.executable,
            "-m",
            "tiltyard",
            "perturb",
            str(tmp_path / "pool.jsonl"),
            "--out",
            str(tmp_path / "out.jsonl"),
            "--kinds",
            "prompt",
        ]
        asked = ["--player", "openai:m", "--base-url", server.base("openai"), "--json"]
        done = subprocess.run([*command, *asked], capture_output=True, text=True)
    assert done.returncode == 1 and json.loads(done.stdout)["kept"] == 1, done.stderr
    assert [t.prompt for t in report.tasks] == ["Provide `f(x)`: it is 3, whatever comes."]
    assert "did not keep to the statement" in report.made[1].left_out["prompt"]


# -- numbers ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cells() -> Any:
    made = make_wall("auto")
    yield made
    made.close()


def fizz(**more: Any) -> Task:
    row: dict[str, Any] = {
        "prompt": "Write `price(n)`: each of n things costs 17 coins. price(2) is 34.",
        "ref": "def price(n):\n    return n * 17\n",
        "stub": "def price(n):\n    raise NotImplementedError\n",
        "visible": ["assert price(1) == 17"],
        "hidden": [
            "assert price(3) == 51",
            "assert 0 == price(0)",
            "x = price(10)\nassert x == 170, 'ten of them'",
        ],
    }
    return one(**row | more)


def test_a_number_changes_in_prompt_reference_and_tests(cells: Any) -> None:
    task = fizz()
    change = other_constants(cells, task, random.Random(1))
    made = change.task
    new = int(change.detail.rpartition(" ")[2])
    assert new != 17 and f"costs {new} coins. price(2) is {2 * new}." in made.prompt
    assert made.reference["solution.py"].decode() == f"def price(n):\n    return n * {new}\n"
    codes = [test.code for test in made.hidden]
    assert codes == [
        f"assert price(3) == {3 * new}",
        "assert 0 == price(0)",
        f"x = price(10)\nassert x == {10 * new}, 'ten of them'",
    ]
    assert made.visible[0].code == f"assert price(1) == {new}"
    report = perturb([task], kinds=("constants",), workers=0)
    assert len(report.tasks) == 1 and report.made[0].kinds == ("constants",)
    referee = Referee(cells)
    assert referee.grade(report.tasks[0], task.reference).reward != 1.0


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"ref": "def price(n):\n    return n * 10 + n * 7\n"}, "no constant"),
        ({"ref": "def price(n):\n    return n * 17 if n != 17 else 289\n"}, "no constant"),
        ({"prompt": "Write `price(n)`: each costs 17 coins; 17 is also a prime. "}, "no constant"),
        ({"prompt": "Write `price(n)`: each costs seventeen coins, 17 in digits."}, "no constant"),
        ({"prompt": "Write `price(n)`: each costs 17 coins, but for 18 coins you get a bag."}, "no constant"),
        ({"prompt": "Write `hours(n)`: a day has 24 hours.", "ref": "def price(n):\n    return n * 24\n", "hidden": ["assert price(1) == 24"]}, "no constant"),
        ({"prompt": "Write `price(n)`: each costs 17 coins. Compare price(2) with 34!"}, "no longer be right"),
        ({"hidden": ["for n in range(3):\n    assert price(n) == n * 17 - 0 and price(n) in (0, 17, 34)"]}, "can't be computed anew"),
        ({"hidden": ["for n in range(3):\n    assert price(1) + n == 17"]}, "several values"),
        ({"hidden": ["assert price(0) == 0"], "visible": []}, "no test notices"),
    ],
)  # fmt: skip
def test_numbers_that_are_left_alone(cells: Any, more: dict[str, Any], why: str) -> None:
    with pytest.raises(CantError, match=why):
        other_constants(cells, fizz(**more), random.Random(1))


def test_a_number_in_a_program(cells: Any) -> None:
    task = one(
        prompt="Read a number and print it times 23.\n\n```\n2\n```\n\ngives\n\n```\n46 coins\n```\n", grading="stdio",
        ref="print(int(input()) * 23, 'coins')\n", stub="print(0)\n", visible=[{"stdin": "2\n", "stdout": "46 coins\n"}], hidden=[{"stdin": "3\n", "stdout": "69 coins\n"}],
    )  # fmt: skip
    change = other_constants(cells, task, random.Random(2))
    new = int(change.detail.rpartition(" ")[2])
    assert f"times {new}" in change.task.prompt and f"{2 * new} coins" in change.task.prompt
    assert change.task.hidden[0].stdout == f"{3 * new} coins\n" and change.task.hidden[0].stdin == "3\n"
