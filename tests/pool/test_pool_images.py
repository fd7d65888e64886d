"""Tasks whose start files are an image: written with a store beside them, read back the same, and lazily."""

import gzip
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tiltyard.cli import app
from tiltyard.errors import TaskError
from tiltyard.images import ImageFiles, Images
from tiltyard.pool import Pool, describe, load, load_lenient, to_dict, to_folder, to_jsonl
from tiltyard.task import Files, Metadata, Task, Test

START = {
    "pkg/__init__.py": "",
    "pkg/core.py": "def one():\n    return 2\n",
    "pkg/old.py": "",
    "data.bin": b"\xff\x00",
    "__pycache__/left.pyc": b"kept in an image",
    "tests/test_core.py": "def test_it():\n    pass\n",
}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILTYARD_CACHE", str(tmp_path / "cache"))


def task(store: Images, id: str = "r-1", **more: object) -> Task:
    values: dict[str, object] = {
        "prompt": "one() must be 1",
        "start": store.add(Files({**START, "id.txt": id})),
        "suite": Files(
            {"tests/test_core.py": "from pkg.core import one\ndef test_it():\n    assert one() == 1\n"}
        ),
        "reference": Files({"pkg/core.py": "def one():\n    return 1\n"}, removed=["pkg/old.py"]),
        "hidden": (Test("tests/test_core.py::test_it"),),
        "visible": (Test("tests/test_core.py"),),
        "grading": "pytest",
        "reward": "all",
        "shell": True,
        "metadata": Metadata(source="pkg", python="3.11", packages=("pytest==8.3.4",)),
    }
    return Task(id=id, **(values | more))  # type: ignore[arg-type]


def test_both_forms_come_back_the_same(tmp_path: Path) -> None:
    made = Pool("repos", 1, (task(Images(tmp_path / "a")), task(Images(tmp_path / "a"), "images")))
    to_folder(made, tmp_path / "pool")
    (tmp_path / "rows").mkdir()
    to_jsonl(made, tmp_path / "rows" / "p.jsonl")
    to_jsonl(made, tmp_path / "rows" / "p.jsonl.gz")
    shutil.rmtree(tmp_path / "a")  # nothing of the store that they came from is needed
    for spec in (tmp_path / "pool", tmp_path / "rows" / "p.jsonl", tmp_path / "rows" / "p.jsonl.gz"):
        back = load(spec)
        assert {t.id for t in back} == {"r-1", "images"}
        for one in back:
            was = made[one.id]
            assert one.digest == was.digest
            assert isinstance(one.start, ImageFiles) and one.start.image == was.start.image
            assert one.reference.removed == {"pkg/old.py"} and one.shell and one.metadata == was.metadata
            assert one.start["__pycache__/left.pyc"] == b"kept in an image"
    row = json.loads(gzip.decompress((tmp_path / "rows" / "p.jsonl.gz").read_bytes()).splitlines()[0])
    assert "start" not in row and row["image"].startswith("sha256:")


def test_what_is_read_is_written_again(tmp_path: Path) -> None:
    to_folder(Pool("p", 1, (task(Images()),)), tmp_path / "one")
    back = load(tmp_path / "one")
    to_folder(back, tmp_path / "two")
    shutil.rmtree(tmp_path / "one")
    again = load(tmp_path / "two")
    assert again.digest == back.digest
    assert again[0].start["pkg/core.py"] == b"def one():\n    return 2\n"


def test_a_task_alone_has_its_image_in_its_folder(tmp_path: Path) -> None:
    one = task(Images())
    to_folder(one, tmp_path / "alone")
    shutil.rmtree(tmp_path / "cache")
    assert load(tmp_path / "alone")[0].digest == one.digest


