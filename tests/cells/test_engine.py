"""Container engines: what they refuse and how that is said, images, other ways to speak, and collecting leftovers."""

# ruff: noqa: F401, F811  (fixtures are imported and asked for by the same name)
from __future__ import annotations

import contextlib
import io
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from conformance import LONG, eventually, py, said, still_works
from engine_fixture import Engine, Unavailable, docker, engine_of_the_tests, running, unmount_below

from tiltyard.cells import Cell, CellLimits
from tiltyard.cells import engine as engines
from tiltyard.cells import image as images
from tiltyard.cells.collect import collect, is_left, superfluous
from tiltyard.cells.container import ContainerWall
from tiltyard.cells.engine import Box, EngineError, Found, connect
from tiltyard.cells.engine_command import CommandEngine
from tiltyard.cells.engine_http import HttpEngine
from tiltyard.cells.owner import LABEL, Owner, lives, owner_id
from tiltyard.cells.reach import PREFIX
from tiltyard.errors import ArenaError, UsageError

pytestmark = pytest.mark.xdist_group("container")


@pytest.fixture(scope="module")
def wall(docker: Engine) -> Iterator[ContainerWall]:
    wall = ContainerWall()
    yield wall
    wall.close()


def refused(wall: ContainerWall) -> str:
    with pytest.raises(ArenaError) as error:
        wall.open({}, CellLimits())
    return str(error.value)


# --------------------------------------------------------------------------------------------- no engine at all


def test_no_engine_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(engines, "docker_socket", lambda: None)
    with pytest.raises(ArenaError, match=r"apt-get install .*docker\.io"):
        connect()
    for kind in ("docker", "podman"):
        with pytest.raises(ArenaError, match=f"no program '{kind}'.*apt-get install"):
            connect(kind)
    with pytest.raises(UsageError, match=r"'rkt'.*docker, podman"):
        connect("rkt")


def test_an_engine_that_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    assert f"{tmp_path}/none.sock: No such file or directory; start the engine" in refused(ContainerWall())
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(f"{tmp_path}/dead.sock")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/dead.sock")
    assert "Connection refused; start the engine" in refused(ContainerWall())


