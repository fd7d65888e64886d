"""Images: the same files are the same image, read when needed, kept once; broken and full stores; collecting."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tiltyard.errors import ArenaError, UsageError
from tiltyard.images import ImageFiles, Images, cache_folder
from tiltyard.images import store as store_module
from tiltyard.pool import load
from tiltyard.task import Files

FILES = Files({"pkg/__init__.py": "x = 1\n", "pkg/data.bin": b"\0\1", "é.txt": "é", "empty": ""})


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILTYARD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_an_image_is_as_its_files(tmp_path: Path) -> None:
    image = Images(tmp_path / "store").add(FILES)
    assert isinstance(image, ImageFiles) and image == FILES and image == FILES and hash(image) == hash(FILES)
    assert dict(image) == dict(FILES) and image.digests == FILES.digests and list(image) == list(FILES)
    assert image.sizes["pkg/data.bin"] == 2 and "empty" in image and "nothing" not in image
    assert image.over({"more": b"1"}) == FILES.over({"more": b"1"})
    assert Files({"a": "1"}, removed=["empty"]).over(image) == Files({"a": "1"}, removed=["empty"]).over(
        FILES
    )
    with pytest.raises(KeyError):
        image["nothing"]


def test_the_digest_is_the_contents_and_nothing_else(tmp_path: Path) -> None:
    one, other = (
        Images(tmp_path / "one").add(FILES),
        Images(tmp_path / "other").add(dict(reversed([*FILES.items()]))),
    )
    assert one.image == other.image
    assert Images(tmp_path / "one").add({**FILES, "empty": b"1"}).image != one.image
    assert Images(tmp_path / "one").add({**FILES, "empty2": b""}).image != one.image


def test_a_task_has_the_same_digest_with_it(tmp_path: Path) -> None:
    task = load("builtin")["median"]
    with_image = replace(task, start=Images(tmp_path).add(task.start))
    assert with_image.digest == task.digest and with_image == task


def test_nothing_is_read_before_it_is_needed_and_a_pickle_is_small(tmp_path: Path) -> None:
    store = Images(tmp_path)
    image = store.add({"big": os.urandom(1 << 20)})
    again = pickle.loads(data := pickle.dumps(store.get(image.image)))
    assert len(data) < 1000 and again == image
    (object_,) = (tmp_path / "objects").glob("*/*")
    object_.write_bytes(b"changed")
    fresh = Images(tmp_path).get(image.image)
    assert list(fresh) == ["big"]
    store_module._blobs.clear()
    with pytest.raises(ArenaError, match="was changed: it is not what its name says"):
        fresh["big"]
    object_.unlink()
    with pytest.raises(ArenaError, match="has lost 'big'"):
        fresh["big"]


def test_a_tree_is_a_folder_with_the_files_in_it(tmp_path: Path) -> None:
    tree = Images(tmp_path / "store").add(FILES).tree()
    there = {p.relative_to(tree).as_posix(): p.read_bytes() for p in tree.rglob("*") if p.is_file()}
    assert Files(there) == FILES
    assert stat.S_IMODE((tree / "pkg").stat().st_mode) == 0o755
    assert stat.S_IMODE((tree / "é.txt").stat().st_mode) == 0o644
    assert Images(tmp_path / "store").add(FILES).tree() == tree


def _tree(root: Path) -> str:
    return str(Images(root).add(FILES).tree())


def test_eight_at_once_make_one_tree(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(8) as pool:
        assert len({*pool.map(_tree, [tmp_path / "store"] * 8)}) == 1


def test_what_was_half_made_by_a_killed_process_is_made_again(tmp_path: Path) -> None:
    image = Images(tmp_path / "store").add(FILES)
    name = image.image.partition(":")[2]
    half = cache_folder() / "trees" / f".{name}.killed" / "files"
    half.mkdir(parents=True)
    (half / "é.txt").write_text("half")
    assert (image.tree() / "pkg/__init__.py").read_text() == "x = 1\n"
    assert not half.parent.exists()


def test_names_that_are_no_digest_and_images_that_are_not_there(tmp_path: Path) -> None:
    store = Images(tmp_path)
    for name in ("", "sha256:", "sha256:../../etc", "sha256:" + "z" * 64):
        with pytest.raises(UsageError, match="expected sha256"):
            store.get(name)
    with pytest.raises(UsageError, match="has no image"):
        store.get("sha256:" + "0" * 64)
    image = store.add(FILES)
    (manifest,) = (tmp_path / "images").glob("*.json")
    for broken in (b"", b"[]", b"{}", b"[[1]]", manifest.read_bytes().replace(b"empty", b"other")):
        manifest.write_bytes(broken)
        with pytest.raises(ArenaError, match="was changed"):
            store.get(image.image)
    with pytest.raises(UsageError, match="can't hold"):
        store.add({"../x": b""})


def test_collecting_takes_the_least_recently_used_and_spares_what_is_kept_or_in_use(tmp_path: Path) -> None:
    store = Images(tmp_path / "store")
    images = [store.add({"same": b"s" * 100, "own": bytes([n]) * 1000}) for n in range(4)]
    for n, image in enumerate(images):
        path = store._manifest(image.image)
        os.utime(path, (1000 + n, 1000 + n))
    tree = images[0].tree()
    os.utime(tree.parent, (500, 500))
    gone = store.collect(1200, keep=[images[1].image])
    assert gone.images >= 2 and gone.trees == 0 and tree.is_dir()  # this process uses it
    kept = {one.image for one in store.list()}
    assert images[1].image in kept and images[0].image not in kept
    assert store.get(images[1].image)["same"] == b"s" * 100
    assert store.collect(0).images == len(kept) and not list((tmp_path / "store" / "objects").glob("*/*"))


def test_a_tree_that_no_living_process_uses_is_collected(tmp_path: Path) -> None:
    code = f"from tiltyard.images import Images; print(Images({str(tmp_path / 'store')!r}).add({{'a': b'1'}}).tree())"
    tree = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()
    assert Path(tree, "a").read_bytes() == b"1"
    assert Images(tmp_path / "store").collect(0).trees == 1 and not Path(tree).exists()


def test_a_cache_that_can_not_be_written_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArenaError, match="can't write"):
        Images(tmp_path / "file" / "store").add(FILES)
    monkeypatch.setenv("TILTYARD_CACHE", "relative")
    with pytest.raises(UsageError, match="absolute"):
        cache_folder()
