"""What every wall whose cells can be copied must do, as checks like those of ``conformance``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import pytest
from conformance import DEEP, Check, Ground, echo, eventually, py, said, still_works

from tiltyard.cells import (
    Cell,
    CellFileError,
    CellLimits,
    Copyable,
    Copying,
    NotPacked,
    PackedCell,
)
from tiltyard.cells.inside.pack import META
from tiltyard.errors import ArenaError

COPIES: list[Check] = []
MOST = 64 << 20
FILES = {"solution.py": b"x = 1\n", "pkg/core.py": b"y = 2\n"}


def check(**unless: str) -> Callable[[Callable[[Ground], None]], Callable[[Ground], None]]:
    def add(act: Callable[[Ground], None]) -> Callable[[Ground], None]:
        COPIES.append(Check(act.__name__, act, unless))
        return act

    return add


def pack(cell: Cell, max_bytes: int = MOST) -> PackedCell:
    return cast(Copyable, cell).pack(max_bytes=max_bytes)


def copy(g: Ground, packed: PackedCell, files: Mapping[str, bytes] = FILES, **limits: int | float) -> Cell:
    assert isinstance(g.wall, Copying)
    cell = g.wall.unpack(files, CellLimits(**limits), packed)  # type: ignore[arg-type]
    g.cells.append(cell)
    return cell


MAKE = r"""
import os, socket, sys
def make(where):
    os.makedirs(where, exist_ok=True)
    os.chdir(where)
    os.mkfifo("pipe", 0o622)
    os.symlink("nowhere", "dangling")
    os.symlink("/etc/passwd", "out")
    os.symlink("x" * 4000, "long")
    os.mkdir("empty")
    os.makedirs("shut/inner")
    open("shut/inner/file", "w").write("inside")
    open("random", "wb").write(os.urandom(5000))
    os.link("random", "hard")
    os.mkdir("other")
    os.link("random", "other/hard")
    os.link("dangling", "other/link", follow_symlinks=False)
    os.link("pipe", "a pipe")
    open(b"bad \xff\nname", "w").close()
    open("n" * 255, "w").write("long name")
    for n in (3, 1, 2, 9, 7, 8):
        open(f"order{n}", "w").write(str(n))
    os.rename("order1", "moved")
    unix = socket.socket(socket.AF_UNIX)
    unix.bind("socket")
    with open("sparse", "wb") as file:
        file.seek(9_000_000)
        file.write(b"x")
        file.truncate(12_000_000)
    open("hole", "wb").truncate(5_000_000)
    open("big", "wb").write(bytes(range(256)) * 4096)
    open("locked", "w").write("locked")
    open("setuid", "w").write("setuid")
    os.chmod("setuid", 0o6711)
    os.mkdir("sticky")
    os.chmod("sticky", 0o3777)
    try:
        for name in ("random", "shut", "empty"):
            os.setxattr(name, "user.note", b"\0\xff" + name.encode())
    except OSError:
        pass  # not every file system has them
    try:
        os.mknod("device", 0o20600, os.makedev(0, 0))
    except OSError:
        pass
    os.utime("empty", ns=(1, 2))
    os.utime("hole", ns=(-5, 10**18 + 1))
    os.utime("dangling", ns=(3, 4), follow_symlinks=False)
    os.chmod("locked", 0)
    os.chmod("shut/inner", 0o100)
    os.chmod("shut", 0)
for where in sys.argv[1:]:
    make(os.path.expandvars(where))
"""
SEE = r"""
import hashlib, os, stat, sys
def digest(path):
    try:
        return hashlib.sha256(open(path, "rb").read()).hexdigest()
    except PermissionError:
        return "shut"
def see(path, deep=True):
    found = os.lstat(path)
    facts = [oct(found.st_mode), found.st_uid, found.st_gid, found.st_nlink, found.st_blocks, found.st_mtime_ns]
    if not stat.S_ISDIR(found.st_mode):
        facts.append(found.st_size)
    if stat.S_ISLNK(found.st_mode):
        facts.append(os.readlink(path))
    elif hasattr(os, "listxattr"):
        try:
            facts += [(name, os.getxattr(path, name)) for name in os.listxattr(path)]
        except OSError:
            pass
    if stat.S_ISREG(found.st_mode):
        facts.append(digest(path))
    print(ascii(path), facts)
    if stat.S_ISDIR(found.st_mode):
        try:
            names = os.listdir(path)
        except PermissionError:
            print("shut")
            return
        print(names)
        for name in names:
            see(os.path.join(path, name))
for where in sys.argv[1:]:
    os.chdir(os.path.expandvars(where))
    see(b".")
