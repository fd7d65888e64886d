"""What repositories declare, in each of the ways that there are, and what they import."""

from __future__ import annotations

import pytest

from tiltyard.environments.declared import read_declared
from tiltyard.environments.finding import wanted_of
from tiltyard.environments.imports import read_imports


def declared(**files: str) -> list[str]:
    return read_declared(
        {name.replace("__", "/").replace("_dot_", "."): text.encode() for name, text in files.items()}
    ).wanted()


PYPROJECT = """
[project]
name = "Thing"
version = "1.2"
requires-python = ">=3.8"
dependencies = ["click>=8"]
[project.optional-dependencies]
tests = ["freezegun", "thing[speed]"]
speed = ["ujson"]
docs = ["sphinx"]
[project.entry-points.pytest11]
thing = "thing.plugin"
"""


def test_project_tables_with_the_extras_that_tests_need() -> None:
    found = read_declared({"pyproject.toml": PYPROJECT.encode()})
    assert found.wanted() == ["click>=8", "freezegun", "ujson"]
    assert (found.name, found.version, found.requires_python) == ("Thing", "1.2", ">=3.8")
    assert found.entry_points == {"pytest11": ["thing = thing.plugin"]}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("pyproject.toml", '[dependency-groups]\ntest = ["a", {include-group = "more"}]\nmore = ["b>2"]\ndev = ["c"]', ["a", "b>2"]),
        ("pyproject.toml", '[dependency-groups]\ndev = ["c"]\ndocs = ["d"]', ["c"]),
        (
            "pyproject.toml",
            '[tool.poetry]\nname = "x"\n[tool.poetry.dependencies]\npython = "^3.8"\nattrs = "^22.1"\nz = {version = "~1.4", optional = true}\n'
            '[tool.poetry.group.test.dependencies]\nfreezegun = "*"\nb = {version = "1.5", extras = ["q"]}',
            ["attrs>=22.1,<23", "freezegun", "b[q]==1.5"],
        ),
        ("pyproject.toml", '[tool.poetry.dev-dependencies]\na = "^0.2.3"', ["a>=0.2.3,<0.3"]),
        ("pyproject.toml", '[tool.flit.metadata]\nmodule = "x"\nrequires = ["a"]\n[tool.flit.metadata.requires-extra]\ntest = ["b"]', ["a", "b"]),
        ("pyproject.toml", '[tool.pdm.dev-dependencies]\ntest = ["a"]', ["a"]),
        ("pyproject.toml", '[tool.hatch.envs.test]\ndependencies = ["a"]\nextra-dependencies = ["b"]', ["a", "b"]),
        ("pyproject.toml", '[tool.tox]\nlegacy_tox_ini = """\n[testenv]\ndeps =\n  a\n"""', ["a"]),
        ("pyproject.toml", "not = [toml", []),
        ("setup.cfg", "[options]\ninstall_requires =\n  a>1\n  b  # why\n[options.extras_require]\ntesting = c; d", ["a>1", "b"]),
        ("setup.cfg", "[options.extras_require]\ntesting =\n  c\n  d<3", ["c", "d<3"]),
        ("setup.py", 'from setuptools import setup\nNEED = ["a"] + ["b>=2"]\nsetup(name="x", install_requires=NEED, tests_require="c", extras_require=dict(test=["d"]))', ["a", "b>=2", "c", "d"]),
        ("setup.py", 'import setuptools\nwords = {"install_requires": ["a"], "x": open("README").read()}\nsetuptools.setup(**words)', ["a"]),
        ("setup.py", 'print "old"\nsetup(name="x", tests_require=["mock", "b"])', ["mock", "b"]),
        ("requirements-test.txt", "# tests\na==1 \\\n  --hash=sha256:00\n-e .\nb # why\n--index-url https://x\ngit+https://h/c.git#egg=c\n", ["a==1", "b", "c"]),
        ("test-requirements.txt", "a\n", ["a"]),
        ("requirements/testing.txt", "a\n", ["a"]),
        ("requirements.txt", "a\n", ["a"]),
        ("dev-requirements.txt", "a\n", ["a"]),
        ("requirements-docs.txt", "a\n", []),
        ("Pipfile", '[packages]\na = "*"\nme = {path = "."}\n[dev-packages]\nb = ">=2"', ["a", "b>=2"]),
        ("tox.ini", "[base]\ndeps =\n  b\n[testenv]\ndeps =\n  a>1\n  {[base]deps}\n  py27: mock\n  {posargs}\n[testenv:docs]\ndeps = sphinx", ["a>1", "b"]),
    ],
)  # fmt: skip
def test_each_way_to_declare(name: str, text: str, expected: list[str]) -> None:
    assert read_declared({name: text.encode()}).wanted() == expected


