"""Docker's HTTP interface over its unix socket. One connection a call: nothing is shared by threads or forked children.

Podman's service speaks it, too (DOCKER_HOST=unix://…/podman.sock). A container's stream is the connection itself, after
the engine has let go of HTTP: bytes go in as they are, and come out in frames that say stdout or stderr.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import socket
import time
import urllib.parse
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from tiltyard.cells.engine import BUILD_S, CALL_S, About, Box, EngineError, Found, discard, shares_kernel

_MAX_ANSWER = 64 << 20
_MAX_WORDS = 8192
_CHUNK = 1 << 18

_open: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def _close_inherited() -> None:
    """In a forked child: a copy of a stream would keep a container alive after its owner's death."""
    for sock in list(_open):
        sock.close()
    _open.clear()


os.register_at_fork(after_in_child=_close_inherited)


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = _connect(self._path, self.timeout or CALL_S)


def _connect(path: str, timeout_s: float) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(timeout_s)
    try:
        sock.connect(path)
    except OSError as error:
        sock.close()
        raise EngineError(f"no engine can be reached at {path}: {error.strerror}{_advice(error)}") from None
    _open.add(sock)
    return sock


def _advice(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "; your user needs the right to use it (often: membership in the group 'docker')"
    if isinstance(error, FileNotFoundError | ConnectionRefusedError):
        return "; start the engine (often: 'systemctl start docker'), or point DOCKER_HOST at its socket"
    return ""


class HttpEngine:
    """See ``engine.Engine``. ``path`` is the engine's socket."""

    kind = "docker"

    def __init__(self, path: str) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"HttpEngine({self.path!r})"

    # ------------------------------------------------------------------------------------------ one call

    def _call(
        self,
        method: str,
        path: str,
        what: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        within_s: float = CALL_S,
    ) -> bytes:
        """The body of a good answer. ``body``: JSON, or an open file that holds a tar."""
        connection = _Connection(self.path, within_s)
        try:
            is_tar = hasattr(body, "read")
            data = body if is_tar or body is None else json.dumps(body).encode()
            headers = {"Content-Type": "application/x-tar" if is_tar else "application/json"}
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused before it was all said
                connection.request(method, _url(path, query), data, headers, encode_chunked=False)
            response = connection.getresponse()
            answer = response.read(_MAX_ANSWER)
            _check(response.status, answer, what)
            return answer
        except (OSError, http.client.HTTPException) as error:
            raise EngineError(f"{what}: the engine at {self.path} does not answer ({error})") from None
        finally:
            connection.close()

    def _json(self, path: str, what: str, query: Mapping[str, Any] | None = None) -> Any:
        return _parse(self._call("GET", path, what, query=query), what)

    def _hijack(self, path: str, what: str, query: Mapping[str, Any], body: bytes = b"") -> HttpStream:
        """Ask, and keep the connection as a stream."""
        sock = _connect(self.path, CALL_S)
        try:
            head = (
                f"POST {_url(path, query)} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            sock.sendall(head.encode() + body)
            status, said = _head(sock)
            if status not in (101, 200):
                sock.settimeout(5.0)
                _check(status, said + _rest(sock), what)
            return HttpStream(sock)
        except OSError as error:
            sock.close()
            raise EngineError(f"{what}: the engine at {self.path} does not answer ({error})") from None
        except BaseException:
            sock.close()
            raise

    # --------------------------------------------------------------------------------------- the engine

    def about(self) -> About:
        info = self._json("/info", "asking docker what it is")
        runtimes = info.get("Runtimes") or {}
        security = [str(s) for s in info.get("SecurityOptions") or ()]
        return About(
            kind=self.kind,
            version=str(info.get("ServerVersion", "?")),
            local=shares_kernel(str(info.get("KernelVersion", ""))),
            counted=bool(info.get("MemoryLimit")),
            pids=bool(info.get("PidsLimit")),
            cpu=bool(info.get("CpuCfsQuota")),
            rootless=any("rootless" in s for s in security),
            seccomp=any("seccomp" in s and "unconfined" not in s for s in security),
            default_runtime=str(info.get("DefaultRuntime") or "runc"),
            runtimes=tuple(sorted(runtimes)),
        )

    # ---------------------------------------------------------------------------------------- containers

    def run(self, box: Box) -> HttpStream:
        what = "making a container"
        stream = None
        try:
            self._call("POST", "/containers/create", what, query={"name": box.name}, body=_container(box))
            query = {"stream": 1, "stdin": int(box.stdin), "stdout": 1, "stderr": 1}
            stream = self._hijack(f"/containers/{box.name}/attach", what, query)
            self._call("POST", f"/containers/{box.name}/start", "starting a container")
            return stream
        except BaseException as error:
            if stream is not None:
                stream.close()
            if not (isinstance(error, EngineError) and "is already in use" in str(error)):
                discard(self, box.name, certain=isinstance(error, EngineError))
            raise

    def exec(self, name: str, argv: Sequence[str], *, user: str, workdir: str) -> HttpStream:
        what = "starting a process in a container"
        wish = {
            "AttachStdin": True,
            "AttachStdout": True,
            "AttachStderr": True,
            "Tty": False,
            "Cmd": list(argv),
            "User": user,
            "WorkingDir": workdir,
        }
        answer = _parse(self._call("POST", f"/containers/{name}/exec", what, body=wish), what)
        number = urllib.parse.quote(str(answer.get("Id", "")))
        return self._hijack(
            f"/exec/{number}/start", what, {}, json.dumps({"Detach": False, "Tty": False}).encode()
        )

    def update_memory(self, name: str, memory_bytes: int) -> None:
        wish = {"Memory": memory_bytes, "MemorySwap": memory_bytes}
        self._call("POST", f"/containers/{name}/update", "raising a container's memory", body=wish)

    def kill(self, name: str) -> bool:
        try:
            query = {"force": 1, "v": 1}
            self._call("DELETE", f"/containers/{name}", "removing a container", query=query)
        except EngineError as error:
            if not error.missing and "already in progress" not in str(error):
                raise
            return not error.missing
        return True

    def containers(self, label: str) -> list[Found]:
        query = {"all": 1, "filters": json.dumps({"label": [label]})}
        found = self._json("/containers/json", "listing containers", query)
        return [
            Found(
                str(one["Id"]),
                str((one.get("Names") or [one["Id"]])[0]).removeprefix("/"),
                one.get("Labels") or {},
                one.get("State") == "running",
                float(one.get("Created") or 0),
            )
            for one in found
        ]

    # -------------------------------------------------------------------------------------------- images

    def images(self, label: str) -> list[Found]:
        query = {"filters": json.dumps({"label": [label]})}
        found = self._json("/images/json", "listing images", query)
        return [
            Found(
                str(one["Id"]),
                str((one.get("RepoTags") or [one["Id"]])[0]),
                one.get("Labels") or {},
                created=float(one.get("Created") or 0),
            )
            for one in found
        ]

    def image_id(self, name: str) -> str | None:
        try:
            return str(self._json(f"/images/{_quoted(name)}/json", "looking for an image")["Id"])
        except EngineError as error:
            if error.missing:
                return None
            raise

    def pull(self, name: str) -> None:
        query = {"fromImage": name if ":" in name.rpartition("/")[2] or "@" in name else f"{name}:latest"}
        what = f"pulling the image {name!r}"
        _said(self._call("POST", "/images/create", what, query=query, within_s=BUILD_S), what)

    def tag(self, name: str, new: str) -> None:
        repo, _, tag = new.rpartition(":")
        query = {"repo": repo, "tag": tag}
        self._call("POST", f"/images/{_quoted(name)}/tag", "naming an image", query=query)

    def remove_image(self, name: str) -> None:
        try:
            self._call("DELETE", f"/images/{_quoted(name)}", "removing an image")
        except EngineError as error:
            if not error.missing:
                raise

    def take_in(self, tar: IO[bytes], name: str, changes: Sequence[str]) -> None:
        repo, _, tag = name.rpartition(":")
        query = {"fromSrc": "-", "repo": repo, "tag": tag, "changes": list(changes)}
        what = "taking an image in"
        _said(self._call("POST", "/images/create", what, query=query, body=tar, within_s=BUILD_S), what)

    def build(
        self,
        context: IO[bytes],
        name: str,
        *,
        dockerfile: str,
        network: str | None,
        runtime: str | None = None,
    ) -> None:
        query = {"t": name, "dockerfile": dockerfile, "rm": 1, "forcerm": 1, "pull": 0}
        if network is not None:
            query["networkmode"] = network
        what = "building an image"
        _said(self._call("POST", "/build", what, query=query, body=context, within_s=BUILD_S), what)


def _container(box: Box) -> dict[str, Any]:
    """A box in the words of POST /containers/create."""
    mounts = [
        {"Type": "bind", "Source": here, "Target": there, "ReadOnly": not writable}
        for here, there, writable in box.binds
    ]
    host: dict[str, Any] = {
        "AutoRemove": True,
        "NetworkMode": "none",
        "ReadonlyRootfs": True,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges", *box.security],
        "IpcMode": "none",
        "LogConfig": {"Type": "none", "Config": {}},
        "Tmpfs": dict(box.tmpfs),
        "Mounts": mounts,
        "Ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
    }
    if box.memory_bytes:
        host |= {"Memory": box.memory_bytes, "MemorySwap": box.memory_bytes}
    if box.processes:
        host["PidsLimit"] = box.processes
    if box.cpus:
        host["NanoCpus"] = int(box.cpus * 1e9)
    if box.runtime:
        host["Runtime"] = box.runtime
    return {
        "Image": box.image,
        "Entrypoint": [box.argv[0]],
        "Cmd": list(box.argv[1:]),
        "User": box.user,
        "WorkingDir": box.workdir,
        "Hostname": "cell",
        "Env": [f"{name}={value}" for name, value in box.env.items()],
        "Labels": dict(box.labels),
        "NetworkDisabled": True,
        "OpenStdin": box.stdin,
        "StdinOnce": box.stdin,
        "Tty": False,
        "HostConfig": host,
    }


class HttpStream:
    """See ``engine.Stream``."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._raw = bytearray()
        self._cried = bytearray()

    def fileno(self) -> int:
        return self._sock.fileno()

    put_fileno = fileno

    def take(self) -> bytes | None:
        try:
            data = self._sock.recv(_CHUNK)
        except BlockingIOError:
            return b""
        except OSError:
            return None
        if not data:
            return None
        self._raw += data
        return b"".join(self._frames())

    def _frames(self) -> Iterator[bytes]:
        """stdout's part of what has come, as far as its frames are whole: stream (1: stdout, 2: stderr), three
        zeros, length. Docker makes them of at most 32 KiB."""
        while len(self._raw) >= 8:
            size = int.from_bytes(self._raw[4:8])
            if len(self._raw) < 8 + size:
                return
            data = bytes(self._raw[8 : 8 + size])
            if self._raw[0] == 1:
                yield data
            else:
                self._cried += data
                del self._cried[:-_MAX_WORDS]
            del self._raw[: 8 + size]

    def put(self, data: bytes) -> int:
        try:
            return self._sock.send(data)
        except BlockingIOError:
            return 0

    def words(self) -> str:
        end = time.monotonic() + 2.0
        while (
            select.select([self._sock], [], [], max(0.0, end - time.monotonic()))[0]
            and self.take() is not None
        ):
            pass
        return self._cried.decode("utf-8", "replace").strip()

    def close(self) -> None:
        self._sock.close()


# ----------------------------------------------------------------------------------------------------- HTTP


def _url(path: str, query: Mapping[str, Any] | None) -> str:
    return f"{path}?{urllib.parse.urlencode(query, doseq=True)}" if query else path


def _quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="/:@")


def _check(status: int, answer: bytes, what: str) -> None:
    if status < 400:
        return
    try:
        words = str(json.loads(answer)["message"])
    except (ValueError, TypeError, KeyError):
        words = answer[:2000].decode("utf-8", "replace")
    raise EngineError(f"{what}: docker says: {words.strip()[:2000]}", missing=status == 404)


def _parse(answer: bytes, what: str) -> Any:
    try:
        return json.loads(answer)
    except ValueError:
        raise EngineError(f"{what}: docker's answer is no JSON: {answer[:200]!r}") from None


def _said(answer: bytes, what: str) -> None:
    """Long work is answered by lines of JSON; a failure is one of them."""
    told: list[str] = []
    for line in answer.splitlines():
        try:
            one = json.loads(line)
        except ValueError:
            continue
        if "error" in one:
            said = "".join(told)[-1500:].strip()
            raise EngineError(
                f"{what}: docker says: {str(one['error'])[:2000]}" + (f"\n{said}" if said else "")
            )
        told.append(str(one.get("stream", "")))


def _head(sock: socket.socket) -> tuple[int, bytes]:
    """Status and headers of an answer, and not a byte more: what follows is the stream's."""
    head = bytearray()
    while not head.endswith(b"\r\n\r\n"):
        byte = sock.recv(1)
        if not byte or len(head) > 1 << 16:
            raise OSError("it ended the connection")
        head += byte
    return int(head.split(b" ", 2)[1]), b""


def _rest(sock: socket.socket) -> bytes:
    """The body of an answer that refuses."""
    parts = b""
    try:
        while len(parts) < 1 << 16 and (data := sock.recv(4096)):
            parts += data
            if parts.rstrip().endswith(b"}"):
                break
    except OSError:
        pass
    return parts[parts.find(b"{") :] if b"{" in parts else parts
