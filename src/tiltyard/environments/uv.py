"""Running uv: where it is, with which settings, and what its words mean.

The user's settings for package indexes hold: uv reads its own (``UV_*``, ``uv.toml``); where it has none, those of pip
are passed on (``PIP_*``, ``pip.conf``: index-url, extra-index-url, find-links, cert), but for folders that are not
there. Nothing of the folder in which Tiltyard was started is read, no interpreter is downloaded, no input is waited for.
"""

from __future__ import annotations

import configparser
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tiltyard.environments.model import BuildError, Kind

MAX_WORDS = 2000
_OWN_INDEX = (
    "UV_INDEX",
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
)
_DROPPED = frozenset(
    "VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV PYTHONPATH PYTHONHOME PYTHONSTARTUP UV_PYTHON UV_PROJECT UV_WORKING_DIR "
    "UV_PROJECT_ENVIRONMENT UV_SYSTEM_PYTHON UV_CONSTRAINT UV_OVERRIDE UV_EXCLUDE_NEWER UV_REQUIRE_HASHES "
    "UV_PRERELEASE UV_RESOLUTION UV_NO_BUILD UV_NO_BINARY UV_COMPILE_BYTECODE UV_LINK_MODE UV_ENV_FILE".split()
)
_SIGNS: tuple[tuple[Kind, str], ...] = (
    ("hash", r"[Hh]ash mismatch|hashes? (?:do not|did not) match"),
    (
        "network",
        r"error sending request|[Cc]onnection (?:refused|reset|closed)|dns error|[Nn]etwork (?:is )?(?:unreachable|conn"
        r"ectivity)|timed out|tcp connect error|[Ff]ailed to (?:fetch|download)|network (?:was )?disabled|--offline",
    ),
    (
        "compiler",
        r"Failed to build|[Bb]uild backend|build failed|error: command '\S*(?:gcc|cc|c\+\+|g\+\+|clang|cargo|rustc)",
    ),
    (
        "python",
        r"current Python version|requested Python version|Python (?:ABI|version) tag|Requires-Python|requires-python",
    ),
    (
        "package",
        r"was not found in the (?:package registry|cache)|no versions? of|has no (?:usable )?wheels|not found in|"
        r"no wheels|building from source is disabled|Building source distributions .* is disabled|was published after",
    ),
    ("conflict", r"are incompatible|unsatisfiable|[Cc]onflict"),
)


def uv_path() -> str:
    """The uv to use: the package's own (``pip install 'tiltyard[repos]'``), else what is on PATH. BuildError: none."""
    with contextlib.suppress(ImportError, FileNotFoundError):
        from uv import find_uv_bin

        return str(find_uv_bin())
    found = shutil.which("uv")
    if found is None:
        raise BuildError(
            "uv",
            "uv was not found, which builds environments; pip install 'tiltyard[repos]', or put uv on PATH",
        )
    return found


def run_uv(args: Sequence[str], *, timeout_s: float, stdin: str = "", keep: Sequence[int] = ()) -> str:
    """What ``uv ARGS`` prints. ``keep``: descriptors that it inherits (a lock is then held until uv has ended, even if
    this process is killed). BuildError, classified, with uv's own words (at most ``MAX_WORDS`` characters)."""
    command = [uv_path(), *args]
    if args[0] == "pip" and _no_index(os.environ):
        command.append("--no-index")  # there is no variable for it
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            cwd="/",  # no project's settings are found from here
            env=settings(os.environ),
            pass_fds=keep,
            start_new_session=True,
        )
    except OSError as error:
        raise BuildError("uv", f"{command[0]} can't be started: {error.strerror}") from None
    try:
        out, said = process.communicate(stdin, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _kill(process)
        raise BuildError("other", f"uv {args[0]} took more than {timeout_s:.0f} s and was stopped") from None
    except BaseException:
        _kill(process)
        raise
    if process.returncode:
        raise BuildError(
            kind_of(said), shorten(said) or f"uv ended with {process.returncode} and said nothing"
        )
    return out


def _kill(process: subprocess.Popen[str]) -> None:
    """With what it started (a compiler)."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def kind_of(said: str) -> Kind:
    """What uv's words are about. A failed build that could not fetch what it needs is the network's."""
    return next((kind for kind, sign in _SIGNS if re.search(sign, said)), "other")


def shorten(said: str) -> str:
    """uv's words on few lines, without its marks, hints and addresses of indexes."""
    lines = [re.sub(r"^[\s×╰─▶├│>-]*", "", line).strip() for line in said.splitlines()]
    kept = [
        line for line in lines if line and not line.startswith(("warning:", "hint:", "Using ", "Resolved "))
    ]
    text = re.sub(r"\b(https?|file)://\S+", r"\1://…", " ".join(kept))
    return text if len(text) <= MAX_WORDS else f"{text[: MAX_WORDS // 2]} … {text[-MAX_WORDS // 2 :]}"


def settings(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment variables for uv."""
    env = {name: value for name, value in environ.items() if name not in _DROPPED}
    env |= {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", "NO_COLOR": "1", "UV_LINK_MODE": "copy"}
    if any(environ.get(name) for name in _OWN_INDEX):
        return env
    pip = pip_settings(environ)
    extra = [url for url in pip.get("extra-index-url", "").split() if _is_there(url)]
    links = [url for url in pip.get("find-links", "").split() if _is_there(url)]
    first = pip.get("index-url", "").strip()
    if first and _is_there(first):
        env["UV_DEFAULT_INDEX"] = first
    if extra:
        env["UV_INDEX"] = " ".join(extra)
        env.setdefault(
            "UV_INDEX_STRATEGY", "unsafe-best-match"
        )  # as pip, which these settings are for, looks at them
    if links:
        env["UV_FIND_LINKS"] = ",".join(links)
    cert = pip.get("cert", "").strip()
    if cert and Path(cert).exists():
        env.setdefault("SSL_CERT_FILE", cert)
    return env


def _no_index(environ: Mapping[str, str]) -> bool:
    """Whether pip is told to ask no index at all, and uv is told nothing of its own."""
    if any(environ.get(name) for name in _OWN_INDEX):
        return False
    return pip_settings(environ).get("no-index", "").lower() in ("1", "true", "yes", "on")


def pip_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """What pip is told here, by the long names of its options; later places win, as pip has it."""
    found: dict[str, str] = {}
    for file in _pip_files(environ):
        parser = configparser.RawConfigParser()
        with contextlib.suppress(OSError, configparser.Error, UnicodeDecodeError):
            parser.read_string(file.read_text(encoding="utf-8"))
        for section in ("global", "install"):
            if parser.has_section(section):
                found |= {name.replace("_", "-"): value for name, value in parser.items(section)}
    for name, value in environ.items():
        if name.startswith("PIP_") and value:
            found[name[4:].lower().replace("_", "-")] = value
    return found


def _pip_files(environ: Mapping[str, str]) -> Iterator[Path]:
    if environ.get("PIP_CONFIG_FILE") == os.devnull:
        return
    home = Path(environ.get("HOME") or "~").expanduser()
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    yield from (Path("/etc/xdg/pip/pip.conf"), Path("/etc/pip.conf"))
    yield from (home / ".pip" / "pip.conf", config / "pip" / "pip.conf", Path(sys.prefix) / "pip.conf")
    if environ.get("PIP_CONFIG_FILE"):
        yield Path(environ["PIP_CONFIG_FILE"])


def _is_there(url: str) -> bool:
    """Whether an index or a folder of archives can be asked at all: uv stops at a folder that does not exist."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return Path(unquote(parts.path)).exists()
    return parts.scheme in ("http", "https") or Path(url).exists()
