"""The file tools, on a real cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tiltyard.cells import CellLimits, Run, Wall
from tiltyard.errors import PlayerError
from tiltyard.task import Limits
from tiltyard.tools import hands, text

Make = Callable[..., hands.Bench]


@pytest.fixture
def bench(wall: Wall) -> Iterator[Make]:
    opened = []

    def make(files: dict[str, bytes], limits: Limits | None = None, **protected: str) -> hands.Bench:
        cell = wall.open(files, CellLimits())
        opened.append(cell)
        return hands.Bench(cell, limits or Limits(), {k.replace("__", "."): v for k, v in protected.items()})

    yield make
    for cell in opened:
        cell.close()


def test_view_whole_and_part(bench: Make) -> None:
    b = bench({"a.py": b"one\ntwo\nthree\n", "open.txt": b"no end", "empty": b""})
    assert hands.view_file(b, "a.py") == "a.py (3 lines):\none\ntwo\nthree"
    assert hands.view_file(b, "./a.py", 2, 2) == "a.py (lines 2 to 2 of 3):\ntwo"
    assert hands.view_file(b, "a.py", 2) == "a.py (lines 2 to 3 of 3):\ntwo\nthree"
    assert hands.view_file(b, "a.py", None, 99) == "a.py (3 lines):\none\ntwo\nthree"
    assert hands.view_file(b, "open.txt") == "open.txt (1 line, no newline at the end):\nno end"
    assert hands.view_file(b, "empty") == "empty is empty (0 bytes)."


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [(4, None, "3 lines; start_line 4"), (3, 2, "end_line 2 before start_line 3")],
)
def test_view_beyond(bench: Make, start: int, end: int | None, message: str) -> None:
    with pytest.raises(PlayerError, match=message):
        hands.view_file(bench({"a.py": b"1\n2\n3\n"}), "a.py", start, end)


def test_view_says_what_it_left_out(bench: Make) -> None:
    lines = "\n".join(f"line {n}" for n in range(5000)).encode()
    shown = hands.view_file(bench({"big.txt": lines}, Limits(observation_chars=1000)), "big.txt")
    assert len(shown) <= 1000
    assert "characters left out; give start_line and end_line" in shown
    assert shown.endswith("line 4999")


def test_view_binary_and_strange_bytes(bench: Make) -> None:
    b = bench({"b.bin": b"\0\1\2", "latin.txt": b"caf\xe9\n"})
    with pytest.raises(PlayerError, match="binary file of 3 bytes"):
        hands.view_file(b, "b.bin")
    assert "caf\\xe9" in hands.view_file(b, "latin.txt")


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../x", "a/../../x", "", ".", "a//b", "x\0y", "x" * 300, "a/" * 600 + "x"]
)
@pytest.mark.parametrize("tool", ["view", "write", "replace"])
def test_paths_that_leave(bench: Make, path: str, tool: str) -> None:
    b = bench({"a.py": b"x"})
    with pytest.raises(PlayerError, match="expected one inside the workspace"):
        if tool == "view":
            hands.view_file(b, path)
        elif tool == "write":
            hands.write_file(b, path, "x")
        else:
            hands.replace_text(b, path, "a", "b")


def test_missing_file_is_said_without_host_paths(bench: Make) -> None:
    with pytest.raises(PlayerError, match=r"nope\.py") as caught:
        hands.view_file(bench({"a.py": b"x"}), "nope.py")
    assert "/tmp" not in str(caught.value)


def test_links_are_not_followed(bench: Make) -> None:
    b = bench({"a.py": b"x"})
    b.cell.run(Run(("python", "-c", "import os; os.symlink('/etc/passwd', 'link')")))
    with pytest.raises(PlayerError) as caught:
        hands.view_file(b, "link")
    assert "root:" not in str(caught.value)
    assert "link" in hands.list_files(b)
    hands.write_file(b, "link", "mine\n")
    assert hands.view_file(b, "link") == "link (1 line):\nmine"


def test_list(bench: Make) -> None:
    b = bench({"a.py": b"xx", "pkg/b.py": b"", "test.py": b"1"}, test__py="it is the tests'")
    b.cell.run(Run(("python", "-c", "import os; os.mkdir('void'); os.mkfifo('pipe')")))
    rows = [line.split(maxsplit=1) for line in hands.list_files(b).split("\n")]
    assert rows == [
        ["a.py", "2 bytes"],
        ["pipe", "fifo"],
        ["pkg/b.py", "0 bytes"],
        ["test.py", "1 byte, protected"],
        ["void/", "empty folder"],
    ]


def test_list_nothing(bench: Make) -> None:
    assert hands.list_files(bench({})) == "The workspace is empty."


def test_hostile_names_are_neutral(bench: Make) -> None:
    b = bench({})
    b.cell.run(Run(("python", "-c", "open('a\\x1b[2J\\nb', 'w'); open(b'\\xff', 'w')")))
    shown = text.safe(hands.list_files(b))
    assert "\x1b" not in shown
    assert len(shown.split("\n")) == 2


def test_write_makes_folders_and_counts(bench: Make) -> None:
    b = bench({})
    assert hands.write_file(b, "p/q/r.py", "é = 1\ny") == "Wrote p/q/r.py: 8 bytes, 2 lines."
    assert b.cell.read("p/q/r.py", max_bytes=100) == "é = 1\ny".encode()
    assert hands.write_file(b, "e", "") == "Wrote e: 0 bytes, 0 lines."


def test_write_keeps_every_byte(bench: Make) -> None:
    b = bench({})
    content = "a\r\nb\x1b\0\u2028 \U0001f600"
    hands.write_file(b, "f", content)
    assert b.cell.read("f", max_bytes=100) == content.encode()


def test_protected_is_not_written(bench: Make) -> None:
    b = bench({"t.py": b"keep"}, t__py="the task needs it")
    for change in (
        lambda: hands.write_file(b, "t.py", "x"),
        lambda: hands.write_file(b, "./t.py", "x"),
        lambda: hands.write_file(b, "t.py/x", "x"),
        lambda: hands.replace_text(b, "t.py", "keep", "x"),
    ):
        with pytest.raises(PlayerError, match=r"t\.py is protected: the task needs it"):
            change()
    assert b.cell.read("t.py", max_bytes=100) == b"keep"


def test_too_big(bench: Make) -> None:
    b = bench({"a": b"x"}, Limits(file_bytes=1000))
    with pytest.raises(PlayerError, match="1001 bytes for b; expected at most 1000"):
        hands.write_file(b, "b", "x" * 1001)
    with pytest.raises(PlayerError, match="at most 1000"):
        hands.replace_text(b, "a", "x", "y" * 2000)


def test_replace(bench: Make) -> None:
    b = bench({"a.py": b"one\ntwo\ntwo\naaa\n"})
    assert hands.replace_text(b, "a.py", "one\n", "1\n1\n") == (
        "Replaced the text at line 1 of a.py; the file has 5 lines now."
    )
    assert b.cell.read("a.py", max_bytes=100) == b"1\n1\ntwo\ntwo\naaa\n"
    for old, message in [
        ("two", "found 2 times"),
        ("three", "found 0 times"),
        ("aa", "found 2 times"),
        ("", "empty 'old'"),
    ]:
        with pytest.raises(PlayerError, match=message):
            hands.replace_text(b, "a.py", old, "x")
    assert b.cell.read("a.py", max_bytes=100) == b"1\n1\ntwo\ntwo\naaa\n"


def test_replace_in_bytes_that_are_no_text(bench: Make) -> None:
    with pytest.raises(PlayerError, match="not valid UTF-8"):
        hands.replace_text(bench({"x": b"\xff a"}), "x", "a", "b")
