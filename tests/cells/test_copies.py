"""Copies of cells: the checks of ``copies`` on the walls, what is one wall's own, and bytes that were made to do harm."""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conformance import LONG, Check, Ground, py, said, still_works
from copies import COPIES, FILES, MAKE, MOST, SEE, copy, pack
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tiltyard.cells import Cell, NotPacked, PackedCell, Run, Wall, make_wall
from tiltyard.cells.inside import copying
from tiltyard.cells.inside.files import FOLDER, FileError
from tiltyard.cells.inside.pack import LENGTH, META, Packer, Place
from tiltyard.cells.inside.unpack import Unpacker
from tiltyard.cells.start_git import missing
from tiltyard.errors import ArenaError
from tiltyard.images import ImageFiles, Images

HEAD = META.size
"""Where the name of an entry begins in its record."""


@pytest.mark.parametrize("check", COPIES, ids=str)
def test_copies(wall: Wall, check: Check) -> None:
    check.on(wall)


@pytest.fixture
def ground(wall: Wall) -> Iterator[Ground]:
    made = Ground(wall)
    yield made
    made.close()


@pytest.fixture
def namespaces() -> Iterator[Ground]:
    try:
        wall = make_wall("namespace")
    except ArenaError as error:
        pytest.skip(f"the namespace wall can't be had here: {error}")
    made = Ground(wall)
    yield made
    made.close()
    wall.close()


def test_packed_cells_are_plain_data(ground: Ground) -> None:
    packed = pack(ground.open(FILES))
    assert pickle.loads(pickle.dumps(packed)) == packed
    assert "solution" not in repr(packed)
    assert len(packed.data) < 1000


def test_from_wall_to_wall(namespaces: Ground) -> None:
    here = Ground(make_wall("process"))
    try:
        for one, other in ((namespaces, here), (here, namespaces)):
            cell = one.open(FILES)
            said(cell, MAKE, "in", "$HOME/in")
            there = copy(other, pack(cell))
            names = "import os; print(os.listdir('in/other'), os.stat('in/setuid').st_mode, open('in/moved').read())"
            assert said(there, names) == said(cell, names)
            assert said(there, "import os; print(len(os.listdir(os.environ['HOME'] + '/in')))") != "0"
    finally:
        here.close()
        here.wall.close()


# ---------------------------------------------------------------------------------------------------- the namespace wall

ADDRESSES = """
class A: pass
found = [A() for _ in range(200)]
print([id(a) for a in found], id(bytearray(100_000)), [id(a) for a in set(found)], hash(b"bytes"))
"""


def test_runs_of_a_copy_begin_in_the_same_memory(namespaces: Ground) -> None:
    cell = namespaces.open(FILES)
    for n in range(40):  # what a keeper has done shapes its memory
        cell.write(f"file{n}", bytes(1000 * n))
    early = pack(cell)
    before = said(cell, ADDRESSES)
    cell.read("file39", max_bytes=1 << 20)
    late = pack(cell)
    assert said(cell, ADDRESSES) == before
    assert said(copy(namespaces, early), ADDRESSES) == before
    other = copy(namespaces, late)
    assert said(other, ADDRESSES) == before
    assert said(copy(namespaces, pack(other)), ADDRESSES) == before
    assert said(namespaces.open({}), ADDRESSES) == before


def test_a_copy_is_behind_the_same_locks(namespaces: Ground) -> None:
    cell = namespaces.open(FILES)
    other = copy(namespaces, pack(cell))
    locks = (
        "import os\n"
        "print([line for line in open('/proc/self/status') if line.startswith(('Uid', 'Cap', 'NoNew', 'Seccomp:'))])\n"
        "print(os.listdir('/proc/self/fd'), os.listdir('/'), [line.split()[:3] for line in open('/proc/self/mounts')])"
    )
    assert said(other, locks) == said(cell, locks)
    assert py(other, "open('/etc/new', 'w')").rc != 0


