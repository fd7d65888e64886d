"""Two small tasks, one of each way of grading, for the environment's tests."""

from __future__ import annotations

from tiltyard.task import Files, Task, Test

ADD = Task(
    id="add",
    prompt="Write add(a, b).",
    start=Files({"solution.py": "def add(a, b):\n    return 0\n", "lib.py": "x = 1\n"}),
    hidden=(
        Test("h1", "assert add(1, 2) == 3"),
        Test("h2", "assert add(0, 0) == 0"),
        Test("h3", "assert add(-1, 5) == 4"),
        Test("h4", "assert add(2, 2) == 4"),
    ),
    reference=Files({"solution.py": "def add(a, b):\n    return a + b\n"}),
    visible=(Test("small", "assert add(1, 2) == 3"),),
    protected=frozenset({"lib.py"}),
    entry=("add",),
)
DOUBLE = Task(
    id="double",
    prompt="Read a number, print its double.",
    start=Files({"main.py": "print(0)\n"}),
    hidden=(Test("h1", stdin="4\n", stdout="8\n"), Test("h2", stdin="0\n", stdout="0\n")),
    reference=Files({"main.py": "print(2 * int(input()))\n"}),
    visible=(Test("two", stdin="2\n", stdout="4\n"),),
    main="main.py",
    grading="stdio",
)
SOLVE = {"tool": "write_file", "path": "solution.py", "content": "def add(a, b):\n    return a + b\n"}
