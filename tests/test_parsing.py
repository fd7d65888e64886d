"""Parsing from many threads at once."""

from __future__ import annotations

import gc
import os
import sys
import threading

import pytest

from tiltyard.parsing import alone, parse_expression, parse_source

SOURCE = "\n".join(f"x = {'(' * 20}a + b{')' * 20}[{i}] + f(a, [b, {{c: d}}])" for i in range(100))


class Cycle:
    """Garbage with a finalizer: where it is collected in the middle of a parse, another thread gets its turn there."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        for _ in range(20):
            pass


def test_threads_that_parse_at_once_do_not_disturb_each_other() -> None:
    wrong: list[BaseException] = []

    def parse_often() -> None:
        for _ in range(60):
            Cycle()
            try:
                assert len(parse_source(SOURCE).body) == 100
                alone(parse_source, SOURCE)
            except BaseException as error:
                wrong.append(error)
                return

    before, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(50, 5, 5)
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=parse_often) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.set_threshold(*before)
        sys.setswitchinterval(interval)
    assert not wrong


def test_what_is_no_python_raises() -> None:
    with pytest.raises(SyntaxError):
        parse_source("def")
    assert parse_expression("1 + 2").body


def test_a_forked_child_can_parse_while_its_parent_does() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        inside.set()
        go_on.wait(60)

    thread = threading.Thread(target=alone, args=(hold,))
    thread.start()
    assert inside.wait(60)
    pid = os.fork()
    if pid == 0:
        parse_source("x = 1")
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    go_on.set()
    thread.join()