def test_plain_files_stay_plain_and_a_reference_may_only_remove(tmp_path: Path) -> None:
    plain = task(
        Images(),
        start=Files({k: v for k, v in START.items() if "pyc" not in k}),
        reference=Files({}, removed=["pkg/core.py"]),
    )
    to_folder(Pool("p", 1, (plain,)), tmp_path / "pool")
    to_jsonl([plain], tmp_path / "p.jsonl")
    for spec in (tmp_path / "pool", tmp_path / "p.jsonl"):
        [back] = load(spec)
        assert back.digest == plain.digest and back.start.image == ""
        assert back.reference.over(back.start).get("pkg/core.py") is None
    assert not (tmp_path / "pool" / "images").exists() and not (tmp_path / "images").exists()


def test_a_row_in_python_finds_its_image_in_the_cache() -> None:
    one = task(Images())
    assert load([to_dict(one)])[0].digest == one.digest


def test_an_image_that_is_not_there_is_named_with_its_task(tmp_path: Path) -> None:
    made = Pool("p", 1, (task(Images()), task(Images(), "b")))
    to_folder(made, tmp_path / "pool")
    shutil.rmtree(tmp_path / "cache")
    gone = made["b"].start.image.partition(":")[2]
    (tmp_path / "pool" / "images" / "images" / f"{gone}.json").unlink()
    pool, problems = load_lenient(tmp_path / "pool")
    assert pool.ids == ("r-1",)
    [problem] = problems
    assert problem.field == "image" and gone in problem.found and "b/task.toml" in problem.where
    to_jsonl([task(Images())], tmp_path / "p.jsonl")
    row = json.loads((tmp_path / "p.jsonl").read_text())
    for strange in ("sha256:xyz", "../../etc/passwd", "sha256:" + "0" * 64):
        with pytest.raises(TaskError, match="image"):
            load([{**row, "image": strange}])
    with pytest.raises(TaskError, match="one of the two"):
        load([{**row, "start": {"a.py": ""}}])


def test_a_changed_file_of_a_store_is_found(tmp_path: Path) -> None:
    to_folder(Pool("p", 1, (task(Images()),)), tmp_path / "pool")
    shutil.rmtree(tmp_path / "cache")
    [back] = load(tmp_path / "pool")
    sha = back.start.digests["pkg/core.py"]
    file = tmp_path / "pool" / "images" / "objects" / sha[:2] / sha
    file.chmod(0o644)
    file.write_bytes(b"def one(): return 1\n")
    digest = back.digest  # of the manifest: nothing is read for it
    assert digest == task(Images()).digest
    with pytest.raises(Exception, match="was changed"):
        back.start["pkg/core.py"]


def test_the_order_of_both_lists_is_kept(tmp_path: Path) -> None:
    ids = ("tests/test_core.py::test_a", "tests/test_core.py::test_it", "tests/test_core.py::test_b")
    one = task(Images(), hidden=tuple(map(Test, ids)), pass_to_pass=(ids[0], ids[2]))
    to_folder(Pool("p", 1, (one,)), tmp_path / "pool")
    to_jsonl([one], tmp_path / "p.jsonl")
    for spec in (tmp_path / "pool", tmp_path / "p.jsonl"):
        [back] = load(spec)
        assert back.digest == one.digest and tuple(t.id for t in back.hidden) == ids
    toml = tmp_path / "pool" / "r-1" / "task.toml"
    toml.write_text(toml.read_text().replace('"tests/test_core.py::test_a", "tests', '"tests', 1))
    with pytest.raises(TaskError, match="order"):
        load(tmp_path / "pool")


def test_what_is_shown_of_an_image_is_its_list(tmp_path: Path) -> None:
    one = task(Images())
    assert (
        describe(one)["start"]["pkg/core.py"] == "def one():\n    return 2\n"
    )  # for graders that are programs
    facts = describe(one, hidden=True, listed=True)
    assert facts["image"] == one.start.image and facts["start"]["data.bin"] == {"bytes": 2}
    assert facts["removed"] == ["pkg/old.py"] and "return 1" in facts["reference"]["pkg/core.py"]
    to_jsonl([one], tmp_path / "p.jsonl")
    done = CliRunner().invoke(app, ["show", str(tmp_path / "p.jsonl"), "r-1", "--hidden"])
    assert done.exit_code == 0 and f"{len(one.start)} files" in done.stdout and "def one" in done.stdout
    assert "kept in an image" not in done.stdout
