"""This machine's Python as a root folder: what is in it, what is not, and that the same files give the same tar."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tiltyard.cells import rootfs
from tiltyard.cells.programs import Interpreter
from tiltyard.cells.rootfs import MOVED, Machine, there
from tiltyard.errors import ArenaError

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a root folder is for Linux")


@pytest.fixture(scope="module")
def machine() -> Machine:
    return Machine.look(Interpreter(os.path.realpath(sys.executable)))


@pytest.fixture(scope="module")
def tar(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rootfs") / "root.tar"
    with path.open("w+b") as file:
        machine.write(file)
    return path


@pytest.fixture(scope="module")
def inside(tar: Path) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(tar) as opened:
        return {info.name: info for info in opened}


def test_it_has_an_interpreter_its_library_and_a_shell(
    machine: Machine, inside: dict[str, tarfile.TarInfo]
) -> None:
    real = there(machine.real).lstrip("/")
    assert inside[real].isreg() and inside[real].mode & stat.S_IXOTH
    assert inside["usr/local/bin/python3"].linkname == f"/{real}"
    stdlib = there(os.path.dirname(os.__file__)).lstrip("/")  # noqa: PTH120
    assert f"{stdlib}/os.py" in inside and f"{stdlib}/json/decoder.py" in inside
    assert "usr/bin/sh" in inside and any("/libc.so" in name or "/libc.musl" in name for name in inside)
    assert "etc/passwd" in inside


def test_it_has_nothing_else_of_this_machine(inside: dict[str, tarfile.TarInfo]) -> None:
    for name, info in inside.items():
        assert "site-packages" not in name and "dist-packages" not in name and "tiltyard" not in name, name
        assert not name.endswith((".opt-1.pyc", ".opt-2.pyc", ".a")), name
        assert info.isreg() or info.isdir() or info.issym(), name
        assert (info.uid, info.gid, info.uname) == (0, 0, "") and not info.mode & 0o6000, name
        assert not name.startswith("/") and ".." not in name.split("/"), name
    assert {name for name in inside if name.startswith("etc/") and inside[name].isreg()} <= {
        "etc/passwd",
        "etc/group",
        "etc/nsswitch.conf",
        "etc/ld.so.cache",
    }
    assert [name for name in inside if name.startswith(("home/", "tmp/", "proc/", "dev/"))] == []


def test_every_folder_comes_before_what_is_in_it(inside: dict[str, tarfile.TarInfo]) -> None:
    seen: set[str] = set()
    for name in inside:
        above = name.rpartition("/")[0]
        assert not above or above in seen, name
        seen.add(name)


def test_the_same_files_give_the_same_bytes(machine: Machine, tar: Path) -> None:
    again = io.BytesIO()
    machine.write(again)
    assert again.getvalue() == tar.read_bytes()
    assert Machine.look(Interpreter(os.path.realpath(sys.executable))) == machine


def test_packages_come_along_only_when_they_are_asked_for(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    package = next(venv.glob("lib/python*/site-packages")) / "mine.py"
    package.write_text("X = 1\n")
    python = str(venv / "bin/python")
    bare, whole = Machine.look(Interpreter(python)), Machine.look(Interpreter(python, site=True))
    assert str(package) in whole.files and str(package) not in bare.files
    assert not [f for f in whole.files if "-packages" in f and not f.startswith(str(venv))]
    os.utime(package, (1, 1))
    assert Machine.look(Interpreter(python, site=True)).digest != whole.digest


def test_what_cells_mount_over_lies_elsewhere() -> None:
    assert there("/usr/bin/python3") == "/usr/bin/python3" and there("/homes/x") == "/homes/x"
    assert there("/home/me/.pyenv/bin/python3") == f"{MOVED}/home/me/.pyenv/bin/python3"
    assert there("/tmp") == f"{MOVED}/tmp"


def test_a_moved_environment_and_its_libraries_are_found(tmp_path: Path) -> None:
    config = tmp_path / "pyvenv.cfg"
    config.write_text("home = /home/me/py/bin\ninclude-system-site-packages = false\nversion = 3.11.7\n")
    assert rootfs._moved_config(str(config)).splitlines()[:2] == [
        f"home = {MOVED}/home/me/py/bin",
        "include-system-site-packages = false",
    ]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        root = rootfs._Root(tar)
        rootfs._link_moved(root, ["/home/me/py/lib/libpython9.so", "/usr/lib/libz.so.1"])
    with tarfile.open(fileobj=io.BytesIO(out.getvalue())) as tar:
        links = {info.name: info.linkname for info in tar if "libpython9" in info.name}
        assert list(links.values()) == [f"{MOVED}/home/me/py/lib/libpython9.so"]
        assert next(iter(links)).startswith("usr/lib")


def test_an_interpreter_that_is_none(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\nexit 3\n")
    fake.chmod(0o755)
    with pytest.raises(ArenaError, match=f"{fake} can't be asked"):
        Machine.look(Interpreter(str(fake)))