def test_an_engine_that_talks_nonsense(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{tmp_path}/s.sock")
        listener.listen(4)
        for answer in (b"", b"hello\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n???"):

            def serve(answer: bytes = answer) -> None:
                sock, _ = listener.accept()
                with sock:
                    sock.recv(1 << 16)
                    sock.sendall(answer)

            thread = threading.Thread(target=serve)
            thread.start()
            with pytest.raises(EngineError, match=r"does not answer|no JSON"):
                HttpEngine(f"{tmp_path}/s.sock").about()
            thread.join()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not")
def test_a_socket_that_is_not_for_us(docker: Engine) -> None:
    told, tell = os.pipe()
    folder = docker.folder.parent
    mode = folder.stat().st_mode
    folder.chmod(0o755)
    docker.folder.chmod(0o755)
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            os.setgroups([])
            os.setresuid(65534, 65534, 65534)
            try:
                HttpEngine(str(docker.socket)).about()
                os.write(tell, b"it answered")
            except ArenaError as error:
                os.write(tell, str(error).encode())
        os._exit(0)
    os.close(tell)
    os.waitpid(pid, 0)
    folder.chmod(mode)
    with open(told, "rb") as file:
        assert b"Permission denied; your user needs the right to use it" in file.read()


# ----------------------------------------------------------------------------------------------- it refuses


def test_an_image_that_can_not_be_pulled(docker: Engine) -> None:
    text = refused(ContainerWall(image="registry.invalid:5000/no/such:image"))
    assert "pulling the image 'registry.invalid:5000/no/such:image': docker says: " in text
    assert "registry.invalid" in text.partition("docker says: ")[2]


def test_an_image_without_python(docker: Engine) -> None:
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as out:
        info = tarfile.TarInfo("etc/motd")
        info.size = 2
        out.addfile(info, io.BytesIO(b"hi"))
    tar.seek(0)
    connect().take_in(tar, "ty-empty:1", ['CMD ["x"]'])
    text = refused(ContainerWall(image="ty-empty:1"))
    assert "building an image: docker says:" in text and "python3" in text


def test_a_name_that_is_taken(wall: ContainerWall) -> None:
    box = replace(wall.box(CellLimits()), argv=("sleep", "1000"))
    stream = wall.engine.run(box)
    with pytest.raises(EngineError, match=rf"docker says: .*{box.name}.*already in use"):
        wall.engine.run(box)
    assert [f.running for f in wall.engine.containers(LABEL) if f.name == box.name] == [True]
    stream.close()
    assert wall.engine.kill(box.name)
    assert not wall.engine.kill(box.name)


def test_a_program_that_is_not_in_the_image_is_said_and_nothing_is_left(wall: ContainerWall) -> None:
    box = replace(wall.box(CellLimits()), argv=("/no/such/program",))
    with pytest.raises(EngineError, match=r"starting a container: docker says: .*no/such/program"):
        wall.engine.run(box)
    assert eventually(lambda: box.name not in [f.name for f in wall.engine.containers(LABEL)])


def test_a_keeper_that_does_not_come_up_says_why(
    wall: ContainerWall, monkeypatch: pytest.MonkeyPatch
) -> None:
    for transport in ("socket", "stream"):
        broken = ContainerWall(transport=transport)
        argv = ("python3", "-c", "import sys; sys.exit('these are my last words')")
        monkeypatch.setattr(broken, "_argv", lambda argv=argv: argv)
        assert "these are my last words" in refused(broken)
    assert eventually(lambda: wall.engine.containers(f"{LABEL}={owner_id()}") == [])


def test_an_image_that_was_removed_is_made_again(docker: Engine) -> None:
    wall = ContainerWall()
    with contextlib.closing(wall.open({}, CellLimits())):
        pass
    name = wall.ready().image
    assert eventually(lambda: not wall.engine.containers(f"{LABEL}={owner_id()}"))
    wall.engine.remove_image(name)
    assert wall.engine.image_id(name) is None
    with contextlib.closing(wall.open({}, CellLimits())) as cell:
        still_works(cell)
    assert wall.ready().image == name and wall.engine.image_id(name) is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_is_said(docker: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix=f"ty-{os.getpid()}-") as folder:
        small = Path(folder) / "engine"
        (small / "data").mkdir(parents=True)
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=24m", "small", small / "data"],
            capture_output=True,
            check=False,
        )
        if mounted.returncode != 0:
            pytest.skip(f"no small disk can be mounted: {mounted.stderr.decode()}")
        try:
            with running(small) as engine:
                monkeypatch.setenv("DOCKER_HOST", engine.host)
                text = refused(ContainerWall())
        except Unavailable as reason:
            pytest.skip(str(reason))
        finally:
            subprocess.run(["umount", "-l", small / "data"], capture_output=True, check=False)
    assert "taking an image in: docker says: " in text and "no space left on device" in text


def test_an_engine_that_dies_and_comes_back(docker: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        tempfile.TemporaryDirectory(prefix=f"ty-{os.getpid()}-") as folder,
        running(Path(folder) / "engine") as engine,
    ):
        monkeypatch.setenv("DOCKER_HOST", engine.host)
        wall = ContainerWall()
        cell = wall.open({}, CellLimits())
        engine.kill()
        still_works(cell)  # its keeper needs no engine
        assert "start the engine" in refused(wall)
        cell.close()
        engine.up("overlay2" if (engine.folder / "data/overlay2").exists() else "vfs")
        with contextlib.closing(wall.open({}, CellLimits())) as cell:
            still_works(cell)
        assert eventually(lambda: wall.engine.containers(LABEL) == [])


# ------------------------------------------------------------------------------------------------ images


def task_folder(tmp_path: Path, base: str) -> Path:
    folder = tmp_path / "task"
    folder.mkdir()
    (folder / "data.txt").write_text("from the task\n")
    (folder / "Dockerfile").write_text(
        f"FROM {base}\nCOPY data.txt /data/\nENV GREETING=hello\nRUN echo made > /data/made\n"
    )
    return folder


def test_a_tasks_image_is_built_once_and_used_by_its_digest(wall: ContainerWall, tmp_path: Path) -> None:
    base = images.of_machine(wall.engine, wall._interpreter)
    folder = task_folder(tmp_path, base)
    digest = images.build(wall.engine, folder, network="none")
    assert digest.startswith("sha256:") and images.build(wall.engine, folder, network="none") == digest
    other = ContainerWall(image=digest)
    code = (
        "import os; print(open('/data/data.txt').read() + open('/data/made').read() + os.environ['GREETING'])"
    )
    with contextlib.closing(other.open({}, CellLimits())) as cell:
        assert said(cell, code) == "from the task\nmade\nhello"
    assert other.image_digest not in (digest, wall.image_digest)
    (folder / "data.txt").write_text("changed\n")
    assert images.build(wall.engine, folder, network="none") != digest


