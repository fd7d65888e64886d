"""``tiltyard bench``, as a person calls it."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

from tiltyard.bench import command_line

PAGE = "<!-- figures: begin -->\n<!-- figures: end -->\n<!-- samples: begin -->\n<!-- samples: end -->\n"


def tiltyard(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tiltyard", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_json_and_page_of_a_quick_run(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    words = ("bench", "--wall", "process", "--quick", "--repeats", "1", "--json", "--page", page)
    done = tiltyard(*words)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {"machine", "walls", "floors", "ratios"} <= found.keys()
    assert set(found["walls"]) == {"process"}
    assert found["settings"]["command"].endswith("--page page.md")
    text = page.read_text()
    assert "tiltyard bench --wall process" in text
    assert str(tmp_path) not in text
    assert "<!-- samples: begin -->\n<!-- samples: end -->" in text


def test_a_name_that_is_no_walls():
    done = tiltyard("bench", "--wall", "glass")
    assert (done.returncode, done.stdout) == (2, "")
    assert "found the wall 'glass'" in done.stderr


def test_a_page_without_a_place_is_found_at_once(tmp_path: Path):
    done = tiltyard("bench", "--page", tmp_path / "none.md")
    assert (done.returncode, done.stdout) == (2, "")
    assert "none.md can't be read" in done.stderr


def samples(folder: Path, passes: bool) -> tuple[Path, Path]:
    problem = {
        "task_id": "HumanEval/0",
        "prompt": 'def twice(x: int) -> int:\n    """Twice x."""\n',
        "entry_point": "twice",
        "canonical_solution": "    return 2 * x\n",
        "test": "def check(candidate):\n    assert candidate(3) == 6\n",
    }
    row = {"task_id": "HumanEval/0", "samples": ["    return x + x\n"], "passes": [passes]}
    paths = folder / "samples.jsonl.gz", folder / "problems.jsonl.gz"
    for path, data in zip(paths, (row, problem), strict=True):
        path.write_bytes(gzip.compress(json.dumps(data).encode()))
    return paths


def test_samples_that_are_as_the_file_says(tmp_path: Path):
    file, problems = samples(tmp_path, True)
    done = tiltyard("bench", "--samples", file, "--problems", problems, "--json", "--workers", "1")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["samples"]
    assert (found["samples"], found["compared_with_file"], found["differ_from_file"]) == (1, 1, 0)
    assert found["published"]["passed"] == 1


def test_samples_that_are_not_are_bad_news(tmp_path: Path):
    file, problems = samples(tmp_path, False)
    done = tiltyard(
        "bench", "--samples", file, "--problems", problems, "--no-published", "--rows", "as-written"
    )
    assert done.returncode == 1, done.stderr
    assert "HumanEval/0#0: isolated: passed; file: fails" in done.stdout


def test_samples_behind_two_walls_make_no_sense(tmp_path: Path):
    file, problems = samples(tmp_path, True)
    done = tiltyard(
        "bench", "--samples", file, "--problems", problems, "--wall", "process", "--wall", "namespace"
    )
    assert done.returncode == 2
    assert "found 2 walls" in done.stderr


def test_a_command_line_names_no_folder():
    assert command_line(["bench", "--samples", "/some/where/s.jsonl"]) == "tiltyard bench --samples s.jsonl"
    assert command_line(["bench", "--page", "a b.md"]) == "tiltyard bench --page 'a b.md'"