def test_a_cell_with_one_id_that_lost_its_twin_is_not_packed(namespaces: Ground) -> None:
    """Its runs begin in another memory than those of a copy would."""
    cell = namespaces.open(FILES)
    py(cell, "import os, time\nif os.fork() == 0:\n  os.setsid(); time.sleep(99)")
    try:
        packed = pack(cell)
    except NotPacked as error:
        assert "memory" in str(error)
    else:
        assert said(copy(namespaces, packed), ADDRESSES) == said(cell, ADDRESSES)


# ------------------------------------------------------------------------------------------------------ the process wall


@pytest.fixture
def processes() -> Iterator[Ground]:
    wall = make_wall("process")
    made = Ground(wall)
    yield made
    made.close()
    wall.close()


@pytest.mark.parametrize(
    "code",
    [
        "open('note', 'w').write(os.getcwd())",
        "open('note', 'w').write('x' * (256 * 1024 - 20) + os.getcwd())",
        "open('note', 'w').write('x' * (1024 * 1024 - 5) + os.getcwd())",
        "os.symlink(os.getcwd() + '/solution.py', 'link')",
        "open(os.environ['HOME'] + '/note', 'w').write(os.environ['HOME'])",
    ],
)
def test_what_names_its_own_folder_can_not_be_copied(processes: Ground, code: str) -> None:
    cell = processes.open(FILES)
    said(cell, f"import os\n{code}")
    with pytest.raises(NotPacked, match="names the folder"):
        pack(cell)
    still_works(cell)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_owners_are_kept(processes: Ground) -> None:
    cell = processes.open(FILES)
    said(
        cell,
        "import os; os.chown('solution.py', 1234, 5678); os.chmod('solution.py', 0o4755); os.chown('pkg', 7, -1)",
    )
    other = copy(processes, pack(cell))
    owners = "import os; print([(s.st_uid, s.st_gid, s.st_mode) for s in map(os.stat, ('solution.py', 'pkg', '.'))])"
    assert said(other, owners) == said(cell, owners)
    assert "(1234, 5678, 35309)" in said(other, owners)


def test_a_folder_that_is_gone_is_said(processes: Ground) -> None:
    cell = processes.open(FILES)
    said(cell, "import os; os.rmdir(os.environ['HOME'])")
    with pytest.raises(NotPacked, match="home"):
        pack(cell)
    still_works(cell)