def test_a_build_that_fails_has_the_engines_words(wall: ContainerWall, tmp_path: Path) -> None:
    base = images.of_machine(wall.engine, wall._interpreter)
    folder = task_folder(tmp_path, base)
    (folder / "Dockerfile").write_text(f"FROM {base}\nRUN echo so far; exit 3\n")
    with pytest.raises(ArenaError, match=r"building an image: docker says: .*exit 3.*code: 3") as error:
        images.build(wall.engine, folder, network="none")
    assert "so far" in str(error.value)
    (folder / "Dockerfile").unlink()
    with pytest.raises(UsageError, match="'Dockerfile'"):
        images.build(wall.engine, folder)


def test_the_same_machine_has_the_same_image(wall: ContainerWall, docker: Engine) -> None:
    assert ContainerWall().ready().image == wall.ready().image


# -------------------------------------------------------------------------------------- other ways to speak


@pytest.fixture(scope="module")
def command(docker: Engine) -> CommandEngine:
    path = shutil.which("docker")
    if path is None:
        pytest.skip("there is no docker command here, only its engine")
    return CommandEngine("docker", path)


@pytest.mark.parametrize("mode", ["keeper", "exec", "run"])
def test_the_command_does_as_well(command: CommandEngine, wall: ContainerWall, mode: str) -> None:
    other = ContainerWall(engine=command, mode=mode)
    with contextlib.closing(other.open({"a": b"1"}, CellLimits())) as cell:
        assert said(cell, "print(open('a').read())") == "1"
        assert py(cell, "import time; time.sleep(1000)", wall_s=0.5).timed_out
        still_works(cell)
    assert eventually(lambda: command.containers(f"{LABEL}={owner_id()}") == [])


def test_the_command_and_the_interface_see_the_same(command: CommandEngine, wall: ContainerWall) -> None:
    with contextlib.closing(wall.open({}, CellLimits())):
        by_http, by_command = wall.engine.containers(LABEL), command.containers(LABEL)
    assert [(f.id, f.name, dict(f.labels), f.running, f.created) for f in by_http] == [
        (f.id, f.name, dict(f.labels), f.running, f.created) for f in by_command
    ]
    one, two = wall.engine.images(images.LABEL), command.images(images.LABEL)
    assert {(f.id, f.labels[images.LABEL]) for f in one} == {(f.id, f.labels[images.LABEL]) for f in two}
    assert replace(wall.engine.about(), local=False) == command.about()
    assert command.image_id("no-such-image:1") is wall.engine.image_id("no-such-image:1") is None
    assert command.kill("tiltyard-none") is wall.engine.kill("tiltyard-none") is False
    with pytest.raises(EngineError, match=r"docker says: .*registry.invalid"):
        command.pull("registry.invalid:5000/no/such:image")


def podman_cell(folder: str, patch: pytest.MonkeyPatch) -> tuple[ContainerWall, Cell]:
    """A cell of podman's, with storage of the test's own and whatever runtime works on this machine."""
    why = ""
    for driver, runtime in (("overlay", None), ("overlay", "runc"), ("vfs", "runc")):
        conf = Path(folder) / f"{driver}.conf"
        places = f'runroot = "{folder}/{driver}-run"\ngraphroot = "{folder}/{driver}"\n'
        conf.write_text(f'[storage]\ndriver = "{driver}"\n{places}')
        patch.setenv("CONTAINERS_STORAGE_CONF", str(conf))
        wall = ContainerWall(engine="podman", runtime=runtime)
        try:
            return wall, wall.open({"a": b"1"}, CellLimits())
        except ArenaError as error:
            why = str(error)
    pytest.skip(f"podman can't run a container here: {why}")


def test_podman(monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("podman") is None:
        pytest.skip("there is no podman here")
    code = "import os; print(open('a').read(), os.getuid(), os.getcwd())"
    with tempfile.TemporaryDirectory(prefix="ty-", ignore_cleanup_errors=True) as folder:
        try:
            wall, cell = podman_cell(folder, monkeypatch)
            with contextlib.closing(cell):
                assert said(cell, code) == "1 1000 /workspace"
                assert py(cell, "import time; time.sleep(1000)", wall_s=0.5).timed_out
                still_works(cell)
            assert eventually(lambda: wall.engine.containers(LABEL) == [])
            assert any("podman" in text for text in wall.weaknesses)
        finally:
            unmount_below(Path(folder))  # podman keeps its store mounted


# ------------------------------------------------------------------------------------------------ owners


def test_an_owner_as_text() -> None:
    me = owner_id()
    assert Owner.parse(str(me)) == me and lives(me) is True
    assert Owner.parse("") is None and Owner.parse("x:1:2:3") is None and Owner.parse("1:2:3") is None
    assert lives(replace(me, start="1")) is False
    assert lives(replace(me, boot="another-boot")) is None
    assert lives(replace(me, namespace="1")) is None
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    start = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19]
    owner = replace(me, pid=child.pid, start=start)
    assert lives(owner) is True
    child.kill()
    assert eventually(lambda: lives(owner) is False)  # a zombie is as dead
    child.communicate()
    assert lives(owner) is False


