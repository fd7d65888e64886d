"""A docker engine of the tests' own: no systemd, no bridge, no iptables, on a private socket; gone afterwards.

``start(folder)`` needs root and dockerd; where that is not to be had, it is ``Unavailable`` with the reason. An engine
that is running already is used instead when TILTYARD_TEST_DOCKER_HOST names it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PREFIX = "ty-"
UP_S = 60.0
DOWN_S = 60.0
_SBIN = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


class Unavailable(Exception):
    """There is no engine to be had here; the text says why."""


def why_not() -> str | None:
    """Why no engine can be started here, or None."""
    if not sys.platform.startswith("linux"):
        return f"a docker engine needs Linux; this is {sys.platform}"
    missing = [name for name in ("dockerd", "containerd", "runc") if not shutil.which(name, path=_SBIN)]
    if missing:
        return (
            f"no {', '.join(missing)} here; 'apt-get install -y --no-install-recommends docker.io iptables"
            " busybox-static' brings what these tests need"
        )
    if os.geteuid() != 0:
        return "only root can start a docker engine"
    return None


class Engine:
    """A dockerd and its folder (None: somebody else's engine). ``host`` is its DOCKER_HOST."""

    def __init__(self, folder: Path | None, host: str = "") -> None:
        self.at = folder
        self.host = host or f"unix://{folder}/s.sock"
        if len(self.host) > 100:
            raise Unavailable(f"the path of a socket can't be as long as {self.host}")
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def folder(self) -> Path:
        if self.at is None:
            pytest.skip("this engine is somebody else's")
        return self.at

    @property
    def socket(self) -> Path:
        return Path(self.host.removeprefix("unix://"))

    def up(self, driver: str) -> None:
        """Start it. Unavailable with its last words if it does not come up."""
        dockerd = shutil.which("dockerd", path=_SBIN)
        assert dockerd is not None
        argv = [
            dockerd,
            f"--host={self.host}",
            f"--data-root={self.folder}/data",
            f"--exec-root={self.folder}/exec",
        ]
        argv += [
            f"--pidfile={self.folder}/pid",
            "--iptables=false",
            "--ip6tables=false",
            "--ip-forward=false",
        ]
        argv += ["--ip-masq=false", "--bridge=none", f"--storage-driver={driver}", "--log-level=warn"]
        argv += ["--exec-opt=native.cgroupdriver=cgroupfs", f"--config-file={self.folder}/none.json"]
        (self.folder / "none.json").write_text("{}")  # this machine's own configuration is not ours to use
        if shutil.which("setpriv"):  # a run that is killed leaves no engine
            argv = ["setpriv", "--pdeathsig", "TERM", *argv]
        log = self.folder / "log"
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, "PATH": _SBIN},
                start_new_session=True,
            )
        end = time.monotonic() + UP_S
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > end:
                said = log.read_text(errors="replace")[-1000:]
                self.down()
                raise Unavailable(f"dockerd does not come up: {said}")
            time.sleep(0.1)

    def _answers(self) -> bool:
        from tiltyard.cells.engine_http import HttpEngine
        from tiltyard.errors import ArenaError

        try:
            HttpEngine(str(self.socket)).about()
        except ArenaError:
            return False
        return True

    def kill(self) -> None:
        """As if the machine had taken it: no farewell to its containers, which live on below their shims."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self._end("bin/containerd\0", "/containerd\0", "containerd\0--config")
        for stale in (self.folder / "exec/containerd").glob("containerd*.[ps][io][dc]*"):
            stale.unlink(missing_ok=True)

    def down(self) -> None:
        """Stop it, whatever it has in hand, and unmount what it has mounted."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(DOWN_S)
            except subprocess.TimeoutExpired:
                self.kill()
        self._end("containerd", "dockerd")
        unmount_below(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, *names: str) -> None:
        """Processes of this engine with one of these in their command line, if dockerd had no time to end them."""
        mark = f"{self.folder}/".encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with contextlib.suppress(OSError):
                    line = (entry / "cmdline").read_bytes()
                    if mark in line and any(name.encode() in line for name in names):
                        os.kill(int(entry.name), signal.SIGKILL)


def unmount_below(folder: Path) -> None:
    """What an engine has mounted in a folder of its own, the last one first."""
    for _ in range(3):
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
        for mount in sorted((line.split()[1] for line in lines), reverse=True):
            if mount.startswith(f"{folder}/"):
                subprocess.run(["umount", "-l", mount], capture_output=True, check=False)


def sweep() -> None:
    """Take down what runs that were killed have left."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        pid = left.name.removeprefix(PREFIX).partition("-")[0]
        if why_not() is None and pid.isdecimal() and not Path(f"/proc/{pid}").exists():
            Engine(left / "engine").down()
            shutil.rmtree(left, ignore_errors=True)


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Engine]:
    """An engine in this folder, or Unavailable."""
    reason = why_not()
    if reason is not None:
        raise Unavailable(reason)
    folder.mkdir(exist_ok=True)
    engine = Engine(folder)
    try:
        try:
            engine.up("overlay2")
        except Unavailable:  # a folder that is on an overlay itself
            folder.mkdir(exist_ok=True)
            engine.up("vfs")
        yield engine
    finally:
        engine.down()


@pytest.fixture(scope="session")
def engine_of_the_tests() -> Iterator[Engine | str]:
    """An engine, or why there can be none."""
    given = os.environ.get("TILTYARD_TEST_DOCKER_HOST")
    if given:
        yield Engine(None, given)
        return
    sweep()
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-", ignore_cleanup_errors=True) as folder:
        try:
            with running(Path(folder) / "engine") as engine:
                yield engine
        except Unavailable as reason:
            yield str(reason)


@pytest.fixture(scope="module")
def docker(engine_of_the_tests: Engine | str) -> Iterator[Engine]:
    """The engine, which DOCKER_HOST names while a module's tests run; skipped with the reason if there is none."""
    if isinstance(engine_of_the_tests, str):
        pytest.skip(engine_of_the_tests)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", engine_of_the_tests.host)
        yield engine_of_the_tests
