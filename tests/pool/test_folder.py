import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pool_rows import outcomes

from tiltyard.errors import TaskError
from tiltyard.pool import load, load_lenient

Write = Callable[[str, "str | bytes"], Path]


@pytest.fixture
def pool(write: Write, tmp_path: Path) -> Path:
    """A pool of two good tasks: a function in a package, and a program."""
    write("pool/pool.toml", 'name = "mine"\nversion = 3\n')
    write("pool/README.md", "Not a task.")
    write(
        "pool/stack/task.toml", 'entry = ["Stack"]\nmain = "lib/stack.py"\nprotected = ["lib/__init__.py"]\n'
    )
    write("pool/stack/prompt.md", "Finish the stack.\n")
    write("pool/stack/start/lib/__init__.py", "")
    write("pool/stack/start/lib/stack.py", "class Stack:\n    pass\n")
    write("pool/stack/reference/lib/stack.py", "class Stack(list):\n    push = list.append\n")
    write("pool/stack/visible/prelude.py", "one = 1\n")
    write(
        "pool/stack/visible/test_push.py",
        "s = Stack()\ns.push(one)\nassert len(s) == 1\ns.push(2)\nassert s.pop() == 2\n",
    )
    write("pool/stack/hidden/prelude.py", "def full():\n    s = Stack()\n    s.push(1)\n    return s\n")
    write(
        "pool/stack/hidden/test_pop.py",
        "import math\n\ndef test_pop():\n    assert full().pop() == 1\n\ndef test_empty():\n    assert not Stack()\n",
    )
    write(
        "pool/add/task.toml", 'grading = "stdio"\nmatch = "numbers"\ntolerance = 0.01\n[limits]\ntest_s = 2\n'
    )
    write("pool/add/prompt.md", "Add.\n")
    write("pool/add/reference/solution.py", "print(sum(map(float, input().split())))\n")
    write("pool/add/hidden/two.in", "1 2\n")
    write("pool/add/hidden/two.out", "3\n")
    write("pool/add/hidden/bad.in", "")
    write("pool/add/hidden/bad.out", "")
    write("pool/add/hidden/bad.args", "-x\n--name=a b\n")
    write("pool/add/hidden/bad.rc", "2\n")
    return tmp_path / "pool"


def problems(path: Path) -> list[str]:
    _, found = load_lenient(path)
    return [str(p).removeprefix(f"{path}/") for p in found]


def test_a_pool_of_folders(pool: Path) -> None:
    tasks = load(pool)
    assert (tasks.name, tasks.version, tasks.ids) == ("mine", 3, ("add", "stack"))
    assert load(str(pool)) == tasks


def test_a_task_of_calls(pool: Path) -> None:
    task = load(pool)["stack"]
    assert task.prompt == "Finish the stack.\n"
    assert set(task.start) == {"lib/__init__.py", "lib/stack.py"} and set(task.reference) == {"lib/stack.py"}
    assert task.protected == {"lib/__init__.py"} and task.entry == ("Stack",)
    assert [t.id for t in task.hidden] == ["test_pop::test_pop", "test_pop::test_empty"]
    source = (pool / "stack/hidden/test_pop.py").read_text()
    assert [t.code for t in task.hidden] == [f"{source}\ntest_pop()", f"{source}\ntest_empty()"]
    assert task.prelude == (pool / "stack/hidden/prelude.py").read_text()
    assert [t.id for t in task.visible] == ["test_push::1", "test_push::2"]
    assert task.visible[0].code == "one = 1\n\ns = Stack()\ns.push(one)\nassert len(s) == 1"
    assert task.visible[1].code == "one = 1\n\ns = Stack()\ns.push(one)\ns.push(2)\nassert s.pop() == 2"
    wrong = "class Stack(list):\n    def push(self, x):\n        self[:] = [x]\n    def __bool__(self): return True\n"
    assert outcomes(task, kind="visible") == {"test_push::1": "", "test_push::2": ""}
    assert outcomes(task, wrong)["test_pop::test_empty"] == "AssertionError"


def test_a_task_of_stdio(pool: Path) -> None:
    task = load(pool)["add"]
    bad, two = task.hidden
    assert (two.id, two.stdin, two.stdout, two.args, two.exit_code) == ("two", "1 2\n", "3\n", (), None)
    assert (bad.id, bad.args, bad.exit_code) == ("bad", ("-x", "--name=a b"), 2)
    assert {(t.match, t.tolerance) for t in task.hidden} == {("numbers", 0.01)}
    assert task.limits.test_s == 2.0 and not task.start and not task.visible


def test_one_task_folder_is_a_pool_of_one(pool: Path) -> None:
    single = load(pool / "stack")
    assert single.ids == ("stack",) and single.name == "stack"
    assert single[0].digest == load(pool)["stack"].digest


def test_what_runs_leave_behind_changes_nothing(pool: Path, write: Write) -> None:
    before = load(pool).digest
    write("pool/stack/start/lib/__pycache__/stack.cpython-311.pyc", b"\0")
    write("pool/stack/hidden/__pycache__/x.pyc", b"\0")
    write("pool/stack/.DS_Store", b"\0")
    write("pool/stack/README.md", "about")
    write("pool/.git/config", "")
    write("pool/_drafts/x.txt", "")
    assert load(pool).digest == before


def test_order_in_pool_toml(pool: Path, write: Write) -> None:
    write("pool/pool.toml", 'order = ["stack"]\n')
    assert load(pool).ids == ("stack", "add") and load(pool).name == "pool"
    write("pool/pool.toml", 'order = ["stak"]\n')
    assert problems(pool) == [
        "pool.toml, order: found 'stak', which is no folder here; expected task folders; did you mean 'stack'?"
    ]


