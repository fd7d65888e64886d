"""Environments of repositories, resolved by the real uv: with a folder as the index, and as of a date with a real one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tiltyard.environments import BuildError, Environment, Found, find
from tiltyard.environments import finding as room
from tiltyard.errors import UsageError

Make = Callable[..., Path]
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
FILES: Mapping[str, bytes] = {
    "pyproject.toml": b'[project]\nname = "thing"\ndependencies = ["base<2"]\n[project.optional-dependencies]\ntests = ["pytest", "helper", "sphinx"]\n',
    "thing/__init__.py": b"import base\n",
    "tests/test_thing.py": b"import thing, helper, guessed, nowhere\n",
}


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was resolved without a date is remembered as long as a process lives."""
    monkeypatch.setattr(room, "_known", {})


@pytest.fixture
def index(make_wheel: Make) -> Make:
    make_wheel("base", "1.5", {"base.py": ""})
    make_wheel("base", "2.0", {"base.py": ""})
    make_wheel("helper", "3.0", {"helper.py": ""}, requires=["base"])
    make_wheel("guessed", "1.0", {"guessed.py": ""})
    make_wheel("sphinx", "1.0", {"sphinx.py": ""})
    for version in ("7.4.4", "8.3.3", "9.0.0"):
        make_wheel("pytest", version, {"pytest.py": ""})
    return make_wheel


def test_what_is_declared_and_imported_is_pinned(index: Make) -> None:
    found = find(FILES)
    assert found.environment == Environment(
        HERE, ("base==1.5", "guessed==1.0", "helper==3.0", "pytest==9.0.0")
    )
    assert found.reason == "" and any("nowhere" in note for note in found.notes)


def test_extra_requirements_are_never_given_up(index: Make) -> None:
    assert "pytest==7.4.4" in _packages(find(FILES, extra=("pytest<8",)))
    none = find(FILES, extra=("pytest>=10",))
    assert none.environment is None and "pytest" in none.reason
    with pytest.raises(UsageError, match="extra requirements"):
        find(FILES, extra=("=== no",))


def test_bounds_are_given_up_and_it_is_said(index: Make) -> None:
    files = {**FILES, "requirements-test.txt": b"helper==2.0\n"}
    found = find(files)
    assert "helper==3.0" in _packages(found) and "base==2.0" in _packages(found)
    assert any("without the bounds" in note for note in found.notes)


def test_a_check_decides_between_what_can_be_had(index: Make) -> None:
    asked: list[str] = []

    def check(environment: Environment) -> str:
        asked.append(environment.pins["pytest"])
        return "" if environment.pins["pytest"] == "pytest==7.4.4" else "its hooks are too new"

    found = find(FILES, check=check)
    assert asked == ["pytest==9.0.0", "pytest==7.4.4"]
    assert "pytest==7.4.4" in _packages(found) and "with pytest<8" in found.notes
    nothing = find(FILES, check=lambda environment: "it does not collect")
    assert nothing.environment is None and nothing.reason == "it does not collect"


def test_pythons_that_cannot_be_had(index: Make) -> None:
    assert "needs Python 3.6; cells need 3.9" in find(FILES, python="3.6").reason
    old = {"pyproject.toml": b'[project]\nname = "x"\nrequires-python = "<3.7"\n'}
    assert "needs Python <3.7; cells need 3.9" in find(old).reason
    odd = {"setup.cfg": b"[metadata]\nname = x\n[options]\npython_requires = whatever\n"}
    assert find(odd).environment == Environment(HERE, ("pytest==9.0.0",))
    with pytest.raises(UsageError, match=r"expected one like '3\.11'"):
        find(FILES, python="three")
    with pytest.raises(UsageError, match="as a date"):
        find(FILES, date="yesterday")


def test_a_repository_that_says_nothing_gets_pytest(index: Make) -> None:
    assert _packages(find({})) == ("pytest==9.0.0",)
    assert _packages(find({"pyproject.toml": b"\xff\xfe", "setup.py": b"(" * 5000, "tox.ini": b"[[["})) == (
        "pytest==9.0.0",
    )


def test_no_network_is_no_property_of_a_repository(index: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(BuildError) as caught:
        find(FILES)
    assert caught.value.kind == "network"


def test_as_of_a_date_from_a_real_index(cache: Path) -> None:
    files = {"requirements-test.txt": b"freezegun\n", "tests/test_x.py": b"import freezegun\n"}
    try:
        found = find(files, date="2024-03-01", python=HERE)
    except BuildError as error:
        pytest.skip(f"no package index can be asked here: {error}")
    if found.environment is None:
        pytest.skip(f"the package index here does not say when packages were released: {found.reason}")
    pins = found.environment.pins
    assert {"freezegun", "pytest", "python-dateutil"} <= {*pins}
    if sys.version_info < (3, 12):
        assert pins["freezegun"] == "freezegun==1.4.0" and pins["pytest"] == "pytest==7.4.4"
    monkey = room._known
    monkey.clear()
    again = find(files, date="2024-06-30", python=HERE)
    assert again.environment == found.environment, "one environment for the half year"


def _packages(found: Found) -> tuple[str, ...]:
    assert found.environment is not None, found.reason
    return found.environment.packages
