"""search, apply_patch, and run_tests with ids: in real cells."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.tools.test_visible_suite import LONG, suite

from tiltyard import CodeEnv
from tiltyard.cells import Cell, CellLimits, Run, Wall
from tiltyard.env.walls import open_cell
from tiltyard.errors import PlayerError
from tiltyard.task import Limits, Task
from tiltyard.tools import parse_action, tools_of
from tiltyard.tools.actions import Call, Refusal
from tiltyard.tools.code_search import _SEARCH, MAX_LINES, search
from tiltyard.tools.hands import Bench
from tiltyard.tools.patching import apply_patch
from tiltyard.tools.visible import run_tests

FILES = {
    "pkg/core.py": b"import os\n\n\ndef parse_one(text):\n    return text\n\n\ndef parse_two(text):\n    return 2\n",
    "pkg/other.py": b"from pkg.core import parse_one\n",
    ".hidden/notes.txt": b"parse_one is here too\n",
    ".git/HEAD": b"parse_one\n",
    "data.bin": b"parse_one\0\1\n",
    "a:1:b.txt": b"parse_one\n",
}


@pytest.fixture
def cell(wall: Wall) -> Iterator[Cell]:
    with wall.open(FILES, CellLimits()) as cell:
        yield cell


@pytest.fixture
def bench(cell: Cell) -> Bench:
    return Bench(cell, Limits(run_s=60.0), {"pkg/other.py": "it is protected here"})


# -- search ------------------------------------------------------------------------------------------------------


def test_matches_come_with_path_and_line_sorted(bench: Bench) -> None:
    found = search(bench, r"def parse_\w+")
    assert (
        found == "2 matching lines:\npkg/core.py:4: def parse_one(text):\npkg/core.py:8: def parse_two(text):"
    )


def test_hidden_files_are_searched_and_git_and_binary_ones_are_not(bench: Bench) -> None:
    paths = [line.partition(":")[0] for line in search(bench, "parse_one").splitlines()[1:]]
    assert paths == [".hidden/notes.txt", "a", "pkg/core.py", "pkg/other.py"]


def test_a_path_narrows_the_search(bench: Bench) -> None:
    assert search(bench, "parse_one", "pkg/other.py").startswith("1 matching line:\npkg/other.py:1:")
    assert search(bench, "parse_one", "./pkg/").startswith("2 matching lines:")
    assert search(bench, "nothing like this") == "No line matches in the workspace."
    assert search(bench, "nothing", "pkg") == "No line matches in pkg."


@pytest.mark.parametrize("pattern", ["(", "[z-a]"])
def test_a_bad_pattern_is_said(bench: Bench, pattern: str) -> None:
    with pytest.raises(PlayerError, match="The search failed"):
        search(bench, pattern)


def test_a_path_that_leads_out_is_refused(bench: Bench) -> None:
    for path in ("../x", "/etc", "a//b"):
        with pytest.raises(PlayerError, match="expected one inside the workspace"):
            search(bench, "root", path)
    with pytest.raises(PlayerError):
        search(bench, "a\0b")


def test_options_in_a_pattern_are_no_options(bench: Bench) -> None:
    bench.cell.write("opts.txt", b"--version and -f /etc/passwd\n")
    assert "opts.txt:1" in search(bench, "--version")
    assert "opts.txt:1" in search(bench, "-f /etc/passwd")


def test_many_and_long_lines_are_bounded(bench: Bench) -> None:
    bench.cell.write("many.txt", b"needle " + b"x" * 5000 + b"\n" + b"needle\n" * 1000)
    lines = search(bench, "needle").splitlines()
    assert lines[0].startswith(f"1001 matching lines, the first {MAX_LINES} of them")
    assert len(lines) == 1 + MAX_LINES and max(map(len, lines)) < 400


def test_ripgrep_and_grep_find_the_same(wall: Wall, bench: Bench) -> None:
    if bench.cell.run(Run(("sh", "-c", "command -v rg"))).rc:
        pytest.skip("no ripgrep on this machine")
    by_grep = bench.cell.run(
        Run(("sh", "-c", _SEARCH.replace("command -v rg", "false"), "sh", "parse_one", "."))
    )
    by_rg = bench.cell.run(Run(("sh", "-c", _SEARCH, "sh", "parse_one", ".")))
    assert sorted(by_grep.stdout.splitlines()) == sorted(by_rg.stdout.splitlines())


# -- apply_patch -------------------------------------------------------------------------------------------------

PATCH = """diff --git a/pkg/core.py b/pkg/core.py
--- a/pkg/core.py
+++ b/pkg/core.py
@@ -6,4 +6,4 @@ def parse_one(text):
~
~
 def parse_two(text):
