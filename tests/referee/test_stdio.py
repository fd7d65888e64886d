"""Grading programs: bytes in, bytes out, exit code."""

from __future__ import annotations

import pytest

from tiltyard.cells.protocol import RunResult
from tiltyard.referee import Referee
from tiltyard.referee.stdio import judge
from tiltyard.task import Files, Limits, Task, Test

ECHO = "import sys\nfor line in sys.stdin:\n    print(line.strip()[::-1])\n"


def program(tests: list[Test], source: str = ECHO, **fields: object) -> Task:
    return Task(
        "io",
        "p",
        Files({"solution.py": ""}),
        tuple(tests),
        Files({"solution.py": source}),
        grading="stdio",
        **fields,
    )  # type: ignore[arg-type]


def result(stdout: bytes, rc: int = 0, **fields: object) -> RunResult:
    return RunResult(rc, stdout, b"", False, 0.0, **fields)  # type: ignore[arg-type]


def test_a_program_is_graded(wall) -> None:
    task = program(
        [
            Test("a", stdin="abc\n", stdout="cba\n"),
            Test("b", stdin="", stdout=""),
            Test("c", stdin="é\n", stdout="é"),
            Test("d", stdin="x", stdout="y"),
        ]
    )
    verdict = Referee(wall).grade(task, task.reference)
    assert [(o.id, o.reason) for o in verdict.outcomes] == [
        ("a", ""),
        ("b", ""),
        ("c", ""),
        ("d", "wrong output"),
    ]
    assert (verdict.reward, verdict.graded) == (0.75, "stdio")


def test_arguments_exit_codes_and_other_files(wall) -> None:
    source = "import sys, helper\nprint(helper.join(sys.argv[1:]))\nsys.exit(3)\n"
    task = program(
        [Test("a", args=("x", "-y z"), stdout="x|-y z", exit_code=3), Test("b", stdout="", exit_code=0)],
        source,
    )
    files = Files({"solution.py": source, "helper.py": "join = '|'.join\n"})
    verdict = Referee(wall).grade(task, files)
    assert [o.reason for o in verdict.outcomes] == ["", "exit code 3, expected 0"]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("while True: pass", "timed out"),
        ("import os; os.kill(os.getpid(), 9)", "killed by signal 9"),
        ("1/0", "exit code 1, expected 0"),
        ("while True: print('x' * 10000)", "timed out"),
        ("print('x' * 10_000_000)", "too much output"),
        ("import sys; sys.stdout.buffer.write(b'\\xff')", "output that is not UTF-8"),
        ("import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(300)\nprint('cba')", ""),
    ],
)
def test_what_a_program_may_do_to_fail(wall, source: str, reason: str) -> None:
    task = program([Test("a", stdin="abc", stdout="cba", time_s=2.0)])
    verdict = Referee(wall).grade(task, Files({"solution.py": source}))
    assert verdict.void is None
    assert verdict.outcomes[0].reason == reason


def test_no_file_of_one_test_reaches_the_next(wall) -> None:
    source = "import os\nprint(os.path.exists('seen'))\nopen('seen', 'w').close()\n"
    task = program([Test("a", stdout="False"), Test("b", stdout="False")], source)
    assert Referee(wall).grade(task, task.reference).reward == 1.0


def test_the_expected_output_is_nowhere_in_the_cell(wall) -> None:
    source = (
        "import os\nfor d, _, fs in os.walk('/workspace' if os.path.isdir('/workspace') else '.'):\n    print(sorted(fs))\n"
        "print('canary-8842' in str(os.environ))"
    )
    task = program([Test("a", stdout="canary-8842"), Test("b", stdout="['solution.py']\nFalse")], source)
    verdict = Referee(wall).grade(task, task.reference)
    assert [o.passed for o in verdict.outcomes] == [False, True]


def test_after_a_time_out_no_more_is_run_where_one_failure_decides(wall) -> None:
    task = program([Test("a", stdout=""), Test("b", stdout="")], reward="all", limits=Limits(test_s=0.5))
    verdict = Referee(wall).grade(task, Files({"solution.py": "while True: pass"}))
    assert [o.reason for o in verdict.outcomes] == ["timed out", "not run: a test before it timed out"]


@pytest.mark.parametrize(
    ("match", "want", "got", "ok"),
    [
        ("exact", "a\n", b"a\n", True), ("exact", "a\n", b"a", False), ("exact", "é", "é".encode(), True),
        ("lines", "a\nb", b"a  \r\nb\n\n", True), ("lines", "a\nb", b"a\n\nb", False), ("lines", "a", b" a", False),
        ("tokens", "a b\nc", b"a\nb c", True), ("tokens", "a b", b"ab", False), ("tokens", "1", b"1.0", False),
        ("numbers", "1.5 x", b"1.5000001 x", True), ("numbers", "1.5", b"1.6", False), ("numbers", "1.5", b"nan", False),
        ("numbers", "1.5", b"inf", False), ("numbers", "nan", b"nan", True), ("numbers", "15", b"1_5", False),
        ("numbers", "1", b"1 2", False), ("numbers", "3", "٣".encode(), False), ("numbers", "1.5", b"y", False),
        ("lines", "a", b"\xff", False),
    ],
)  # fmt: skip
def test_matching(match: str, want: str, got: bytes, ok: bool) -> None:
    assert (judge(Test("a", stdout=want, match=match, tolerance=1e-6), result(got)) == "") is ok


def test_what_was_cut_is_never_right() -> None:
    assert judge(Test("a", stdout="ab"), result(b"ab", stdout_dropped=5)) == "too much output"
