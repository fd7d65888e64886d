"""Files that a build would make: version modules and metadata, as a repository's own code asks for them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tiltyard.environments import generated_files, version_of


def laid(folder: Path, files: Mapping[str, bytes]) -> Path:
    for path, data in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return folder


def asked(folder: Path, code: str) -> str:
    path = [str(folder), str(folder / "src")]
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {path!r}; {code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_package_that_imports_its_generated_version_and_asks_for_its_metadata(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": b'[project]\nname = "My-Thing"\ndynamic = ["version"]\n'
        b'[project.scripts]\nthing = "my_thing:main"\n'
        b'[tool.hatch.build.hooks.vcs]\nversion-file = "src/my_thing/_version.py"\n',
        "src/my_thing/__init__.py": b"from importlib.metadata import version\nfrom my_thing._version import version_tuple, __version__ as v\nfound = version('my-thing')\n",
    }
    made = generated_files(files, "v1.2.3")
    assert set(made) == {
        "src/my_thing/_version.py",
        "src/My_Thing-1.2.3.dist-info/METADATA",
        "src/My_Thing-1.2.3.dist-info/entry_points.txt",
    }
    laid(tmp_path, {**files, **made})
    assert (
        asked(tmp_path, "import my_thing as m; print(m.found, m.v, m.version_tuple)")
        == "1.2.3 1.2.3 (1, 2, 3)"
    )
    points = "from importlib.metadata import entry_points as e; print([p.value for p in e(group='console_scripts')])"
    assert asked(tmp_path, points) == "['my_thing:main']"


@pytest.mark.parametrize(
    ("files", "path"),
    [
        ({"pyproject.toml": '[tool.setuptools_scm]\nwrite_to = "pkg/_version.py"'}, "pkg/_version.py"),
        ({"pyproject.toml": '[tool.setuptools_scm]\nversion_file = "pkg/v.txt"'}, "pkg/v.txt"),
        (
            {"setup.py": "from setuptools import setup\nsetup(use_scm_version={'write_to': 'pkg/_v.py'})"},
            "pkg/_v.py",
        ),
        ({"pkg/__init__.py": "from ._version import version"}, "pkg/_version.py"),
        ({"pkg/__init__.py": "from . import _version"}, "pkg/_version.py"),
        (
            {"pkg/__init__.py": "", "pkg/sub/__init__.py": "from .._version import get_versions"},
            "pkg/_version.py",
        ),
        ({"src/pkg/__init__.py": "from pkg.version import __version__"}, "src/pkg/version.py"),
        (
            {"pkg/__init__.py": "try:\n    from ._version import v\nexcept ImportError:\n    v = 0"},
            "pkg/_version.py",
        ),
    ],
)
def test_version_files_that_are_configured_or_imported(files: dict[str, str], path: str) -> None:
    made = generated_files({name: text.encode() for name, text in files.items()}, "2.0")
    assert path in made and b"2.0" in made[path]
    if path.endswith(".py"):
        compile(made[path], path, "exec")


def test_what_is_there_is_left_alone() -> None:
    files = {
        "pyproject.toml": b'[project]\nname = "x"\n[tool.setuptools_scm]\nwrite_to = "x/_version.py"\n',
        "x/__init__.py": b"from ._version import version\nfrom .version import y\n",
        "x/_version.py": b"version = 'mine'\n",
        "x/version/__init__.py": b"y = 1\n",
        "x-1.0.dist-info/METADATA": b"",
    }
    assert set(generated_files(files)) <= {"x-0.0.0.dist-info/METADATA"}
    assert dict(generated_files({}, "1.0")) == {}
    assert generated_files(files) == generated_files(dict(reversed(files.items())))


def test_hostile_names_make_no_paths_outside(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": b'[project]\nname = "../../x"\nversion = "1/../../y"\n[tool.setuptools_scm]\nwrite_to = "../../evil.py"\n',
        "pkg/__init__.py": b"from ..._version import version\n",
    }
    for path in generated_files(files, "../../z"):
        assert ".." not in path.split("/") and not path.startswith("/")


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"pyproject.toml": '[project]\nversion = "1.0"'}, "1.0"),
        ({"setup.cfg": "[metadata]\nname = pkg\nversion = 2.0"}, "2.0"),
        (
            {
                "setup.cfg": "[metadata]\nname = pkg\nversion = attr: pkg.v",
                "pkg/__init__.py": "__version__ = '3.0'",
            },
            "3.0",
        ),
        ({"src/pkg/about.py": '__version__: str = "4.0"'}, "4.0"),
        ({"setup.py": "from setuptools import setup\nV = '5.0'\nsetup(name='x', version=V)"}, "5.0"),
        ({"pkg/__init__.py": "__version__ = compute()"}, ""),
    ],
)
def test_the_version_that_files_declare(files: dict[str, str], version: str) -> None:
    assert version_of({name: text.encode() for name, text in files.items()}) == version
