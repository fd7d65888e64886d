"""The doctor: what it says is what was tried, on this machine as it is and on one that is made worse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tiltyard
from tiltyard.cells import WALLS, doctor, probe_wall
from tiltyard.cells.doctor import WHOLE, Check, Report
from tiltyard.cells.inside import lock

linux = pytest.mark.skipif(lock.supported() is not None, reason=str(lock.supported()))


@pytest.fixture(scope="module")
def report() -> Report:
    return doctor.examine()


def test_every_wall_and_every_part_is_there(report: Report) -> None:
    parts = [(c.wall, c.part) for c in report]
    assert len(parts) == len(set(parts))
    assert {wall for wall, part in parts if part == WHOLE} == set(WALLS)
    assert {part for wall, part in parts if wall == "namespace"} == {
        *(WHOLE, "user namespaces", "pid namespaces", "mount namespaces", "ipc namespaces", "uts namespaces"),
        *("network namespaces", "tmpfs", "root folder", "/proc", "seccomp", "Landlock"),
        *("memory groups", "pids groups", "cpu groups", "overlays", "git"),
    }
    assert any(wall == "container" for wall, _ in parts)


def test_a_wall_works_if_and_only_if_its_probe_says_so(report: Report) -> None:
    for wall in WALLS:
        assert report.has(wall) == (probe_wall(wall) is None), wall
    assert report.has("process")


def test_a_wall_that_works_lacks_nothing_that_it_needs(report: Report) -> None:
    if report.has("namespace"):
        assert [c for c in report if c.wall == "namespace" and c.needed and not c.ok] == []


def test_every_check_says_why_and_what_is_missing_says_how_to_get_it(report: Report) -> None:
    for check in report:
        assert check.why and "\n" not in check.why, check
        assert check.ok or check.how_to_get_it or not check.needed, check
        assert check.ok is True or check.ok is False


def test_the_text_and_the_data_say_the_same(report: Report) -> None:
    text, data = str(report), report.as_json()
    assert json.loads(json.dumps(data)) == data
    assert data["walls"] == {wall: report.has(wall) for wall in dict.fromkeys(c.wall for c in report)}
    for check in report:
        assert check.part in text and check.why in text
    for wall in WALLS:
        assert f"{wall} wall: {'works here' if report.has(wall) else 'can not be had here'}" in text


def test_the_exit_code_is_1_if_only_the_process_wall_is_left() -> None:
    def some(namespace: bool, container: bool) -> Report:
        return Report(
            (
                Check("namespace", WHOLE, namespace, "x"),
                Check("namespace", "pid namespaces", True, "x"),
                Check("container", WHOLE, container, "x"),
                Check("process", WHOLE, True, "x"),
            )
        )

    codes = {(n, c): doctor.exit_code(some(n, c)) for n in (True, False) for c in (True, False)}
    assert codes == {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 1}
    assert "Only the process wall is left" in str(some(False, False))
    assert "Only the process wall is left" not in str(some(True, False))


def test_a_remedy_is_said_once_and_the_marks_are_explained() -> None:
    def part(name: str, ok: bool, needed: bool = True) -> Check:
        return Check("namespace", name, ok, f"{name} it is", "" if ok else "ask root", needed)

    text = str(
        Report((part(WHOLE, False), part("one", False), part("two", True), part("three", False, False)))
    )
    assert text.count("to get it: ask root") == 1 and text.count("to get it: as above") == 2
    assert "NO  one" in text and "no  three" in text and "(NO: the wall needs it; no:" in text
    assert "NO:" not in str(Report((part(WHOLE, True), part("two", True))))


def test_a_podman_beside_a_dead_docker_is_pointed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(name: str, command: tuple[str, ...]) -> Check:
        return Check(
            "container", name, name == "podman", "as it is", "" if name == "podman" else "start it", False
        )

    monkeypatch.setattr(doctor, "_engine", found)
    docker, podman = doctor._engines()
    assert "--wall container:podman" in docker.how_to_get_it and podman.ok
    monkeypatch.setattr(
        doctor, "_engine", lambda name, command: None if name == "docker" else found(name, command)
    )
    assert [check.part for check in doctor._engines()] == ["podman"]


def test_it_leaves_no_group_behind() -> None:
    from tiltyard.cells.inside import cgroup

    doctor.examine()
    for place in cgroup.find()[0]:
        assert [p.name for p in Path(place.path).glob("tiltyard-*-trial")] == []


def in_a_worse_world(worse: str) -> dict[str, Any]:
    """What the doctor says in a process that has made things worse for itself."""
    code = f"""
import json, os
from tiltyard.cells.inside import lock
from tiltyard.cells.inside.trial import _map
uid, gid = os.geteuid(), os.getegid()
{worse}
from tiltyard.cells import doctor
report = doctor.examine()
print(json.dumps([report.exit_code, report.as_json(), str(report)]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        timeout=300,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(tiltyard.__file__).parent.parent),
            "DOCKER_HOST": "unix:///nowhere",
        },
    )
    assert done.returncode == 0, done.stderr.decode()
    code, data, text = json.loads(done.stdout)
    return {"code": code, "text": text, **data, "parts": {(c["wall"], c["part"]): c for c in data["checks"]}}


@linux
def test_with_user_namespaces_turned_off() -> None:
    if probe_wall("namespace") is not None:
        pytest.skip(f"no namespace wall here that could be lost: {probe_wall('namespace')}")
    got = in_a_worse_world(
        "lock.unshare(lock.NEWUSER); _map(uid, gid)\n"
        "with open('/proc/sys/user/max_user_namespaces', 'w') as f: f.write('0')"
    )
    assert got["walls"]["namespace"] is False and got["walls"]["process"] is True
    user = got["parts"]["namespace", "user namespaces"]
    assert user["ok"] is False and "user.max_*_namespaces" in user["why"]
    assert user["how_to_get_it"] == "sysctl -w user.max_user_namespaces=15000"
    assert (
        got["parts"]["namespace", "pid namespaces"]["ok"] is True
    )  # told apart: each part is tried for itself
    assert "namespaces" in got["parts"]["namespace", WHOLE]["why"]
    assert got["code"] == 0 if got["walls"].get("container") else 1


@linux
def test_without_the_right_to_make_namespaces() -> None:
    """As in a container without extra rights: a filter refuses unshare and clone with namespaces."""
    got = in_a_worse_world("lock.no_new_privileges(); lock.Filter(lock.filter_program()).install()")
    for part in ("user namespaces", "pid namespaces", "mount namespaces", "network namespaces", "tmpfs"):
        assert got["parts"]["namespace", part]["ok"] is False, part
    assert got["walls"]["namespace"] is False
    assert got["parts"]["namespace", "seccomp"]["ok"] is True
    assert "NO  user namespaces" in got["text"]


@linux
def test_without_pid_namespaces() -> None:
    if probe_wall("namespace") is not None:
        pytest.skip(f"no namespace wall here that could be lost: {probe_wall('namespace')}")
    got = in_a_worse_world(
        "lock.unshare(lock.NEWUSER); _map(uid, gid)\n"
        "with open('/proc/sys/user/max_pid_namespaces', 'w') as f: f.write('0')"
    )
    assert got["parts"]["namespace", "user namespaces"]["ok"] is True
    assert got["parts"]["namespace", "pid namespaces"]["ok"] is False
    assert "max_pid_namespaces" in got["parts"]["namespace", "pid namespaces"]["how_to_get_it"]
    assert got["walls"]["namespace"] is False
