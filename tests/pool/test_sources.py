import ast

import pytest

from tiltyard.pool.sources import (
    examples,
    stub_of,
    third_party,
    with_failing_body,
    with_imports,
    without_numpy,
)


@pytest.mark.parametrize(
    ("head", "entry", "tail"),
    [
        ('def f(x):\n    """Doc."""\n', "f", "    raise NotImplementedError\n"),
        ('def f(x):\n    """Doc."""', "f", "\n    raise NotImplementedError\n"),
        ("def f(x):\n", "f", "    raise NotImplementedError\n"),
        ("def f(x):\n\t'''Doc.'''\n", "f", "\traise NotImplementedError\n"),
        ("def g():\n    return 1\n\ndef f(x):\n  import math\n", "f", "  raise NotImplementedError\n"),
        ("X = 1\n", "f", None),
        ("def g(x):\n", "f", None),
        ("def f(x):\n    return 1\n\ndef g():\n", "f", None),
        ("def f(x:\n", "f", None),
        ("", "f", None),
    ],
)
def test_a_beginning_gets_a_body_that_fails(head: str, entry: str, tail: str | None) -> None:
    assert with_failing_body(head, entry) == (None if tail is None else head + tail)


def test_stubs() -> None:
    source = (
        "class Box:\n    size = 1\n\n"
        "async def a(x: int, /, y: 'no' = {}, *rest: int, z: str = 'q', w, **more) -> int:\n    return 1\n\nb = lambda: 1\n"
    )
    assert stub_of(source, ["Box", "a", "b"]) == (
        "class Box:\n    size = 1\n\n\n"
        "async def a(x, /, y=None, *rest, z='q', w, **more):\n    raise NotImplementedError\n\n\n"
        "def b(*args):\n    raise NotImplementedError\n"
    )


@pytest.mark.parametrize(
    ("doc", "expected"),
    [
        (">>> f(1)\n2\n>>> f(2)  # why\n3", ["assert f(1) == 2", "assert f(2) == 3"]),
        (">>> round(f(1), 2)\n2.5\n", ["assert round(f(1), 2) == 2.5"]),
        (">>> f(1)\nTraceback (most recent call last):\nValueError\n>>> f(2)\n", []),
        (">>> x = f(1)\n>>> x\n2\n>>> f(x)\n1\n>>> g(1)\n1", []),
        (">>> f(1)\n2\n>>> f(1)\n2\n", ["assert f(1) == 2"]),
        (">>> f([1,\n...    2])\n[2]\n", ["assert f([1,\n   2]) == [2]"]),
        (">>> f(1)\n<object>\n>>> f(2)\n1\n2", []),
        ("f(1) == 2\nf(2) ➞ [3]", ["assert f(1) == 2", "assert f(2) == [3]"]),
        (
            "For f(1), f(2) => {'a': 1}.\nf('=') = '=>' # so\nf(3) returns true",
            ["assert f('=') == '=>' # so"],
        ),
        (
            "f(1) should return 'x'\nf(5) -> None\nf(6) ==> (1,)",
            ["assert f(1) == 'x'", "assert f(5) == None", "assert f(6) == (1,)"],
        ),
        (
            ">>> f(1), f(2)\n(2, 3)\n>>> f(1) == 2\nTrue\n>>> not f(1)\nFalse\n>>> f(1)[0] + 1\n4",
            ["assert f(1)[0] + 1 == 4"],
        ),
        ("nothing here", []),
        (">>> f(7)\n8\n>>> f(8)\n9", ["assert f(8) == 9"]),
    ],
)
def test_examples_of_a_docstring(doc: str, expected: list[str]) -> None:
    body = "".join(f"    {line}\n" if line else "\n" for line in doc.split("\n"))
    tests = "def check(candidate):\n    assert candidate(7) == 70\n    assert candidate(8) == 9\n"
    lines = examples(f'def f(x):\n    """\n{body}    """\n', "f", tests)
    assert lines == expected
    for line in lines:
        ast.parse(line)


def test_imports_that_a_test_forgot() -> None:
    assert (
        with_imports("assert math.isclose(f(1), re.x)", ["f"])
        == "import math\nimport re\nassert math.isclose(f(1), re.x)"
    )
    for code in (
        "import math\nassert math.pi",
        "math = f\nassert math.x",
        "assert f.x and nothing.y",
        "assert (",
    ):
        assert with_imports(code, ["f"]) == code
    assert with_imports("assert string.x", ["string"]) == "assert string.x"


def test_packages() -> None:
    assert third_party(
        "import os.path, numpy.linalg as la\nfrom . import x\nfrom scipy import y", "import re"
    ) == ("numpy", "scipy")
    assert third_party('"""import the results from others"""\nimport math') == ()
    assert third_party("import (") == ()


def test_numpy_is_taken_out_and_the_rest_stays() -> None:
    source = "import numpy as np\nxs = [\n  1]\nfor x in xs:\n    f(*x,\n      0)\nf(1)\n"
    changed = without_numpy(source)
    assert changed is not None
    assert changed.count("\n") == source.count("\n")
    assert changed.startswith("\nxs = [\n  1]\nfor x in xs:\n    f(*__import__('copy').deepcopy(x), 0)\n")
    for unknown in ("import numpy", "import numpy as np\nnp.array([1])", "import numpy as n, os", "x = ("):
        assert without_numpy(unknown) is None
