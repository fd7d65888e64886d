"""Building environments, with the real uv and an index that is a folder: once, whole, quiet, and said where it fails."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tiltyard.environments import (
    BuildError,
    Environment,
    about,
    all_built,
    build,
    is_built,
    plugins_of,
    pythons,
    remove,
)
from tiltyard.environments.building import home
from tiltyard.environments.keep import collect, prepare
from tiltyard.task import Files, Metadata, Task, Test

Make = Callable[..., Path]
EVIL = "import os; open({path!r}, 'w').write('ran')\n"


def says(python: Path, code: str) -> str:
    done = subprocess.run(
        [str(python), "-c", code], capture_output=True, text=True, check=True, cwd="/", env={}
    )
    return done.stdout.strip()


def test_pins_are_installed_and_nothing_else(make_wheel: Make) -> None:
    make_wheel("demo", "1.0", {"demo.py": "value = 1\n"}, requires=["other"])
    make_wheel("demo", "2.0", {"demo.py": "value = 2\n"})
    make_wheel("other", "1.0", {"other.py": ""})
    said: list[str] = []
    python = build(Environment("", ("demo==1.0",)), said.append)
    assert says(python, "import demo; print(demo.value)") == "1"
    assert (
        says(python, "import importlib.util as u; print(u.find_spec('other'), u.find_spec('pip'))")
        == "None None"
    )
    assert [text.split(" ")[0] for text in said] == ["building", "built"]
    found = about(Environment("", ("demo==1.0",)))
    assert found is not None and found.python == python and found.notes == () and found.bytes > 0
    assert build(Environment("", ("demo==1.0",)), said.append) == python
    assert len(said) == 2, "it was there"
    assert (Path(found.folder) / "lib").is_dir() and list(found.folder.rglob("demo.*.pyc")), (
        "compiled once, not in each cell"
    )


def test_without_packages_there_is_the_interpreter_alone(wheels: Path) -> None:
    python = build(Environment())
    assert (
        says(python, "import sys; print(sys.prefix != sys.base_prefix, sys.version_info[:2])")
        == f"True {sys.version_info[:2]}"
    )


def test_many_at_once_build_once(make_wheel: Make) -> None:
    make_wheel("demo", "1.0", {"demo.py": ""})
    environment, said = Environment("", ("demo==1.0",)), list[str]()
    code = "from tiltyard.environments import *; print(build(Environment('', ('demo==1.0',)), print))"
    others = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    with ThreadPoolExecutor(4) as pool:
        paths = set(pool.map(lambda _: build(environment, said.append), range(4)))
    out = [other.communicate()[0].splitlines() for other in others]
    assert {str(path) for path in paths} == {lines[-1] for lines in out}
    assert len(said) + sum(len(lines) - 1 for lines in out) == 2, "one of all of them has built it"


def test_what_a_killed_builder_left_is_not_taken_for_whole(make_wheel: Make, cache: Path) -> None:
    make_wheel("demo", "1.0", {"demo.py": "value = 1\n"})
    environment = Environment("", ("demo==1.0",))
    code = "from tiltyard.environments import *; build(Environment('', ('demo==1.0',)), lambda t: print(t, flush=True))"
    builder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert builder.stdout is not None
    assert builder.stdout.readline().startswith("building")
    builder.send_signal(signal.SIGKILL)
    builder.communicate()
    half = home() / environment.digest
    if not is_built(environment):  # it may have been quicker than the signal
        half.mkdir(exist_ok=True)
        (half / "bin").mkdir(exist_ok=True)
    assert says(build(environment), "import demo; print(demo.value)") == "1"
    assert [path.name for path in home().iterdir() if path.is_dir()] == [environment.digest]


def test_nothing_of_a_package_runs_when_the_interpreter_starts(make_wheel: Make, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    evil = EVIL.format(path=str(trace))
    make_wheel(
        "evil",
        "1.0",
        {
            "evil.py": "",
            "evil.pth": f"{evil}./more\n",
            "tab.pth": f"import\tos; open({str(trace)!r}, 'w')\n",
            "sitecustomize.py": evil,
            "usercustomize/__init__.py": evil,
        },
    )
    environment = Environment("", ("evil==1.0",))
    python = build(environment)
    assert says(python, "import evil; print('fine')") == "fine"
    assert not trace.exists()
    found = about(environment)
    assert found is not None and len(found.notes) == 4
    folder = next(found.folder.glob("lib/python3*/site-packages"))
    assert (folder / "evil.pth").read_text() == "./more\n"


def test_a_source_archive_is_built_and_said(make_sdist: Make, make_wheel: Make) -> None:
    make_sdist("fromsource", "1.0")
    make_wheel("demo", "1.0", {"demo.py": ""})
    environment = Environment("", ("demo==1.0", "fromsource==1.0"))
    with pytest.raises(BuildError) as caught:
        build(environment, builds=False)
    assert caught.value.kind == "package"
    said: list[str] = []
    python = build(environment, said.append)
    assert says(python, "import fromsource; print(fromsource.answer)") == "42"
    assert any("no wheel of fromsource==1.0: building from source, with your rights" in text for text in said)
    found = about(environment)
    assert found is not None and found.notes == ("built from source: fromsource==1.0",)


def test_a_build_that_fails_needs_a_compiler_or_so(make_sdist: Make) -> None:
    make_sdist(
        "broken",
        "1.0",
        backend="raise SystemExit(\"error: command 'gcc' failed: No such file or directory\")\n",
    )
    with pytest.raises(BuildError, match="broken") as caught:
        build(Environment("", ("broken==1.0",)))
    assert caught.value.kind == "compiler"


def test_why_an_environment_cannot_be_had(make_wheel: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    make_wheel("demo", "1.0", {"demo.py": ""})
    with pytest.raises(BuildError, match=r"demo==7\.0") as caught:
        build(Environment("", ("demo==7.0",)))
    assert caught.value.kind == "package"
    with pytest.raises(BuildError, match="nosuch") as caught:
        build(Environment("", ("nosuch==1.0",)))
    assert caught.value.kind == "package"
    with pytest.raises(BuildError, match=r"needs Python 3\.6; cells need 3\.9 or newer") as caught:
        build(Environment("3.6"))
    assert caught.value.kind == "python"
    with pytest.raises(BuildError, match=r"needs Python 3\.99, which was not found") as caught:
        build(Environment("3.99"))
    assert caught.value.kind == "python"
    assert all_built() == ()
    # nobody listens there
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(BuildError) as caught:
        build(Environment("", ("elsewhere==1.0",)))
    assert caught.value.kind == "network"


def test_a_lock_is_kept_to(make_wheel: Make) -> None:
    wheel = make_wheel("demo", "1.0", {"demo.py": ""})
    right = hashlib.sha256(wheel.read_bytes()).hexdigest()
    with pytest.raises(BuildError) as caught:
        build(Environment("", (f"demo==1.0 --hash=sha256:{'0' * 64}",)))
    assert caught.value.kind == "hash"
    assert build(Environment("", (f"demo==1.0 --hash=sha256:{right}",)), builds=False).exists()


def test_a_failure_is_remembered_and_not_for_other_caches(
    make_wheel: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = Environment("", ("late==1.0",))
    for _ in range(2):
        with pytest.raises(BuildError, match="late"):
            build(environment)
    make_wheel("late", "1.0", {"late.py": ""})
    with pytest.raises(BuildError, match="late"):
        build(environment)
    monkeypatch.setenv("TILTYARD_CACHE", str(tmp_path / "another"))
    assert build(environment).exists()


def test_the_least_recently_used_go_first_and_what_is_used_stays(
    make_wheel: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wheel("demo", "1.0", {"demo.py": ""})
    make_wheel("demo", "2.0", {"demo.py": ""})
    make_wheel("demo", "3.0", {"demo.py": ""})
    # built by others, so that this process holds none
    for version in ("1.0", "2.0", "3.0"):
        code = f"from tiltyard.environments import *; build(Environment('', ('demo=={version}',)))"
        subprocess.run([sys.executable, "-c", code], check=True)
    one, two, three = (Environment("", (f"demo=={v}",)) for v in ("1.0", "2.0", "3.0"))
    for age, environment in ((3000, two), (2000, three), (1000, one)):
        when = time.time() - age
        os.utime(home() / environment.digest / "about.json", (when, when))
    assert [one.environment.packages[0] for one in all_built()] == ["demo==1.0", "demo==3.0", "demo==2.0"]
    size = max(found.bytes for found in all_built())
    gone = collect(2 * size)
    assert (
        (gone.environments, gone.images) == (1, 0) and not is_built(two) and is_built(one) and is_built(three)
    )
    gone = collect(10 * size, older_than_s=1500)
    assert gone.environments == 1 and is_built(one) and not is_built(three)
    build(one)
    assert not remove(one.digest)
    assert collect(0).environments == 0 and is_built(one)


def task(id: str, *packages: str) -> Task:
    return Task(
        id=id,
        prompt="p",
        start=Files({"solution.py": ""}),
        hidden=(Test("a", code="assert True"),),
        reference=Files({"solution.py": "x = 1"}),
        metadata=Metadata(packages=packages),
    )


def test_the_environments_of_a_pool(make_wheel: Make) -> None:
    make_wheel("demo", "1.0", {"demo.py": ""})
    tasks = [
        task("a", "demo==1.0"),
        task("b"),
        task("c", "demo==1.0"),
        task("d", "nosuch==1.0"),
        task("e", "numpy"),
    ]
    found = {one.environment.packages: one for one in prepare(tasks, workers=2)}
    good, bad = found["demo==1.0",], found["nosuch==1.0",]
    assert (good.outcome, good.tasks) == ("built", 2)
    assert (bad.outcome, bad.tasks, bad.kind) == ("failed", 1, "package") and "nosuch" in bad.reason
    assert {one.outcome for one in prepare(tasks)} == {"there", "failed"}


def test_plugins_are_found_by_their_metadata(make_wheel: Make) -> None:
    make_wheel(
        "pytest_demo",
        "1.0",
        {"pytest_demo.py": "raise SystemExit"},
        points="[pytest11]\ndemo = pytest_demo:Plugin\n",
    )
    make_wheel("pytest_cov", "1.0", {"pytest_cov.py": ""}, points="[pytest11]\ncov = pytest_cov.plugin\n")
    assert plugins_of(Environment("", ("pytest_demo==1.0", "pytest-cov==1.0"))) == ("pytest_demo",)


def test_this_machine_has_the_python_that_runs_this() -> None:
    assert f"{sys.version_info[0]}.{sys.version_info[1]}" in {python.minor for python in pythons()}
    assert all(python.version >= (3, 9) for python in pythons())