def test_nothing_is_left_of_a_copy_that_failed(
    processes: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = pack(processes.open(FILES))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(NotPacked):
        copy(processes, PackedCell(packed.data[:-5]))
    assert list(tmp_path.iterdir()) == []


# ----------------------------------------------------------------------------------------------- bytes that are to harm


def places(folder: Path) -> tuple[list[Place], contextlib.ExitStack]:
    stack, found = contextlib.ExitStack(), []
    for name in ("workspace", "home", "tmp"):
        (folder / name).mkdir()
        fd = os.open(folder / name, FOLDER)
        stack.callback(os.close, fd)
        found.append(Place(name, fd, fd))
    return found, stack


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A small packed cell with a bit of all."""
    folder = tmp_path_factory.mktemp("sample")
    found, stack = places(folder)
    with stack:
        top = folder / "workspace"
        (top / "a/b/c").mkdir(parents=True)
        (top / "a/b/c/file").write_bytes(b"deep")
        (top / "empty").touch()
        (top / "link").symlink_to("../../../target")
        os.link(top / "a/b/c/file", top / "hard")
        os.link(top / "a/b/c/file", top / "a/hard")
        os.mkfifo(top / "pipe")
        with (top / "sparse").open("wb") as file:
            file.seek(100_000)
            file.write(b"end")
        (folder / "home/x").write_text("x")
        player = os.getuid(), os.getgid()
        return b"".join(Packer(found, max_bytes=MOST, player=player))


def records(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(data):
        (size,) = LENGTH.unpack_from(data, at)
        found.append(data[at + LENGTH.size : at + LENGTH.size + size])
        at += LENGTH.size + size
    return found


def joined(found: list[bytes]) -> bytes:
    return b"".join(LENGTH.pack(len(record)) + record for record in found)


def unpack_here(data: bytes, piece: int = 1 << 20) -> None:
    """As a keeper does, in a folder beside which others must stay as they are."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "target").write_text("untouched")
        (folder / "beside").mkdir()
        found, stack = places(folder)
        with stack:
            unpacker = Unpacker(found, most_files=50, most_bytes=1 << 20)
            try:
                for at in range(0, len(data), piece):
                    unpacker.feed(data[at : at + piece])
                unpacker.finish()
            finally:
                unpacker.close()
                for path in folder.rglob("*"):  # or it could not be removed by an ordinary user
                    if path.is_dir() and not path.is_symlink():
                        path.chmod(0o700)
                assert sorted(p.name for p in folder.iterdir()) == [
                    "beside",
                    "home",
                    "target",
                    "tmp",
                    "workspace",
                ]
                assert (folder / "target").read_text() == "untouched"
                assert list((folder / "beside").iterdir()) == []


def harmless(data: bytes, piece: int = 1 << 20) -> None:
    fds = Path("/proc/self/fd")
    before = len(list(fds.iterdir())) if fds.exists() else 0
    with contextlib.suppress(FileError, OSError):
        unpack_here(data, piece)
    if before:
        assert len(list(fds.iterdir())) <= before


FUZZ = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize("piece", [1, 7, 1000, 1 << 20])
def test_pieces_may_be_of_any_size(sample: bytes, piece: int) -> None:
    unpack_here(sample, piece)
    with pytest.raises(FileError, match="too early"):
        unpack_here(sample[:-1], piece)


@FUZZ
@given(data=st.data())
def test_bits_that_are_flipped(sample: bytes, data: st.DataObject) -> None:
    changed = bytearray(sample)
    for at in data.draw(st.lists(st.integers(0, len(sample) - 1), min_size=1, max_size=4)):
        changed[at] = data.draw(st.integers(0, 255))
    harmless(bytes(changed), data.draw(st.sampled_from([13, 1 << 20])))


@FUZZ
@given(data=st.data())
def test_records_that_are_moved_changed_or_left_out(sample: bytes, data: st.DataObject) -> None:
    found = records(sample)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(found) - 1))
        what = data.draw(st.sampled_from(["drop", "double", "swap", "cut", "grow", "first"]))
        if what == "drop" and len(found) > 1:
            del found[at]
        elif what == "double":
            found.insert(data.draw(st.integers(0, len(found))), found[at])
        elif what == "swap":
            to = data.draw(st.integers(0, len(found) - 1))
            found[at], found[to] = found[to], found[at]
        elif what == "cut":
            found[at] = found[at][: data.draw(st.integers(0, len(found[at])))]
        elif what == "grow":
            found[at] += data.draw(st.binary(max_size=40))
        elif found[at]:
            found[at] = bytes((data.draw(st.integers(0, 12)),)) + found[at][1:]
    harmless(joined(found))


@FUZZ
@given(noise=st.binary(max_size=3000), cut=st.integers(0, 200))
def test_noise(sample: bytes, noise: bytes, cut: int) -> None:
    harmless(sample[:cut] + noise)


NAMES = [b"..", b".", b"", b"/", b"../x", b"a/../../x", b"/tmp/x", b"x\0y", b"y" * 256]


@pytest.mark.parametrize("name", NAMES, ids=repr)
@pytest.mark.parametrize("kind", ["file", "folder", "link", "fifo", "hard link"])
def test_names_that_lead_out(sample: bytes, name: bytes, kind: str) -> None:
    """In records that are right in every other way."""
    old = {"file": b"empty", "folder": b"a", "link": b"link", "fifo": b"pipe", "hard link": b"hard"}[kind]
    found = records(sample)
    hits = 0
    for n, record in enumerate(found):
        if (
            len(record) > HEAD
            and record[HEAD:].startswith(old)
            and int.from_bytes(record[1:3], "big") == len(old)
        ):
            found[n] = (
                record[:1] + len(name).to_bytes(2, "big") + record[3:HEAD] + name + record[HEAD + len(old) :]
            )
            hits += 1
    assert hits
    with pytest.raises(FileError, match="no packed cell"):
        unpack_here(joined(found))