-    return 2
+    return text + text
diff --git a/new/file.py b/new/file.py
new file mode 100644
--- /dev/null
+++ b/new/file.py
@@ -0,0 +1 @@
+x = 1
diff --git a/.hidden/notes.txt b/.hidden/notes.txt
deleted file mode 100644
--- a/.hidden/notes.txt
+++ /dev/null
@@ -1 +0,0 @@
-parse_one is here too
""".replace("~", " ")


def test_a_patch_changes_creates_and_deletes(bench: Bench) -> None:
    said = apply_patch(bench, PATCH)
    assert said == "Applied the patch: created new/file.py, changed pkg/core.py, deleted .hidden/notes.txt."
    assert bench.cell.read("pkg/core.py", max_bytes=1000).endswith(b"return text + text\n")
    paths = {entry.path for entry in bench.cell.list(max_entries=100).entries}
    assert "new/file.py" in paths and ".hidden/notes.txt" not in paths


def test_a_patch_that_does_not_fit_changes_nothing(bench: Bench) -> None:
    before = bench.cell.capture(max_file_bytes=1000, max_bytes=10000, max_files=100, max_depth=9).files
    with pytest.raises(
        PlayerError, match=r"pkg/core.py: hunk 1 .* found '    return 2'.*Nothing was changed"
    ):
        apply_patch(bench, PATCH.replace("-    return 2", "-    return 3"))
    with pytest.raises(PlayerError, match="it is protected here"):
        apply_patch(bench, PATCH.replace("new/file.py", "pkg/other.py"))
    for text in ("", "no patch", "--- a/x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n", PATCH[:-10], PATCH[:-30]):
        with contextlib.suppress(PlayerError):
            assert apply_patch(bench, text) == "The patch changes nothing." and not text
    assert (
        bench.cell.capture(max_file_bytes=1000, max_bytes=10000, max_files=100, max_depth=9).files == before
    )


def test_nothing_is_written_through_a_link(bench: Bench) -> None:
    bench.cell.run(Run(("sh", "-c", "ln -s pkg/core.py link.py")))
    patch = "--- a/link.py\n+++ b/link.py\n@@ -1 +1 @@\n-import os\n+import sys\n"
    with pytest.raises(PlayerError, match=r"link\.py"):
        apply_patch(bench, patch)
    assert bench.cell.read("pkg/core.py", max_bytes=1000).startswith(b"import os")


# -- run_tests ---------------------------------------------------------------------------------------------------


def chosen(wall: Wall, ids: str, task: Task | None = None) -> str:
    task = task or suite()
    files = {**task.start, "tests/test_mine.py": b"def test_mine(): pass\n"}
    cell = open_cell(wall, files, LONG, pytest=True)
    try:
        return run_tests(cell, task, LONG, lambda tests: {}, ids)
    finally:
        cell.close()


def test_chosen_tests_of_the_workspace_are_run(wall: Wall) -> None:
    assert chosen(wall, "tests/test_seen.py::test_tmp") == (
        "PASSED tests/test_seen.py::test_tmp\n1 of 1 chosen test passed"
    )
    assert chosen(wall, "tests/test_mine.py\ntests/test_seen.py::test_double[2]").endswith(
        "1 of 2 chosen tests passed"
    )
    assert "not found: tests/test_none.py" in chosen(wall, "tests/test_none.py")
    assert "not found: tests/test_seen.py::test_none" in chosen(wall, "tests/test_seen.py::test_none")


def test_an_id_that_leads_out_is_refused(wall: Wall) -> None:
    with pytest.raises(PlayerError):
        chosen(wall, "../../etc/passwd::x")


def test_ids_of_other_tasks_are_those_of_visible_tests(wall: Wall) -> None:
    from tiltyard.pool import load

    task = replace(load("builtin")["median"], shell=True)
    cell = open_cell(wall, task.reference.over(task.start), LONG)
    try:
        one = task.visible[0].id
        assert run_tests(cell, task, LONG, lambda tests: {}, one).endswith("1 of 1 visible test passed")
        with pytest.raises(PlayerError, match="no visible test 'nope'"):
            run_tests(cell, task, LONG, lambda tests: {}, "nope")
    finally:
        cell.close()


# -- as actions --------------------------------------------------------------------------------------------------


def test_ids_may_be_a_list() -> None:
    call = parse_action({"tool": "run_tests", "ids": ["a.py::b", "c.py"]}, tools_of(True))
    assert isinstance(call, Call) and call.arguments == {"ids": "a.py::b\nc.py"}
    assert isinstance(parse_action({"tool": "run_tests", "ids": [1]}, tools_of(True)), Refusal)
    assert isinstance(parse_action({"tool": "run_tests", "ids": "a.py"}), Refusal)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on this machine")
def test_an_episode_ends_with_its_patch(wall: Wall) -> None:
    task = suite(shell=True)
    env = CodeEnv([task], wall=wall)
    try:
        env.reset(seed=0)
        patch = "--- a/pkg/__init__.py\n+++ b/pkg/__init__.py\n@@ -1 +1 @@\n-def double(n): return 0\n+def double(n): return n * 2\n"
        said = env.step({"tool": "apply_patch", "patch": patch})[0]
        assert said == "Applied the patch: changed pkg/__init__.py."
        env.step({"tool": "bash", "command": "rm tests/test_seen.py; echo note > note.txt"})
        _, reward, terminated, _, info = env.step({"tool": "submit"})
    finally:
        env.close()
    assert (reward, terminated) == (1.0, True)
    assert info["patch"] == (
        "diff --git a/note.txt b/note.txt\nnew file mode 100644\n--- /dev/null\n+++ b/note.txt\n@@ -0,0 +1 @@\n+note\n"
        "diff --git a/pkg/__init__.py b/pkg/__init__.py\n"
        + patch
        + "diff --git a/tests/test_seen.py b/tests/test_seen.py\n"
        "deleted file mode 100644\n--- a/tests/test_seen.py\n+++ /dev/null\n"
        + info["patch"].partition("+++ /dev/null\n")[2]
    )