def test_files_may_be_bytes_but_tests_are_text(pool: Path, write: Write) -> None:
    write("pool/stack/start/raw.bin", b"\xff\x00")
    assert load(pool)["stack"].start["raw.bin"] == b"\xff\x00"
    write("pool/stack/hidden/test_x.py", b"# caf\xe9\nassert 1\n")
    write("pool/add/hidden/two.out", b"\n\n\xff")
    assert problems(pool) == [
        "add/hidden/two.out:3: found the byte 0xff, which is not UTF-8; expected text in UTF-8",
        "add/hidden, two.out: found no two.out beside two.in; expected both (either may be empty)",
        "stack/hidden/test_x.py:1: found the byte 0xe9, which is not UTF-8; expected text in UTF-8",
    ]


def test_links_and_devices_are_refused(pool: Path) -> None:
    (pool / "stack/start/lib/link.py").symlink_to("/etc/passwd")
    (pool / "stack/visible/test_push.py").unlink()
    os.mkfifo(pool / "stack/visible/test_push.py")
    (pool / "again").symlink_to("stack")
    (pool / "add/prompt.md").unlink()
    (pool / "add/prompt.md").symlink_to("/etc/passwd")
    assert problems(pool) == [
        "again: found a symbolic link; expected a task folder",
        "add/prompt.md: found a symbolic link; expected a regular file",
        "stack/start/lib/link.py: found a symbolic link; expected a regular file or a folder",
        "stack/visible/test_push.py: found a device, a pipe or a socket; expected a regular file or a folder",
    ]


def test_missing_parts_are_all_named(pool: Path, write: Write) -> None:
    write("pool/empty/hiden/test_x.py", "assert 1")
    assert problems(pool) == [
        "empty/task.toml: found no such file; expected a file with the task's settings (it may be empty)",
        "empty/prompt.md: found no such file; expected a file with what the player is asked to do",
        "empty/hiden: found something that is no part of a task; expected only task.toml, prompt.md, start, visible, "
        "hidden, reference (and a README); did you mean 'hidden'?",
        "empty, hidden/: found nothing; expected a folder with tests, for nothing else decides the reward",
        "empty, reference/: found nothing; expected a folder with the files that solve it",
    ]
    assert load_lenient(pool)[0].ids == ("add", "stack")


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("task.toml", "id = \n", "stack/task.toml:1:6: found bad TOML (Invalid value); expected TOML"),
        (
            "task.toml",
            "idd = 'x'\n",
            "stack/task.toml, idd: found an unknown key; expected only known keys; did you mean 'id'",
        ),
        (
            "task.toml",
            "[limits]\nstep = 1\n",
            "stack/task.toml, limits.step: found an unknown key; expected only known keys; did",
        ),
        (
            "task.toml",
            "[metadata]\ntags = 'x'\n",
            "stack/task.toml, metadata.tags: found 'x' (text); expected a list",
        ),
        (
            "task.toml",
            "",
            "stack (task 'stack'), main: found 'solution.py'; expected the path of a start or reference file",
        ),
        (
            "prompt.md",
            "  \n",
            "stack (task 'stack'), prompt: found nothing; expected what the player is asked to do",
        ),
        (
            "hidden/test_pop.py",
            "def test_a(:",
            "stack/hidden/test_pop.py:1: found code that does not compile (invalid",
        ),
        (
            "hidden/words.txt",
            "a",
            "stack/hidden/words.txt: found a file that is no test of a task with grading = 'calls'",
        ),
        (
            "hidden/more/test_x.py",
            "assert 1",
            "stack/hidden/more/test_x.py: found a file in a folder of its own; expected",
        ),
        ("hidden/tests.json", "[1]", "stack/hidden/tests.json, tests[0]: found 1 (int); expected"),
        ("hidden/tests.json", '["a",]', "stack/hidden/tests.json:1:6: found bad JSON"),
    ],
)
def test_what_is_wrong_is_named(pool: Path, write: Write, file: str, content: str, expected: str) -> None:
    write(f"pool/stack/{file}", content)
    found = problems(pool)
    assert any(p.startswith(expected) for p in found), found


def test_tests_json_says_what_files_can_not(pool: Path, write: Write) -> None:
    write(
        "pool/stack/hidden/tests.json", '["assert Stack", {"id": "slow", "code": "assert 1", "time_s": 60}]'
    )
    hidden = load(pool)["stack"].hidden
    assert [(t.id, t.time_s) for t in hidden[2:]] == [("hidden/3", None), ("slow", 60.0)]


def test_dates_of_toml(pool: Path, write: Write) -> None:
    write("pool/add/task.toml", 'grading = "stdio"\n[metadata]\ncreated = 2026-10-31\nmood = "good"\n')
    metadata = load(pool)["add"].metadata
    assert (metadata.created, metadata.extra) == ("2026-10-31", (("mood", "good"),))


def test_one_id_in_two_folders_names_both(pool: Path, write: Write) -> None:
    write("pool/add/task.toml", 'id = "stack"\ngrading = "stdio"\n')
    with pytest.raises(
        TaskError, match=r"stack, id: found 'stack', which is also the id of .*pool/add; expected"
    ):
        load(pool)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads what nobody may read")
def test_a_file_that_nobody_may_read(pool: Path) -> None:
    (pool / "stack/start/lib/stack.py").chmod(0)
    assert any("can't be read (Permission denied)" in p for p in problems(pool))
