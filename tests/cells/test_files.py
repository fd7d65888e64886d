"""File operations on real folders: the walk, the caps, removal, and races that a player may run against them."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tiltyard.cells.inside import files, tree


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "work").mkdir()
    fd = os.open(tmp_path / "work", os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)
    tree.remove(str(tmp_path / "work"))  # pytest itself can't remove a deep tree


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))  # noqa: PTH208


def deep(folder: Path, levels: int) -> None:
    here = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(os.open("bottom", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


@pytest.mark.parametrize("path", ["", "/", "/a", ".", "..", "a/..", "../a", "a//b", "a/", "./a", "a\0"])
def test_split_refuses(path: str) -> None:
    with pytest.raises(files.FileError):
        files.split(path)


def test_shown() -> None:
    assert files.shown("plain ünï 日本\u3000.py".encode()) == "plain ünï 日本\u3000.py"
    assert files.shown(b"a\nb\x1b[0m\xff") == r"a\x0ab\x1b[0m\xff"
    assert files.shown("\u2028\u200b\U000e0001".encode()) == r"\u2028\u200b\U000e0001"
    assert files.plain("ünï".encode()) and not files.plain(b"\xff") and not files.plain(b"a\x7f")


def test_a_walk_in_a_deep_tree_uses_few_descriptors(root: int, tmp_path: Path) -> None:
    deep(tmp_path / "work", 1500)
    before = descriptors()
    most = 0
    count = 0
    for _ in tree.Walk(root):
        count += 1
        most = max(most, descriptors()) if count % 100 == 0 else most
    assert count == 1501 and most <= before + 3
    assert descriptors() == before


def test_a_walk_that_is_left_early_closes_its_descriptors(root: int, tmp_path: Path) -> None:
    deep(tmp_path / "work", 20)
    before = descriptors()
    for n, _ in enumerate(tree.Walk(root)):
        if n == 10:
            break
    assert descriptors() == before


def test_a_walk_has_its_cap(root: int, tmp_path: Path) -> None:
    for n in range(50):
        (tmp_path / "work" / f"f{n:02}").touch()
    walk = tree.Walk(root, max_seen=20)
    assert len(list(walk)) == 20 and not walk.complete
    assert tree.usage(root, 20)[1] == 20


def test_looking_how_much_is_used_leaves_modes_as_they_are(root: int, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "a/b/c").mkdir(parents=True)
    (work / "a/b/c/file").write_bytes(bytes(5000))
    (work / "d").mkdir()
    folders = [work / "a/b/c", work / "a/b", work / "a", work / "d", work]
    modes = [0, 0o100, 0o400, 0o055, 0o300]
    for folder, mode in zip(folders, modes, strict=True):
        folder.chmod(mode)
    try:
        before = descriptors()
        size, count = tree.usage(root, 100)
        assert count == 5 and size >= 5000
        found = []
        for folder in reversed(folders):
            found.insert(0, stat.S_IMODE(folder.stat().st_mode))
            folder.chmod(0o700)
        assert found == modes
        for folder, mode in zip(folders, modes, strict=True):
            folder.chmod(mode)
        for n, _ in enumerate(tree.Walk(root, puts_back=True)):
            if n == 3:
                break  # at the deepest
        assert descriptors() == before
        for folder, mode in reversed(list(zip(folders, modes, strict=True))):
            assert stat.S_IMODE(folder.stat().st_mode) == mode
            folder.chmod(0o700)
    finally:
        for folder in reversed(folders):
            folder.chmod(0o700)


def test_names_that_are_exchanged_under_the_walk_leave_no_mode_lifted(root: int, tmp_path: Path) -> None:
    work = tmp_path / "work"
    for name in "AB":
        (work / name).mkdir()
        (work / name).chmod(0)
    walk = tree.Walk(root, puts_back=True)
    for path, _ in walk:
        if path == b"A":
            (work / "A").rename(work / "C")
            (work / "B").rename(work / "A")
    assert not walk.complete
    assert [stat.S_IMODE((work / name).stat().st_mode) for name in "AC"] == [0, 0]


def test_a_folder_that_moves_under_the_walk_leads_nowhere(root: int, tmp_path: Path) -> None:
    """The player moves the folder that is being walked out of the workspace: '..' would then lead out."""
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "a/b/c").mkdir(parents=True)
    (work / "z").touch()
    (outside / "secret").mkdir(parents=True)
    walk = tree.Walk(root)
    seen = []
    for path, _ in walk:
        seen.append(path)
        if path == b"a/b/c":
            (work / "a/b").rename(outside / "b")
    assert seen == [b"a", b"a/b", b"a/b/c"] and not walk.complete


def test_races_of_links_against_the_tools(root: int, tmp_path: Path) -> None:
    """A folder and a link out of the workspace take each other's place all the time, while files are read, written
    and captured: nothing outside is read or changed."""
    work, outside = tmp_path / "work", tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"SECRET")
    stop = threading.Event()

    def arrange() -> None:
        for path in work.iterdir():
            tree.remove(str(path))
        (work / "real").mkdir()
        (work / "real/file").write_bytes(b"plain")
        (work / "link").symlink_to(outside)

    def swap() -> None:
        while not stop.is_set():
            try:
                for a, b in (("real", "tmp"), ("link", "real"), ("real", "link"), ("tmp", "real")):
                    os.rename(work / a, work / b)  # noqa: PTH104
            except OSError:  # a tool made the folder while it was away
                with contextlib.suppress(OSError):
                    arrange()

    arrange()
    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(400):
            try:
                assert files.read(root, "real/file", 100) in (b"plain", b"new", b"")
            except files.FileError:
                pass
            try:
                files.write(root, "real/file", b"new")
            except files.FileError:
                pass
            found, _ = tree.capture(root, max_file_bytes=99, max_bytes=999, max_files=9, max_depth=9)
            assert all(data in (b"plain", b"new", b"") for _, data in found)
    finally:
        stop.set()
        thread.join()
    assert (outside / "file").read_bytes() == b"SECRET" and sorted(p.name for p in outside.iterdir()) == [
        "file"
    ]


def test_reading_never_opens_a_device(root: int, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can make a device")
    try:
        os.mknod(tmp_path / "work/zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except OSError as error:
        pytest.skip(f"no device can be made here ({error.strerror})")
    with pytest.raises(files.FileError, match="device"):
        files.read(root, "zero", 10)
    assert tree.listing(root, 9)[0] == [("zero", "device", 0)]


def test_a_failed_write_leaves_nothing(root: int, tmp_path: Path) -> None:
    (tmp_path / "work/folder").mkdir()
    with pytest.raises(files.FileError):
        files.write(root, "folder", b"x")
    files.write(root, "fine", b"x")
    assert sorted(p.name for p in (tmp_path / "work").iterdir()) == ["fine", "folder"]


def test_skipped_is_bounded(root: int, tmp_path: Path) -> None:
    for n in range(1500):
        (tmp_path / "work" / f"l{n:04}").symlink_to("x")
    _, skipped = tree.capture(root, max_file_bytes=9, max_bytes=9, max_files=9, max_depth=9)
    assert len(skipped) == tree.MAX_SKIPPED + 1 and skipped[-1] == ("…", "and 500 more")


def test_remove_copes_with_everything(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "canary").touch()
    deep(target, 1200)
    (target / "link").symlink_to(outside)
    os.mkfifo(target / "fifo")
    os.link(outside / "canary", target / "hard")
    (target / "sub/inner").mkdir(parents=True)
    (target / "sub/inner/file").touch()
    Path(os.fsdecode(os.fsencode(target) + b"/bad\xff\n")).touch()
    (target / "sub/inner").chmod(0)
    (target / "sub").chmod(0o100)
    target.chmod(0)
    before = descriptors()
    assert tree.remove(str(target))
    assert descriptors() == before
    assert not target.exists() and (outside / "canary").exists()
    assert tree.remove(str(target))
    assert tree.remove(str(tmp_path / "no/such/folder"))


def test_remove_of_many_files_and_folders() -> None:
    fast = "/dev/shm" if sys.platform.startswith("linux") and os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=fast) as temp:
        target = Path(temp) / "target"
        for n in range(2000):
            (target / f"d{n}").mkdir(parents=True)
            for m in range(9):
                (target / f"d{n}/f{m}").touch()
        fd = os.open(target, os.O_RDONLY)
        entries, left_out = tree.listing(fd, 10)
        assert len(entries) == 10 and left_out == 19_990
        os.close(fd)
        assert tree.remove(str(target)) and not target.exists()


def test_remove_of_a_link_or_a_file_removes_that_only(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/file").touch()
    (tmp_path / "link").symlink_to("real")
    assert tree.remove(str(tmp_path / "link"))
    assert (tmp_path / "real/file").exists() and not (tmp_path / "link").is_symlink()
    assert tree.remove(str(tmp_path / "real/file"))
    assert (tmp_path / "real").exists()