def test_requirements_files_include_each_other_and_end() -> None:
    files = {
        "requirements/test.txt": b"-r base.txt\n-r test.txt\na\n",
        "requirements/base.txt": b"--requirement ../more.txt\nb\n",
        "more.txt": b"c\n",
        "tox.ini": b"[testenv]\ndeps = -r {toxinidir}/requirements/test.txt\n",
    }
    assert sorted(set(read_declared(files).tests)) == ["a", "b", "c"]


def test_what_cannot_be_read_is_noted() -> None:
    found = read_declared({"pyproject.toml": b"[project", "requirements-test.txt": b"git+https://h/x.git\n"})
    assert any("pyproject.toml can't be read" in note for note in found.notes)
    assert any("is no package of an index" in note for note in found.notes)


def test_imports_that_always_happen_count() -> None:
    files = {
        "pkg/__init__.py": b"import os, yaml\nfrom . import core\ntry:\n    import ujson\nexcept ImportError:\n    ujson = None\n",
        "pkg/core.py": b"import pkg.other\nfrom dateutil import tz\ndef f():\n    import requests\nif False:\n    import torch\n",
        "tests/test_a.py": b"import helpers\nimport pytest\nimport freezegun\nnumpy = pytest.importorskip('numpy')\n"
        b"@pytest.mark.asyncio\nasync def test_x(mocker): pass\n",
        "tests/helpers.py": b"",
        "tests/broken.py": b"print 'x'",
        "docs/conf.py": b"import sphinx",
        "setup.py": b"import setuptools",
        "pkg/_vendor/six.py": b"import winreg",
    }
    found = read_imports(files)
    assert found.package == {"PyYAML", "python-dateutil"}
    assert found.tests == {"pytest", "freezegun", "pytest-mock", "pytest-asyncio"}
    assert "numpy" in found.anywhere


def test_what_tests_do_not_need_is_left_out_unless_they_import_it() -> None:
    files = {
        "requirements-test.txt": b"pytest<8\npytest-cov\nflake8\nsphinx\ncoverage==5\ntox\nfreezegun\npywin32; sys_platform == 'win32'\nold; python_version < '3'\n",
        "tests/test_a.py": b"import coverage\n",
    }
    wanted = wanted_of(files, python="3.11")
    assert wanted.requirements == ("pytest<8", "coverage==5", "freezegun", "pytest>=7.0")
    assert wanted.guessed == ()


def test_dates_are_half_years_and_not_before_there_were_packages_for_that_python() -> None:
    def dates(date: str, python: str) -> tuple[str, str]:
        wanted = wanted_of({}, date=date, python=python)
        return wanted.date, wanted.exact

    assert dates("2024-10-05T10:00:00+02:00", "3.11") == ("2024-07-01", "2024-10-05")
    assert dates("2024-06-30", "3.11") == ("2024-01-01", "2024-06-30")
    assert dates("2014-06-30", "3.11") == ("2023-04-01", "2023-04-01")
    assert dates("", "3.11") == ("", "")