def test_what_counts_as_left() -> None:
    me, now = owner_id(), time.time()
    dead = replace(me, start="1")
    elsewhere = replace(me, boot="another-boot")

    def found(owner: object, *, running: bool, age: float = 10.0) -> Found:
        return Found("id", "name", {LABEL: str(owner)}, running, now - age)

    assert is_left(found(dead, running=True)) and is_left(found(dead, running=False))
    assert not is_left(found(me, running=True)) and not is_left(found(me, running=False, age=1e6))
    assert not is_left(found(elsewhere, running=True, age=1e6))
    assert not is_left(found(elsewhere, running=False))
    assert is_left(found(elsewhere, running=False, age=1e6))
    assert not is_left(found("garbage", running=True)) and is_left(found("garbage", running=False, age=1e6))


def test_which_images_are_superfluous() -> None:
    def found(kind: str, age: int) -> Found:
        return Found(f"{kind}{age}", f"{kind}{age}", {images.LABEL: kind}, created=1000.0 - age)

    all_of_them = [found(kind, age) for kind in ("cell", "base", "task") for age in range(4)]
    assert [f.name for f in superfluous(all_of_them)] == ["cell2", "cell3", "base2", "base3"]


def test_collecting_takes_what_dead_owners_left_and_nothing_else(wall: ContainerWall) -> None:
    me = owner_id()
    engine = wall.engine
    assert isinstance(engine, HttpEngine)
    folder = Path(tempfile.gettempdir()) / f"{PREFIX}{me.pid}-1-test"
    folder.mkdir()

    def box(owner: object, **more: object) -> Box:
        labels = {LABEL: str(owner)} if owner else {}
        return replace(wall.box(CellLimits()), argv=("sleep", "1000"), labels=labels, **more)  # type: ignore[arg-type]

    left = box(replace(me, start="1"))
    elsewhere = box(replace(me, boot="another"))
    somebodys = box("")
    streams = [engine.run(one) for one in (left, elsewhere, somebodys)]
    never_started = box(replace(me, pid=4_000_000, start="9"))
    from tiltyard.cells.engine_http import _container

    engine._call(
        "POST", "/containers/create", "t", query={"name": never_started.name}, body=_container(never_started)
    )
    cell = wall.open({}, CellLimits())
    try:
        gone = collect(engine)
        assert gone == sorted(
            [f"container {left.name}", f"container {never_started.name}", f"folder {folder}"]
        )
        assert not folder.exists() and collect() == []
        still_works(cell)
        there = {f.name for f in engine.containers(LABEL)}
        assert elsewhere.name in there and left.name not in there
        assert engine._json(f"/containers/{somebodys.name}/json", "t")["State"]["Running"]
    finally:
        cell.close()
        for stream in streams:
            stream.close()
        for one in (left, elsewhere, somebodys, never_started):
            engine.kill(one.name)


def test_collecting_images_leaves_the_newest(wall: ContainerWall, tmp_path: Path) -> None:
    base = images.of_machine(wall.engine, wall._interpreter)
    for n in range(3):
        (tmp_path / "Dockerfile").write_text(f'FROM {base}\nENV N={n}\nLABEL {images.LABEL}="cell"\n')
        images.build(wall.engine, tmp_path, network="none")
    before = [f for f in wall.engine.images(images.LABEL) if f.labels[images.LABEL] == "cell"]
    gone = collect(wall.engine, images=True)
    after = [f for f in wall.engine.images(images.LABEL) if f.labels[images.LABEL] == "cell"]
    assert len(before) >= 4 and len(after) == 2 and len(gone) >= len(before) - 2
    assert all(text.startswith("image ") for text in gone)
    with contextlib.closing(ContainerWall().open({}, CellLimits())) as cell:
        still_works(cell)


def test_an_engine_that_does_not_answer_can_not_be_collected(tmp_path: Path) -> None:
    with pytest.raises(ArenaError, match="start the engine"):
        collect(HttpEngine(f"{tmp_path}/none.sock"))