"""


def lasting(cell: Cell) -> list[str]:
    """The folders in which something stays from one run to the next."""
    said(cell, "import os; [open(os.path.expandvars(p) + '/lasts', 'w') for p in ('$HOME', '$TMPDIR')]")
    found = "import os; print(*[p for p in ('$HOME', '$TMPDIR') if os.path.exists(os.path.expandvars(p) + '/lasts')])"
    return [".", *said(cell, found).split()]


# ------------------------------------------------------------------------------------------------------- all is there


@check()
def all_that_can_lie_in_a_folder_is_in_the_copy(g: Ground) -> None:
    cell = g.open(FILES)
    where = lasting(cell)
    said(cell, MAKE, *[f"{path}/in" for path in where])
    packed = pack(cell)
    assert pack(cell).data == packed.data, "to pack a cell changes it"
    other = copy(g, packed)
    again = pack(other)
    seen = said(cell, SEE, *where)
    for thing in ("dangling", "pipe", "socket", "bad", "order9", "lasts" if len(where) > 1 else "hole"):
        assert thing in seen
    assert said(other, SEE, *where) == seen
    assert again.data == packed.data, "a copy of the copy is another"
    said(other, "import os; os.chmod('in/shut', 0o700); os.remove('in/random'); print(len(os.listdir('in')))")
    assert said(cell, SEE, *where) == seen, "the copy is not its own"
    assert said(copy(g, packed), SEE, *where) == seen


@check()
def nothing_is_in_the_copy_that_was_removed(g: Ground) -> None:
    cell = g.open(FILES)
    said(cell, "import os, shutil; shutil.rmtree('pkg'); os.rename('solution.py', 'other.py')")
    other = copy(g, pack(cell))
    assert [e.path for e in other.list(max_entries=9).entries] == ["other.py"]
    said(cell, "import os; os.remove('other.py')")
    assert copy(g, pack(cell)).list(max_entries=9).entries == ()


@check()
def a_cell_that_was_just_opened_can_be_copied(g: Ground) -> None:
    other = copy(g, pack(g.open(FILES)))
    assert other.read("pkg/core.py", max_bytes=9) == b"y = 2\n"
    still_works(other)


@check()
def a_copy_is_a_cell_like_any_other(g: Ground) -> None:
    cell = g.open(FILES)
    said(cell, "open('made', 'w').write('by a run')")
    other = copy(g, pack(cell))
    other.write("solution.py", b"x = 3\n")
    other.write("new/er.py", b"z = 4\n")
    assert said(other, "import solution; print(solution.x, open('made').read())") == "3 by a run"
    captured = other.capture(max_file_bytes=99, max_bytes=999, max_files=9, max_depth=9)
    assert captured.files == {
        "solution.py": b"x = 3\n",
        "pkg/core.py": b"y = 2\n",
        "new/er.py": b"z = 4\n",
        "made": b"by a run",
    }
    assert cell.read("solution.py", max_bytes=9) == b"x = 1\n"
    assert copy(g, pack(other)).read("new/er.py", max_bytes=9) == b"z = 4\n"


@check()
def packing_comes_after_the_death_of_all(g: Ground) -> None:
    cell = g.open(FILES)
    with echo(cell) as (started, _):
        try:
            pack(cell)
        except NotPacked as error:  # where a cell has one id, what begins its runs dies with the program
            assert "memory" in str(error)
        assert eventually(lambda: started.poll() is not None)  # type: ignore[attr-defined]
    still_works(cell)


# ------------------------------------------------------------------------------------------------------------ bounds


@check()
def what_is_too_big_is_refused_and_the_cell_goes_on(g: Ground) -> None:
    cell = g.open(FILES)
    said(cell, MAKE, "in")
    before = said(cell, SEE, ".")
    for most in (0, 10, 1000, 100_000, 1_000_000):
        with pytest.raises(NotPacked, match=f"more than {most} bytes"):
            pack(cell, most)
    assert said(cell, SEE, ".") == before, "a mode was not put back"
    assert len(pack(cell).data) > 1_000_000


@check()
def the_caps_hold_for_copies(g: Ground) -> None:
    cell = g.open(FILES, disk_bytes=8 << 20, disk_files=200)
    said(cell, "open('big', 'wb').write(bytes(3 << 20))\nfor n in range(100): open(f'f{n}', 'w')")
    packed = pack(cell)
    for less in ({"disk_bytes": 1 << 20, "disk_files": 200}, {"disk_bytes": 8 << 20, "disk_files": 12}):
        with pytest.raises(ArenaError, match=r"can't be opened|can't go on"):
            copy(g, packed, **less)
    other = copy(g, packed, disk_bytes=8 << 20, disk_files=200)
    with pytest.raises(CellFileError, match=r"[Nn]o space"):
        for n in range(9):
            other.write(f"more{n}", bytes(1 << 20))


@check()
def a_full_cell_can_be_copied(g: Ground) -> None:
    cell = g.open(FILES, disk_bytes=4 << 20, disk_files=300)
    fill = """
    import os
    try:
        for n in range(280):
            open(f"file{n}", "w").write("x")
        for n in range(999):
            open("big", "ab").write(bytes(1024))
    except OSError as error:
        print(error)
    """
    py(cell, fill)
    if g.wall.name == "namespace":  # whose disk counts the files itself
        said(cell, "import os\ntry:\n  for n in range(999): os.mkdir(f'd{n}')\nexcept OSError: pass")
    other = copy(g, pack(cell), disk_bytes=4 << 20, disk_files=300)
    assert other.list(max_entries=999) == cell.list(max_entries=999)


@check()
def deep_trees_can_be_copied(g: Ground) -> None:
    cell = g.open(disk_files=8000)
    said(cell, DEEP.format(3000))
    packed = pack(cell)
    other = copy(g, packed, {}, disk_files=8000)
    assert pack(other).data == packed.data
    depth = "import os\nn = 0\nwhile os.path.isdir('d'):\n  os.chdir('d'); n += 1\nprint(n, os.listdir('.'))"
    assert said(other, depth) == said(cell, depth) == "3000 ['bottom']"


@check()
def many_files_can_be_copied(g: Ground) -> None:
    cell = g.open()
    said(
        cell,
        "import os\nfor n in range(40):\n  os.mkdir(f'd{n}')\n  for k in range(99): open(f'd{n}/{k}', 'w').write(f'{k}')",
    )
    packed = pack(cell)
    other = copy(g, packed, {})
    sums = "import os\nprint([(b, d, f, [open(os.path.join(b, x)).read() for x in f]) for b, d, f in os.walk('.')])"
    assert said(other, sums, output_bytes=1 << 20) == said(cell, sums, output_bytes=1 << 20)
    assert pack(copy(g, packed, {})).data == packed.data


@check()
def links_between_many_folders_can_be_copied(g: Ground) -> None:
    cell = g.open()
    said(
        cell,
        """
        import os
        for n in range(100):
            os.makedirs(f"one/{n}"); os.makedirs(f"two/{n}")
            open(f"one/{n}/file", "w").write(str(n))
            os.link(f"one/{n}/file", f"two/{n}/other")
            os.chmod(f"one/{n}", 0)
        """,
    )
    other = copy(g, pack(cell), {})
    seen = "import os\nfor n in range(100): os.chmod(f'one/{n}', 0o700)\n"
    seen += "print([os.path.samefile(f'one/{n}/file', f'two/{n}/other') for n in range(100)].count(True))"
    assert said(other, "import os; print(oct(os.lstat('one/7').st_mode))") == "0o40000"
    assert said(other, seen) == "100"


# ----------------------------------------------------------------------------------------------------------- hostile


def bent(packed: bytes) -> dict[str, bytes]:
    """Bytes that no keeper packs."""
    middle = len(packed) // 2
    at = packed.index(b"solution.py")
    return {
        "nothing": b"",
        "something else": b"\0" * 1000,
        "words": b"not a packed cell at all, but a text that is long enough",
        "cut": packed[:-1],
        "cut in the middle": packed[:middle],
        "cut after the beginning": packed[:19],
        "more": packed + b"x",
        "twice": packed + packed,
        "a giant length": packed[:19] + b"\xff\xff\xff\xff" + packed[23:],
        "no length": packed[:19] + b"\0\0\0\0" + packed[23:],
        "up": packed.replace(b"solution.py", b"../solution"),
        "a path": packed.replace(b"solution.py", b"/tmp/hacked"),
        "a name with NUL": packed.replace(b"solution.py", b"solution\0py"),
        "another kind": packed[: at - META.size] + b"\x7f" + packed[at - META.size + 1 :],
        "another root": packed.replace(b"workspace", b"elsewhere"),
    }


@check()
def bytes_that_were_bent_make_no_cell(g: Ground) -> None:
    packed = pack(g.open(FILES))
    for name, data in bent(packed.data).items():
        with pytest.raises(ArenaError):
            copy(g, PackedCell(data)).read(name, max_bytes=1)
            pytest.fail(f"a cell was opened from {name}")
    with pytest.raises(NotPacked, match="other files"):
        copy(g, PackedCell(packed.data, "another:files"))
    still_works(copy(g, packed))


@check()
def random_changes_harm_nobody(g: Ground) -> None:
    """Whatever comes out: an error, or a cell that works."""
    cell = g.open(FILES)
    said(cell, MAKE.replace("4096", "1"), "in")
    data = pack(cell).data
    for n in range(30):
        at = (n * 7919) % len(data)
        changed = bytearray(data)
        changed[at] ^= 1 << n % 8
        try:
            other = copy(g, PackedCell(bytes(changed)))
        except ArenaError:
            continue
        other.list(max_entries=100)
        other.close()
    still_works(g.open())
