"""Which side of a commit a file is on: the tests', the source's, or neither. Pure: paths and texts only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_TEST_FOLDERS = frozenset({"test", "tests", "unittests", "unit_tests", "test_data", "testdata"})
_ASIDE_FOLDERS = frozenset(
    "doc docs examples example samples benchmarks benchmark bench tools scripts misc contrib tasks notebooks "
    "ci .github .circleci vendor _vendor third_party".split()
)
_ASIDE_FILES = frozenset("setup.py conf.py noxfile.py tasks.py fabfile.py versioneer.py dodo.py".split())
_TEST_FILE = re.compile(r"(test_[^/]*|[^/]*_tests?|tests?|conftest)\.py")


def is_test_side(path: str) -> bool:
    """Whether a file belongs to the tests: by its own name, or by a folder's on the way to it."""
    *folders, name = path.split("/")
    in_folder = any(folder.lower() in _TEST_FOLDERS for folder in folders) or folders[:1] == ["testing"]
    return in_folder or bool(_TEST_FILE.fullmatch(name))


def is_test_module(path: str) -> bool:
    """Whether it is a file that pytest collects by its name (``tests.py`` is not, by default)."""
    name = path.rpartition("/")[2]
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


def is_source(path: str) -> bool:
    """Whether it is Python of the package: no test, no documentation, no tool around it."""
    *folders, name = path.split("/")
    return (
        name.endswith(".py")
        and not is_test_side(path)
        and name not in _ASIDE_FILES
        and not _ASIDE_FOLDERS & {folder.lower() for folder in folders}
    )


def tests_to_run(changed: Iterable[str], after: Mapping[str, bytes], most: int) -> tuple[str, ...]:
    """The test modules that a change of these test-side files concerns: those that changed, and, for data and helpers
    that changed, those that name them. ``after`` are all files after the commit; at most ``most`` modules."""
    paths = [path for path in changed if path in after]
    modules = [path for path in paths if is_test_module(path) or _has_tests(path, after[path])]
    others = [path for path in paths if path not in modules]
    if others:
        words = {_word(path) for path in others}
        everywhere = [path for path in after if is_test_module(path) and path not in modules]
        modules += [path for path in everywhere if _names_one(path, after[path], words, others)]
    return tuple(modules[:most])


def _has_tests(path: str, data: bytes) -> bool:
    """Whether a file has tests in it though it is not called so: pytest finds them if it is pointed at it."""
    name = path.rpartition("/")[2]
    is_module = name.endswith(".py") and name not in ("__init__.py", "conftest.py")
    return is_module and re.search(rb"^\s*(async )?def test_?\w", data, re.MULTILINE) is not None


def _word(path: str) -> str:
    """How a test would name a file: without its ending, as in ``import helpers`` or ``load_fixture("math")``."""
    stem = path.rpartition("/")[2].partition(".")[0]
    return path.split("/")[-2] if stem == "__init__" and "/" in path else stem


def _names_one(path: str, data: bytes, words: set[str], others: list[str]) -> bool:
    text = data.decode("utf-8", "replace")
    shared = [o for o in others if o.endswith("conftest.py") and path.startswith(o[: -len("conftest.py")])]
    return bool(shared) or any(
        re.search(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])", text) for word in words if word
    )