def test_a_link_is_no_way_out(sample: bytes) -> None:
    """A link first, and then a folder of its name, in which there is a file."""
    found = records(sample)
    at = next(n for n, record in enumerate(found) if record[HEAD:].startswith(b"link"))
    out = found[at][:1] + (1).to_bytes(2, "big") + found[at][3:HEAD] + b"a" + b"../beside"
    with pytest.raises((FileError, OSError)):
        unpack_here(joined([*found[:2], out, *found[2:]]))
    with pytest.raises((FileError, OSError)):
        unpack_here(joined([*found[: at + 1], out, *found[at + 1 :]]))


def test_giants_cost_nothing(sample: bytes) -> None:
    """No length is believed before the bytes are there; a file's size is the disk's to refuse."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for size in (1 << 31, (1 << 32) - 1, 5 << 20):
        with pytest.raises(FileError, match="impossible length"):
            unpack_here(sample[:19] + LENGTH.pack(size) + b"x" * 1000)
    too_many = [*records(sample)[:2], *[records(sample)[2]] * 60]
    with pytest.raises(FileError, match="more files"):
        unpack_here(joined(too_many))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_fuzzed_bytes_in_real_cells(ground: Ground) -> None:
    cell = ground.open(FILES)
    said(cell, MAKE.replace("4096", "1"), "in")
    found = records(pack(cell).data)
    for n in range(12):
        bad = list(found)
        at = (n * 17) % len(bad)
        bad[at], bad[-1 - at] = bad[-1 - at], bad[at]
        try:
            other: Cell = copy(ground, PackedCell(joined(bad)))
        except ArenaError:
            continue
        other.list(max_entries=10)
        other.close()
    assert "setuid" in said(copy(ground, PackedCell(joined(found))), SEE, ".")


# ------------------------------------------------------------------------------------------------------- repositories

START = {f"pkg/mod{n}.py": f"x = {n}\n".encode() * 50 for n in range(60)} | {
    "README.md": b"hello\n",
    "old/a.py": b"a = 1\n",
    "old/deep/b.py": b"b = 1\n",
    "gone.txt": b"gone",
}


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ImageFiles:
    monkeypatch.setenv("TILTYARD_CACHE", str(tmp_path / "cache"))
    return Images().add(START)


@pytest.fixture
def overlays(namespaces: Ground, image: ImageFiles) -> Ground:
    """The namespace wall where it has overlays."""
    namespaces.open(image).close()
    if namespaces.wall.no_overlay is not None:  # type: ignore[attr-defined]
        pytest.skip(f"no overlay here: {namespaces.wall.no_overlay}")  # type: ignore[attr-defined]
    return namespaces


CHANGE = """
import os, shutil
open("pkg/mod1.py", "a").write("changed\\n")
os.remove("gone.txt")
os.remove("pkg/mod2.py")
os.mkdir("pkg/mod2.py")
shutil.rmtree("old")
os.mkdir("old")
open("old/new.py", "w").write("new")
os.chmod("pkg/mod3.py", 0o700)
os.rename("pkg/mod4.py", "pkg/mod5.py")
os.symlink("pkg", "link")
os.link("pkg/mod6.py", "hard")
os.utime("pkg/mod7.py", ns=(1, 2))
for n in range(9):
    open(f"z{n}", "w")
