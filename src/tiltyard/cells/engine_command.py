"""An engine through its command line: podman, and docker where it is spoken to over tcp or ssh or by a context.

Each call is a process of the command. A container's stream is that process's pipes; killing it ends neither the
container nor what was executed in it: those end when their input does.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from typing import IO, Any

from tiltyard.cells.engine import BUILD_S, CALL_S, About, Box, EngineError, Found, discard, shares_kernel

_CHUNK = 1 << 18
_MAX_WORDS = 8192
_MISSING = ("no such", "not found", "not known", "does not exist", "no container with name", "unable to find")

_streams: weakref.WeakSet[CommandStream] = weakref.WeakSet()


def _close_inherited() -> None:
    """In a forked child: a copy of a pipe would keep a container alive after its owner's death."""
    for stream in list(_streams):
        stream.disown()
    _streams.clear()


os.register_at_fork(after_in_child=_close_inherited)


class CommandEngine:
    """See ``engine.Engine``. ``command`` is the path of the program."""

    def __init__(self, kind: str, command: str) -> None:
        self._kind = kind
        self.command = command

    @property
    def kind(self) -> str:
        return self._kind

    def __repr__(self) -> str:
        return f"CommandEngine({self._kind!r}, {self.command!r})"

    # ------------------------------------------------------------------------------------------ one call

    def _call(
        self, argv: Sequence[str], what: str, *, stdin: IO[bytes] | None = None, within_s: float = CALL_S
    ) -> str:
        """stdout of a call that went well."""
        try:
            done = subprocess.run(
                [self.command, *argv],
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                capture_output=True,
                timeout=within_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise EngineError(f"{what}: {self._kind} did not end within {within_s:g} seconds") from None
        except OSError as error:
            raise EngineError(f"{what}: {self.command} can't be started ({error.strerror})") from None
        if done.returncode != 0:
            words = (done.stderr or done.stdout).decode("utf-8", "replace").strip()[-2000:]
            missing = any(text in words.lower() for text in _MISSING)
            raise EngineError(
                f"{what}: {self._kind} says: {words or f'nothing, and ends with {done.returncode}'}",
                missing=missing,
            )
        return done.stdout.decode("utf-8", "replace")

    def _stream(self, argv: Sequence[str], what: str, *, stdin: bool) -> CommandStream:
        try:
            said = tempfile.TemporaryFile()  # noqa: SIM115  (the stream's, which closes it)
            try:
                process = subprocess.Popen(
                    [self.command, *argv],
                    stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=said,
                    bufsize=0,
                    start_new_session=True,  # Ctrl-C is for the owner, who then closes what it has
                )
            except BaseException:
                said.close()
                raise
        except OSError as error:
            raise EngineError(f"{what}: {self.command} can't be started ({error.strerror})") from None
        stream = CommandStream(process, said)
        _streams.add(stream)
        return stream

    # --------------------------------------------------------------------------------------- the engine

    def about(self) -> About:
        what = f"asking {self._kind} what it is"
        info = _parse(self._call(["info", "--format", "{{json .}}"], what), what)
        return _about_podman(info) if self._kind == "podman" else _about_docker(info, what)

    # ---------------------------------------------------------------------------------------- containers

    def run(self, box: Box) -> CommandStream:
        try:
            return self._stream(["run", *_options(box, self._kind)], "making a container", stdin=box.stdin)
        except BaseException as error:
            discard(self, box.name, certain=isinstance(error, EngineError))
            raise

    def exec(self, name: str, argv: Sequence[str], *, user: str, workdir: str) -> CommandStream:
        options = ["exec", "-i", "--user", user, "--workdir", workdir, name, *argv]
        return self._stream(options, "starting a process in a container", stdin=True)

    def update_memory(self, name: str, memory_bytes: int) -> None:
        options = ["update", "--memory", str(memory_bytes), "--memory-swap", str(memory_bytes), name]
        self._call(options, "raising a container's memory")

    def kill(self, name: str) -> bool:
        more = ["--time", "0"] if self._kind == "podman" else []
        try:
            removed = self._call(["rm", "--force", "--volumes", *more, name], "removing a container")
        except EngineError as error:
            if not error.missing and "already in progress" not in str(error):
                raise
            return not error.missing
        return bool(removed.strip())  # nothing is printed, and no failure, where there is none

    def containers(self, label: str) -> list[Found]:
        what = "listing containers"
        options = ["ps", "--all", "--no-trunc", "--quiet", "--filter", f"label={label}"]
        found = []
        for one in self._inspect("container", self._call(options, what).split(), what):
            state = one.get("State") or {}
            found.append(
                Found(
                    str(one["Id"]),
                    str(one.get("Name", "")).removeprefix("/"),
                    (one.get("Config") or {}).get("Labels") or {},
                    bool(state.get("Running")),
                    _seconds(str(one.get("Created", ""))),
                )
            )
        return found

    def _inspect(self, kind: str, ids: Sequence[str], what: str) -> list[dict[str, Any]]:
        """Those that are still there."""
        found: list[dict[str, Any]] = []
        for number in dict.fromkeys(ids):
            try:
                found.extend(_parse(self._call([kind, "inspect", number], what), what))
            except EngineError as error:
                if not error.missing:
                    raise
        return found

    # -------------------------------------------------------------------------------------------- images

    def images(self, label: str) -> list[Found]:
        what = "listing images"
        options = ["images", "--no-trunc", "--quiet", "--filter", f"label={label}"]
        return [
            Found(
                str(one["Id"]),
                str((one.get("RepoTags") or [one["Id"]])[0]),
                (one.get("Config") or {}).get("Labels") or one.get("Labels") or {},
                created=_seconds(str(one.get("Created", ""))),
            )
            for one in self._inspect("image", self._call(options, what).split(), what)
        ]

    def image_id(self, name: str) -> str | None:
        try:
            found = self._call(
                ["image", "inspect", "--format", "{{.Id}}", name], "looking for an image"
            ).strip()
        except EngineError as error:
            if error.missing:
                return None
            raise
        return found if ":" in found else f"sha256:{found}"

    def pull(self, name: str) -> None:
        self._call(["pull", "--quiet", name], f"pulling the image {name!r}", within_s=BUILD_S)

    def tag(self, name: str, new: str) -> None:
        self._call(["tag", name, new], "naming an image")

    def remove_image(self, name: str) -> None:
        try:
            self._call(["rmi", name], "removing an image")
        except EngineError as error:
            if not error.missing:
                raise

    def take_in(self, tar: IO[bytes], name: str, changes: Sequence[str]) -> None:
        options = [word for line in changes for word in ("--change", line)]
        self._call(["import", *options, "-", name], "taking an image in", stdin=tar, within_s=BUILD_S)

    def build(
        self,
        context: IO[bytes],
        name: str,
        *,
        dockerfile: str,
        network: str | None,
        runtime: str | None = None,
    ) -> None:
        options = ["build", "--quiet", "--force-rm", "--file", dockerfile, "--tag", name]
        if network is not None:
            options += ["--network", network]
        if runtime is not None and self._kind == "podman":
            options = ["--runtime", runtime, *options]
        with tempfile.TemporaryFile() as file:  # a pipe's other end must be a file with a number
            while part := context.read(_CHUNK):
                file.write(part)
            file.seek(0)
            self._call([*options, "-"], "building an image", stdin=file, within_s=BUILD_S)


def _options(box: Box, kind: str) -> list[str]:
    """A box in the words of ``docker run``."""
    words = ["--rm", "--name", box.name, "--hostname", "cell", "--network", "none", "--ipc", "none"]
    words += [
        "--read-only",
        "--cap-drop",
        "ALL",
        "--security-opt",
        "no-new-privileges",
        "--log-driver",
        "none",
    ]
    words += ["--ulimit", "core=0:0"]
    if kind == "podman":
        words += ["--pull", "never", "--image-volume", "ignore", *_same_limits()]
    words += ["--user", box.user, "--workdir", box.workdir, "--entrypoint", box.argv[0]]
    for option in box.security:
        words += ["--security-opt", option]
    for name, value in box.labels.items():
        words += ["--label", f"{name}={value}"]
    for name, value in box.env.items():
        words += ["--env", f"{name}={value}"]
    for folder, options in box.tmpfs.items():
        words += ["--tmpfs", f"{folder}:{options}"]
    for here, there, writable in box.binds:
        words += ["--mount", f"type=bind,source={here},target={there}" + ("" if writable else ",readonly")]
    if box.memory_bytes:
        words += ["--memory", str(box.memory_bytes), "--memory-swap", str(box.memory_bytes)]
    if box.processes:
        words += ["--pids-limit", str(box.processes)]
    if box.cpus:
        words += ["--cpus", f"{box.cpus:g}"]
    if box.runtime:
        words += ["--runtime", box.runtime]
    if box.stdin:
        words += ["--interactive"]
    return [*words, box.image, *box.argv[1:]]


def _same_limits() -> list[str]:
    """Limits that podman may set wherever it may be started: its own choice is higher than what some roots may."""
    words = []
    for name, what, most in (
        ("nofile", resource.RLIMIT_NOFILE, 1 << 20),
        ("nproc", resource.RLIMIT_NPROC, 1 << 15),
    ):
        hard = resource.getrlimit(what)[1]
        value = most if hard == resource.RLIM_INFINITY else min(hard, most)
        words += ["--ulimit", f"{name}={value}:{value}"]
    return words


def _about_docker(info: Any, what: str) -> About:
    errors = info.get("ServerErrors")
    if errors or not info.get("ServerVersion"):
        words = "; ".join(map(str, errors or ["nothing"]))
        raise EngineError(f"{what}: docker says: {words[:2000]}")
    security = [str(s) for s in info.get("SecurityOptions") or ()]
    return About(
        kind="docker",
        version=str(info["ServerVersion"]),
        local=shares_kernel(str(info.get("KernelVersion", ""))) and not os.environ.get("DOCKER_HOST"),
        counted=bool(info.get("MemoryLimit")),
        pids=bool(info.get("PidsLimit")),
        cpu=bool(info.get("CpuCfsQuota")),
        rootless=any("rootless" in s for s in security),
        seccomp=any("seccomp" in s and "unconfined" not in s for s in security),
        default_runtime=str(info.get("DefaultRuntime") or "runc"),
        runtimes=tuple(sorted(info.get("Runtimes") or ())),
    )


def _about_podman(info: Any) -> About:
    host = info.get("host") or {}
    security = host.get("security") or {}
    controllers = host.get("cgroupControllers") or []
    return About(
        kind="podman",
        version=str((info.get("version") or {}).get("Version", "?")),
        local=shares_kernel(str(host.get("kernel", ""))) and not host.get("serviceIsRemote"),
        counted="memory" in controllers,
        pids="pids" in controllers,
        cpu="cpu" in controllers,
        rootless=bool(security.get("rootless")),
        seccomp=bool(security.get("seccompEnabled")),
        default_runtime=str((host.get("ociRuntime") or {}).get("name") or "crun"),
        runtimes=(),  # it takes paths, too
    )


def _parse(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise EngineError(f"{what}: the answer is no JSON: {text[:200]!r}") from None


def _seconds(text: str) -> float:
    """Seconds since 1970 of a time like 2026-01-02T03:04:05.678Z; 0.0 if it is none."""
    import calendar
    import time

    try:
        return float(calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")))
    except ValueError:
        return 0.0


class CommandStream:
    """See ``engine.Stream``."""

    def __init__(self, process: subprocess.Popen[bytes], said: IO[bytes]) -> None:
        assert process.stdout is not None
        self._process = process
        self._said = said
        self._out = process.stdout.fileno()
        self._in = -1 if process.stdin is None else process.stdin.fileno()
        os.set_blocking(self._out, False)
        if self._in >= 0:
            os.set_blocking(self._in, False)

    def fileno(self) -> int:
        return self._out

    def put_fileno(self) -> int:
        return self._in

    def take(self) -> bytes | None:
        try:
            return os.read(self._out, _CHUNK) or None
        except BlockingIOError:
            return b""
        except OSError:
            return None

    def put(self, data: bytes) -> int:
        try:
            return os.write(self._in, data)
        except BlockingIOError:
            return 0

    def words(self) -> str:
        try:
            self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            pass
        size = self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, size - _MAX_WORDS))
        return self._said.read(_MAX_WORDS).decode("utf-8", "replace").strip()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self.disown()

    def disown(self) -> None:
        """Let go of the pipes, not of the process: in a forked child it is the parent's."""
        for file in (self._process.stdin, self._process.stdout, self._said):
            if file is not None:
                file.close()
        self._process.returncode = self._process.returncode or 0
