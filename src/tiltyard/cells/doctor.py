"""What this machine offers, wall by wall and part by part: tried, never guessed, with the way to what is missing.

``examine`` does every trial in a process of its own (see ``inside.trial``) and opens a cell of each wall; it takes a
few seconds, changes nothing but a file of a few bytes in the cache, and never raises for what it finds. ``Report.exit_code`` is 1 if only the ``process``
wall is left.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tiltyard.cells import WALLS, probe_wall
from tiltyard.cells.programs import PACKAGE, Interpreter, package_lines
from tiltyard.cells.protocol import CellLimits
from tiltyard.cells.start_git import missing
from tiltyard.errors import TiltyardError
from tiltyard.images import Images, cache_folder

TRIAL_S = 60.0
ENGINE_S = 20.0
WHOLE = "a cell"
"""The part that stands for the wall itself: a cell was opened, and a program ran in it."""


@dataclass(frozen=True, slots=True)
class Check:
    """One part of one wall. ``why`` says what was seen; ``how_to_get_it`` is "" if it is there, or nobody can say."""

    wall: str
    part: str
    ok: bool
    why: str
    how_to_get_it: str = ""
    needed: bool = True
    """False for what the wall does without, a little weaker."""


@dataclass(frozen=True)
class Report:
    """All checks, in order. Iterates over them; prints as a text for people."""

    checks: tuple[Check, ...]

    def __iter__(self) -> Iterator[Check]:
        return iter(self.checks)

    def __len__(self) -> int:
        return len(self.checks)

    def has(self, wall: str) -> bool:
        """Whether a cell of this wall could be opened and used."""
        return any(c.ok for c in self.checks if (c.wall, c.part) == (wall, WHOLE))

    @property
    def exit_code(self) -> int:
        """0, or 1 if there is no wall but ``process``."""
        return 0 if any(self.has(c.wall) for c in self.checks if c.wall != "process") else 1

    def as_json(self) -> dict[str, Any]:
        """Plain data: ``machine``, ``walls`` (name to whether it works), ``checks``."""
        walls = dict.fromkeys(c.wall for c in self.checks)
        return {
            "machine": f"{platform.system()} {platform.release()} {platform.machine()}, user {os.geteuid()}",
            "walls": {wall: self.has(wall) for wall in walls},
            "checks": [asdict(c) for c in self.checks],
        }

    def __str__(self) -> str:
        lines: list[str] = []
        for wall in dict.fromkeys(c.wall for c in self.checks):
            parts = [c for c in self.checks if c.wall == wall]
            lines.append(f"{wall} wall: {'works here' if self.has(wall) else 'can not be had here'}")
            said = ""
            for check in parts:
                mark = "ok" if check.ok else "NO" if check.needed else "no"
                lines.append(f"  {mark}  {check.part:<20} {check.why}")
                if check.how_to_get_it and not check.ok:
                    same = check.how_to_get_it == said
                    lines.append(f"      {'':<20} to get it: {'as above' if same else check.how_to_get_it}")
                    said = check.how_to_get_it
        if any(not check.ok for check in self.checks):
            lines.append("(NO: the wall needs it; no: it does without, a little weaker)")
        if self.exit_code:
            lines.append(
                "Only the process wall is left: it limits, and does not lock. See above for what is missing."
            )
        return "\n".join(lines)


def examine() -> Report:
    """Try everything."""
    checks: list[Check] = []
    for wall in WALLS:
        whole = _whole(wall)
        checks.append(whole)
        if wall == "namespace":
            checks += [*_namespace_parts(), _overlays(), _git()]
        elif wall == "container":
            checks += _engines()
    if "container" not in WALLS:
        checks += _engines()
    return Report(tuple(checks))


def exit_code(report: Report) -> int:
    """0, or 1 if there is no wall but ``process``: what ``tiltyard doctor`` exits with."""
    return report.exit_code


def _whole(wall: str) -> Check:
    reason = probe_wall(wall)
    if reason is None:
        return Check(
            wall, WHOLE, True, "opened, and a program ran in it" if wall != "process" else "limits, no locks"
        )
    return Check(wall, WHOLE, False, reason, "see the parts that are missing below")


# ---------------------------------------------------------------- the namespace wall's parts

_PARTS = (
    # part, trial, needed
    ("user namespaces", ("user",), True),
    ("pid namespaces", ("pid",), True),
    ("mount namespaces", ("mount",), True),
    ("ipc namespaces", ("ipc",), True),
    ("uts namespaces", ("uts",), True),
    ("network namespaces", ("net",), True),
    ("tmpfs", ("tmpfs",), True),
    ("root folder", ("pivot",), True),
    ("/proc", ("proc",), True),
    ("seccomp", ("seccomp",), True),
    ("Landlock", ("landlock",), False),
    ("memory groups", ("group", "memory"), False),
    ("pids groups", ("group", "pids"), False),
    ("cpu groups", ("group", "cpu"), False),
)


def _namespace_parts() -> list[Check]:
    checks = []
    for part, argv, needed in _PARTS:
        said = _try(argv)
        how = "" if said["ok"] else _how(argv)
        checks.append(Check("namespace", part, said["ok"], str(said["why"]), how, needed))
    return checks


def _overlays() -> Check:
    """Whether repositories are mounted below workspaces here, on the file system of the cache: by opening such a cell."""
    from tiltyard.cells.namespace import NamespaceWall

    how = (
        "a kernel from 6.6 on, and a cache on a file system that can be shown with other owners, like ext4 or xfs: "
        "TILTYARD_CACHE names its folder"
    )
    reason = probe_wall("namespace")
    if reason is None:
        wall = NamespaceWall()
        try:
            with tempfile.TemporaryDirectory(prefix="tiltyard-doctor-") as folder:
                wall.open(Images(folder).add({"README": b"doctor\n"}), CellLimits()).close()
            reason = wall.no_overlay
        except (TiltyardError, OSError) as error:
            reason = str(error)
        finally:
            wall.close()
    else:
        reason, how = "there is no namespace wall to have them", "the namespace wall first: see above"
    if reason is None:
        return Check(
            "namespace",
            "overlays",
            True,
            f"repositories are mounted, not copied (from {cache_folder()})",
            needed=False,
        )
    return Check("namespace", "overlays", False, f"repositories are copied: {reason}", how, needed=False)


def _git() -> Check:
    reason = missing()
    why = reason or "players of repositories find a .git of one commit"
    return Check("namespace", "git", reason is None, why, "apt-get install git", needed=False)


def _try(argv: tuple[str, ...]) -> dict[str, Any]:
    start = Interpreter(os.path.realpath(sys.executable)).argv()[:-2]
    lines = f"{package_lines()}; from {PACKAGE}.trial import main; main()"
    try:
        done = subprocess.run(
            [*start, "-c", lines, *argv],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TRIAL_S,
            cwd="/",
            check=False,
        )
        said = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return {"ok": False, "why": f"no answer within {TRIAL_S:.0f} seconds"}
    except OSError as error:
        return {"ok": False, "why": f"no process can be started ({error.strerror})"}
    except ValueError:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return {
            "ok": False,
            "why": f"the trial ended with {done.returncode}: {words[-1] if words else 'no word'}",
        }
    return {"ok": bool(said["ok"]), "why": str(said["why"])}


def _how(argv: tuple[str, ...]) -> str:
    """The way to what was refused, from what the system says of itself."""
    kind = argv[0]
    if sys.platform != "linux":
        return "a Linux machine, or a virtual one"
    if kind == "seccomp":
        return "a kernel with CONFIG_SECCOMP_FILTER on x86-64 or aarch64"
    if kind == "landlock":
        return "a kernel from 5.13 on with CONFIG_SECURITY_LANDLOCK, and landlock in the lsm= list of its command line"
    if kind == "group":
        return _how_groups()
    ways = []
    for path, bad, way in _SYSCTLS:
        if _read(path) == bad:
            ways.append(way)
    if not ways and _in_container():
        ways.append(
            "start the container with --privileged, or with --cap-add SYS_ADMIN --security-opt seccomp=unconfined"
            " --security-opt apparmor=unconfined --security-opt systempaths=unconfined"
        )
    if not ways and os.geteuid() != 0:
        ways.append("run as root, or ask for unprivileged user namespaces (CONFIG_USER_NS)")
    return "; ".join(ways)


_SYSCTLS = (
    ("/proc/sys/user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"),
    ("/proc/sys/user/max_pid_namespaces", "0", "sysctl -w user.max_pid_namespaces=15000"),
    ("/proc/sys/user/max_mnt_namespaces", "0", "sysctl -w user.max_mnt_namespaces=15000"),
    ("/proc/sys/user/max_net_namespaces", "0", "sysctl -w user.max_net_namespaces=15000"),
    ("/proc/sys/user/max_ipc_namespaces", "0", "sysctl -w user.max_ipc_namespaces=15000"),
    ("/proc/sys/user/max_uts_namespaces", "0", "sysctl -w user.max_uts_namespaces=15000"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)


def _how_groups() -> str:
    if _in_container():
        user = "" if os.geteuid() == 0 else "run as root in it, and "
        return f"{user}start the container with --privileged, or with its own writable /sys/fs/cgroup"
    if os.geteuid() == 0:
        return "a kernel that has this controller (cgroup_enable=memory on its command line), mounted and writable"
    if not Path("/sys/fs/cgroup/cgroup.controllers").exists():
        return "run as root; or boot with control groups of version 2 (systemd.unified_cgroup_hierarchy=1), which users can have"
    return "run as root, or in a group of your own: systemd-run --user --scope -p Delegate=yes tiltyard …"


def _in_container() -> bool:
    return Path("/.dockerenv").exists() or Path("/run/.containerenv").exists() or "container" in os.environ


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


# ---------------------------------------------------------------- container engines


def _engines() -> list[Check]:
    found = [_engine(name, command) for name, command in _ENGINES]
    answer = [check.part for check in found if check is not None and check.ok]
    if answer == ["podman"] and found[0] is not None:  # docker is there, is asked first, and does not answer
        found[0] = replace(
            found[0], how_to_get_it=f"{found[0].how_to_get_it}; or take podman: --wall container:podman"
        )
    return [check for check in found if check is not None] or [
        Check(
            "container",
            "an engine",
            False,
            "neither docker nor podman is on the PATH",
            "apt-get install -y --no-install-recommends docker.io iptables (then start dockerd), or podman",
        )
    ]


_ENGINES = (
    ("docker", ("version", "--format", "{{.Server.Version}}")),
    ("podman", ("version", "--format", "{{.Client.Version}}")),
)


def _engine(name: str, command: tuple[str, ...]) -> Check | None:
    """Whether an engine is there and answers; None if it is not installed."""
    path = shutil.which(name)
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, *command], stdin=subprocess.DEVNULL, capture_output=True, timeout=ENGINE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Check(
            "container",
            name,
            False,
            f"{path} gave no answer within {ENGINE_S:.0f} seconds",
            _START[name],
            False,
        )
    except OSError as error:
        return Check("container", name, False, f"{path} can't be started ({error.strerror})", "", False)
    said = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode == 0 and said:
        return Check("container", name, True, f"{path}, version {said}", "", False)
    words = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return Check(
        "container",
        name,
        False,
        words[-1] if words else f"{path} ended with {done.returncode}",
        _START[name],
        False,
    )


_START = {
    "docker": "start its daemon (systemctl start docker), set DOCKER_HOST, and be in the docker group",
    "podman": "see what 'podman info' says",
}
