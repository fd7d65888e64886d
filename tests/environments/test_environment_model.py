"""Environments as data: what is pinned, digests, and which tasks have one."""

from __future__ import annotations

import pickle

import pytest

from tiltyard.environments import BuildError, Environment, environment_of
from tiltyard.environments.model import RUNNING
from tiltyard.errors import UsageError
from tiltyard.task import Files, Metadata, Task, Test

SHA = "sha256:" + "0" * 64


def task(**metadata: object) -> Task:
    return Task(
        id="t",
        prompt="p",
        start=Files({"solution.py": ""}),
        hidden=(Test("a", code="assert True"),),
        reference=Files({"solution.py": "x = 1"}),
        metadata=Metadata(**metadata),  # type: ignore[arg-type]
    )


def test_the_digest_is_of_the_version_and_the_pins() -> None:
    one = Environment("3.11", ("six==1.16.0", "attrs==22.2.0"))
    assert one.packages == ("attrs==22.2.0", "six==1.16.0")
    assert one.digest == Environment("3.11.7", ("attrs==22.2.0", "six==1.16.0")).digest
    assert one.digest != Environment("3.12", one.packages).digest
    assert one.digest != Environment("3.11", ("attrs==22.2.0", "six==1.16.1")).digest
    assert Environment("", one.packages).digest == Environment(RUNNING, one.packages).digest
    assert pickle.loads(pickle.dumps(one)) == one
    # it names folders on disks: it must be the same tomorrow
    assert one.digest == "637c4cf268374c11cff087f8d2e211084acfd0c677d68d450ce1872566a77322"


def test_hashes_are_no_part_of_the_digest() -> None:
    plain = Environment("3.11", ("six==1.16.0",))
    locked = Environment("3.11", (f"six==1.16.0 --hash={SHA} --hash={SHA}",))
    assert locked.digest == plain.digest
    assert locked.locked and not plain.locked
    assert locked.pins == {"six": "six==1.16.0"}


@pytest.mark.parametrize(
    ("python", "packages", "said"),
    [
        ("3.11", ("six",), "not pinned"),
        ("3.11", ("six>=1.0",), "not pinned"),
        ("3.11", ("six==1.*",), "not pinned"),
        ("3.11", ("six @ https://example.org/six.whl",), "not pinned"),
        ("3.11", ("=== nothing",), "no requirement"),
        ("3.11", ("Six==1.0", "six==1.1"), "each name once"),
        ("three", (), "expected one like '3.11'"),
    ],
)
def test_what_is_no_environment_says_so(python: str, packages: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Environment(python, packages)


def test_which_tasks_have_one() -> None:
    assert environment_of(task()) is None
    assert environment_of(task(python=RUNNING)) is None, "the interpreter that runs Tiltyard is no other one"
    assert environment_of(task(packages=("numpy",))) is None, (
        "not pinned: the wall's own interpreter has to do"
    )
    assert environment_of(task(python=">=3.8")) is None
    assert environment_of(task(packages=("six==1.16.0",))) == Environment("", ("six==1.16.0",))
    assert environment_of(task(python="2.7")) == Environment("2.7")


def test_pins_that_exclude_each_other_are_the_arenas_failure_and_no_crash() -> None:
    with pytest.raises(BuildError, match="each name once") as caught:
        environment_of(task(packages=("Six==1.0", "six==1.1")))
    assert caught.value.kind == "conflict"