os.chmod(".", 0o711)
"""


def git(cell: Cell, words: str) -> str:
    result = cell.run(Run(("git", *words.split()), wall_s=LONG))
    assert result.rc == 0, result
    return result.stdout.decode()


def test_of_an_overlay_only_what_was_changed_is_packed(overlays: Ground, image: ImageFiles) -> None:
    cell = overlays.open(image)
    assert len(pack(cell).data) < 500
    said(cell, CHANGE)
    packed = pack(cell)
    assert 500 < len(packed.data) < 10_000
    assert image.image.partition(":")[2] in packed.over
    assert pack(cell) == packed
    other = copy(overlays, packed, image)
    assert pack(other) == packed
    assert said(other, SEE, ".") == said(cell, SEE, ".")
    assert (
        said(other, "import os; print(os.listdir('old'), os.path.exists('gone.txt'))") == "['new.py'] False"
    )
    caps = {"max_file_bytes": 1 << 20, "max_bytes": 1 << 24, "max_files": 999, "max_depth": 20}
    one, two = cell.capture(**caps), other.capture(**caps)
    assert (dict(one.files), one.skipped) == (dict(two.files), two.skipped)
    assert set(two.files) >= {"pkg/mod1.py", "old/new.py", "pkg/mod9.py"}
    assert said(other, ADDRESSES) == said(cell, ADDRESSES)
    said(other, "import shutil, os; shutil.rmtree('pkg'); os.mkdir('pkg'); open('gone.txt', 'w')")
    assert said(other, "import os; print(os.listdir('pkg'))") == "[]"
    assert said(copy(overlays, packed, image), SEE, ".") == said(cell, SEE, ".")
    assert pack(copy(overlays, pack(other), image)) == pack(other)


@pytest.mark.skipif(missing() is not None, reason=f"{missing()}")
def test_git_goes_on_in_a_copy(ground: Ground, image: ImageFiles) -> None:
    cell = ground.open(image)
    said(cell, CHANGE)
    git(cell, "add -A")
    git(cell, "-c user.name=me -c user.email=me@here commit -q -m one")
    said(cell, "open('pkg/mod9.py', 'a').write('more')")
    other = copy(ground, pack(cell), image)
    for words in ("status --short", "log --format=%H%s", "diff", "fsck", "ls-files -s"):
        assert git(other, words) == git(cell, words)
    git(other, "checkout -q HEAD~1")
    assert other.read("gone.txt", max_bytes=9) == b"gone"


def test_an_overlay_is_not_copied_to_where_none_can_be(
    overlays: Ground, processes: Ground, image: ImageFiles
) -> None:
    packed = pack(overlays.open(image))
    with pytest.raises(NotPacked, match="other files"):
        copy(processes, packed, image)
    with pytest.raises(NotPacked, match="other files"):
        copy(overlays, packed, Images().add({"another": b"image"}))
    with pytest.raises(NotPacked, match="other files"):
        copy(overlays, pack(processes.open(image)), image)


@pytest.mark.parametrize("name", ["redirect", "metacopy", "upper"])
def test_what_would_lead_elsewhere_below_is_refused(overlays: Ground, image: ImageFiles, name: str) -> None:
    cell = overlays.open(image)
    said(
        cell,
        f"import os; os.setxattr('.', 'user.12345678.' + 'x' * {len(name)}, b'/pkg'); open('old/a.py', 'a')",
    )
    packed = pack(cell)
    real = f"user.12345678.{'x' * len(name)}".encode()
    assert real in packed.data
    bad = packed.data.replace(real, f"user.overlay.{name}x".encode())
    with pytest.raises(NotPacked, match="attribute"):
        copy(overlays, PackedCell(bad, packed.over), image)
    assert "user.12345678" in said(copy(overlays, packed, image), "import os; print(os.listxattr('.'))")


def test_what_a_fork_server_does_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure there would only be slow, and never seen."""
    monkeypatch.chdir(tmp_path)
    copying.exercise()
    assert (tmp_path / "07-two/inner/c.py").read_bytes() == b"x = 1\n"
    assert sorted(p.name for p in (tmp_path / "07-two").iterdir()) == ["a.py", "b.py", "inner"]
