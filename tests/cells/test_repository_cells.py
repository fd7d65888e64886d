"""Cells of repositories: the image below the workspace, what is captured of it, and the ``.git`` of one commit."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from conformance import LONG, Check, py, said
from conformance_hostile import CHECKS
from test_namespace import _readable_python

import tiltyard
from tiltyard.cells import Capture, Cell, CellLimits, ProcessWall, Run, RunResult, Wall
from tiltyard.cells.namespace import NamespaceWall, probe
from tiltyard.cells.start import OnImage
from tiltyard.cells.start_git import git_files, git_layer, missing
from tiltyard.errors import ArenaError
from tiltyard.images import ImageFiles, Images
from tiltyard.task import Files

needs_namespaces = pytest.mark.skipif(probe() is not None, reason=f"no namespace wall here: {probe()}")
needs_git = pytest.mark.skipif(missing() is not None, reason=f"{missing()}")

START = {
    "README.md": b"hello\n",
    "pkg/__init__.py": b"",
    "pkg/core.py": b"def f():\n    return 1\n",
    "pkg/deep/er/mod.py": b"x = 1\n",
    "tests/test_core.py": b"from pkg.core import f\n\n\ndef test_f():\n    assert f() == 2\n",
    "data/crlf.txt": b"a\r\nb\r\n",
    "data/blob.bin": bytes(range(256)),
    "data/\xe4 name.txt": b"umlaut",
    ".gitattributes": b"* text=auto\n*.txt text eol=lf\n*.bin filter=lfs\n",
    ".gitignore": b"data/\n",
}
LIMITS = CellLimits()
ALL: dict[str, int] = {"max_file_bytes": 16 << 20, "max_bytes": 64 << 20, "max_files": 4096, "max_depth": 32}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILTYARD_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="module")
def image(cache: Path) -> ImageFiles:
    return Images().add(START)


@pytest.fixture(scope="module", params=["namespace", "process"])
def wall(request: pytest.FixtureRequest, cache: Path) -> Iterator[Wall]:
    if request.param == "namespace" and probe() is not None:
        pytest.skip(f"no namespace wall here: {probe()}")
    made = NamespaceWall() if request.param == "namespace" else ProcessWall()
    yield made
    made.close()


@pytest.fixture(scope="module")
def overlay_wall(cache: Path, image: ImageFiles) -> Iterator[NamespaceWall]:
    """The namespace wall where it has overlays."""
    if probe() is not None:
        pytest.skip(f"no namespace wall here: {probe()}")
    made = NamespaceWall()
    made.open(image, LIMITS).close()
    if made.no_overlay is not None:
        made.close()
        pytest.skip(f"no overlay here: {made.no_overlay}")
    yield made
    made.close()


@pytest.fixture
def cell(wall: Wall, image: ImageFiles) -> Iterator[Cell]:
    with contextlib.closing(wall.open(image, LIMITS)) as cell:
        yield cell


@pytest.fixture
def laid(overlay_wall: NamespaceWall, image: ImageFiles) -> Iterator[Cell]:
    """A cell over the image."""
    with contextlib.closing(overlay_wall.open(image, LIMITS)) as cell:
        yield cell


def sh(cell: Cell, script: str, **how: Any) -> RunResult:
    return cell.run(Run(("sh", "-c", textwrap.dedent(script)), wall_s=LONG, **how))


def out(cell: Cell, script: str) -> str:
    """What a script prints that must end well."""
    result = sh(cell, f"set -e\n{textwrap.dedent(script)}")
    assert result.rc == 0, result
    return result.stdout.decode()


def captured(cell: Cell, **caps: int) -> Capture:
    return cell.capture(**(ALL | caps))


def fingerprint(folder: Path) -> dict[str, Any]:
    """All that can be seen of what lies below a folder."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        facts = path.lstat()
        sha = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path)] = (
            facts.st_mode,
            facts.st_uid,
            facts.st_nlink,
            facts.st_mtime_ns,
            facts.st_ctime_ns,
            sha,
        )
    return found


# ------------------------------------------------------------------------------------------------ what a player finds


def test_the_files_are_there_and_nothing_was_changed(cell: Cell, image: ImageFiles) -> None:
    assert cell.read("pkg/core.py", max_bytes=99) == START["pkg/core.py"]
    seen = {e.path for e in cell.list(max_entries=999).entries if e.kind == "file"}
    assert seen == set(START)
    assert out(cell, "stat -c '%a %u' . pkg pkg/core.py") == out(
        cell, "for mode in 755 755 644; do echo $mode $(id -u); done"
    )
    capture = captured(cell)
    assert dict(capture.files) == START and list(capture.files) == sorted(START) and capture.skipped == ()


def test_all_that_can_be_done_to_files_is_captured(cell: Cell) -> None:
    cell.write("pkg/core.py", b"def f():\n    return 2\n")
    cell.write("new/file.txt", b"new")
    out(
        cell,
        """
        echo more >> README.md
        chmod 600 data/blob.bin
        mv data/crlf.txt pkg/moved.txt
        rm tests/test_core.py
        rm -r pkg/deep
        mkdir pkg/deep
        echo y > pkg/deep/other.py
        touch pkg/__init__.py
        """,
    )
    expected = dict(START)
    for path in ("data/crlf.txt", "tests/test_core.py", "pkg/deep/er/mod.py"):
        del expected[path]
    expected |= {
        "pkg/core.py": b"def f():\n    return 2\n",
        "new/file.txt": b"new",
        "README.md": b"hello\nmore\n",
        "pkg/moved.txt": START["data/crlf.txt"],
        "pkg/deep/other.py": b"y\n",
    }
    assert dict(captured(cell).files) == expected
    assert dict(captured(cell).files) == expected, "a capture changes nothing"


def test_files_take_the_place_of_folders_and_folders_of_files(cell: Cell) -> None:
    out(cell, "rm -r pkg; echo flat > pkg; rm README.md; mkdir README.md; echo in > README.md/x")
    files = dict(captured(cell).files)
    assert files.pop("pkg") == b"flat\n" and files.pop("README.md/x") == b"in\n"
    assert files == {p: b for p, b in START.items() if not p.startswith("pkg/") and p != "README.md"}


def test_what_is_no_plain_file_any_more_is_named(cell: Cell) -> None:
    out(
        cell,
        """
        rm pkg/core.py; ln -s /etc/passwd pkg/core.py
        rm -r data; ln -s pkg data
        mkfifo pipe
        ln README.md hard
        """,
    )
    capture = captured(cell)
    assert {p for p, _ in capture.skipped} == {"pkg/core.py", "data", "pipe", "hard", "README.md"}
    assert set(capture.files) == {
        p for p in START if not p.startswith("data/") and p not in ("pkg/core.py", "README.md")
    }


def test_modes_that_shut_the_owner_out_hide_nothing(cell: Cell) -> None:
    out(cell, "echo z > pkg/deep/er/new.py; chmod 000 README.md pkg/deep/er pkg/deep pkg tests")
    assert dict(captured(cell).files) == {**START, "pkg/deep/er/new.py": b"z\n"}


def test_the_caps_hold_for_what_was_changed(laid: Cell) -> None:
    py(laid, "open('big','wb').write(bytes(3000)); open('a','w').write('x'); open('b','w').write('y')")
    capture = captured(laid, max_file_bytes=2000)
    assert "big" not in capture.files and ("big", "larger than 2000 bytes") in capture.skipped
    capture = captured(laid, max_files=1)
    assert "a" in capture.files and "b" not in capture.files and set(START) <= set(capture.files)


def test_writes_beyond_the_disk_are_refused_and_the_image_stays_readable(
    overlay_wall: NamespaceWall, cache: Path
) -> None:
    big = Images().add({"big.bin": bytes(3 << 20), "small.txt": b"s"})
    with contextlib.closing(overlay_wall.open(big, CellLimits(disk_bytes=1 << 20, disk_files=64))) as cell:
        assert len(cell.read("big.bin", max_bytes=4 << 20)) == 3 << 20, "what lies below costs no disk"
        result = sh(cell, "echo x >> big.bin")
        assert result.rc != 0, "copying it up must not fit"
        assert sh(cell, "echo x >> small.txt").rc == 0
        result = py(cell, "for n in range(500): open(f'f{n}','w').close()")
        assert result.rc != 0 and b"No space left" in result.stderr
        files = captured(cell).files
        assert files["big.bin"] == bytes(3 << 20) and files["small.txt"] == b"sx\n"


def test_folders_of_the_image_are_moved_by_the_commands_that_people_use(cell: Cell) -> None:
    out(cell, "mv pkg lib")
    assert "lib/deep/er/mod.py" in captured(cell).files and "pkg/core.py" not in captured(cell).files


def test_deep_trees_and_odd_names_in_what_was_changed(laid: Cell) -> None:
    py(
        laid,
        """
        import os
        os.chdir('pkg')
        for _ in range(60):
            os.mkdir('d'); os.chdir('d')
        open('bottom', 'w').close()
        os.chdir('/workspace')
        open(b'bad\\xff', 'w').close()
        open('line\\nbreak', 'w').close()
        """,
    )
    capture = captured(laid)
    assert set(START) <= set(capture.files)
    reasons = " ".join(why for _, why in capture.skipped)
    assert "deeper than 32 folders" in reasons and "no plain text" in reasons


# ------------------------------------------------------------------------------------------------ what must not happen


def test_nothing_of_the_image_is_ever_changed(overlay_wall: NamespaceWall, image: ImageFiles) -> None:
    tree = image.tree().parent
    git_layer(image)
    before = fingerprint(tree)
    with contextlib.closing(overlay_wall.open(image, LIMITS)) as cell:
        sh(
            cell,
            """
            for f in $(find . -type f); do echo x >> $f; done
            find . -exec chmod 777 {} +
            find . -exec touch {} +
            truncate -s 0 README.md
            ln data/blob.bin data/hard; echo y > data/hard
            rm -rf .git pkg tests
            """,
        )
        py(
            cell,
            """
            import mmap, os
            for name in ('data/crlf.txt', 'data/blob.bin'):
                with open(name, 'r+b') as file:
                    mmap.mmap(file.fileno(), 0)[:1] = b'Z'
                os.utime(name, (1, 1))
                try: os.setxattr(name, 'user.x', b'y')
                except OSError: pass
            """,
        )
    assert fingerprint(tree) == before
    with contextlib.closing(overlay_wall.open(image, LIMITS)) as cell:
        assert dict(captured(cell).files) == START, "the next cell finds it as it was"


def test_no_cell_reaches_a_tree_but_through_its_workspace(
    overlay_wall: NamespaceWall, image: ImageFiles, cache: Path
) -> None:
    other = Images().add({"secret.txt": b"canary-of-another-image"})
    other.tree()
    with contextlib.closing(overlay_wall.open(image, LIMITS)) as cell:
        got = json.loads(
            said(
                cell,
                """
                import json, os
                found = []
                for top in ['/cell', '/stash', '/empty', '/proc/1/root', '/proc/1/cwd', '/proc/self/root/cell']:
                    try: found += os.listdir(top) and [top]
                    except OSError: pass
                for at, folders, files in os.walk('/'):
                    if at.startswith(('/usr', '/proc', '/lib')): folders[:] = []
                    found += [f'{at}/{n}' for n in (*folders, *files) if n in ('secret.txt', 'trees')]
                reached = []
                for fd in os.listdir('/proc/self/fd'):
                    try: reached.append(os.readlink(f'/proc/self/fd/{fd}'))
                    except OSError: pass
                print(json.dumps([found, [r for r in reached if 'cell' in r or 'trees' in r]]))
                """,
            )
        )
        assert got == [[], []]


def test_what_only_the_kernel_may_write_into_an_overlay_can_not_be_forged(laid: Cell) -> None:
    """Whiteouts, and the marks of opaque folders: they would hide files from a capture, or bring them back."""
    got = json.loads(
        said(
            laid,
            """
            import json, os
            def attempt(act):
                try: act()
                except OSError as error: return error.errno
                return 0
            os.mkdir('mine')
            codes = [attempt(lambda: os.mknod('README.md.gone', 0o600 | 0o020000, 0)),
                     attempt(lambda: os.mknod('mine/x', 0o600 | 0o020000, 0))]
            for name in ('user.overlay.opaque', 'user.overlay.whiteout', 'user.overlay.redirect', 'user.overlay.origin'):
                attempt(lambda: os.setxattr('pkg', name, b'y'))
                attempt(lambda: os.setxattr('README.md', name, b'/etc/passwd'))
            print(json.dumps(codes))
            """,
        )
    )
    assert all(got), got
    assert set(START) <= set(captured(laid).files)
    assert laid.read("README.md", max_bytes=99) == START["README.md"]


def test_links_lead_nowhere(laid: Cell) -> None:
    out(laid, "rm -r data; ln -s / data; rm README.md; ln -s ../etc/passwd README.md; ln -s pkg alias")
    files = captured(laid).files
    assert "README.md" not in files and not any(p.startswith(("data", "alias")) for p in files)
    with pytest.raises(Exception, match="link"):
        laid.read("data/etc/passwd", max_bytes=99)


def test_cells_over_one_image_know_nothing_of_each_other(
    overlay_wall: NamespaceWall, image: ImageFiles
) -> None:
    with (
        contextlib.closing(overlay_wall.open(image, LIMITS)) as one,
        contextlib.closing(overlay_wall.open(image, LIMITS)) as two,
    ):
        out(one, "echo one > pkg/core.py; rm README.md")
        out(two, "echo two > pkg/core.py")
        assert one.read("pkg/core.py", max_bytes=9) == b"one\n"
        assert two.read("pkg/core.py", max_bytes=9) == b"two\n"
        assert "README.md" not in captured(one).files and "README.md" in captured(two).files


def test_trees_made_after_the_server_are_found(overlay_wall: NamespaceWall, image: ImageFiles) -> None:
    overlay_wall.open(image, LIMITS).close()
    late = Images().add({"late.py": b"late = 1\n"})
    with contextlib.closing(overlay_wall.open(late, LIMITS)) as cell:
        assert set(captured(cell).files) == {"late.py"}
    assert overlay_wall.no_overlay is None


def test_a_cache_that_was_made_anew_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if probe() is not None:
        pytest.skip(f"no namespace wall here: {probe()}")
    monkeypatch.setenv("TILTYARD_CACHE", str(tmp_path / "one"))
    with contextlib.closing(NamespaceWall()) as wall:
        wall.open(Images().add({"a": b"1"}), LIMITS).close()
        monkeypatch.setenv("TILTYARD_CACHE", str(tmp_path / "two"))
        with contextlib.closing(wall.open(Images().add({"b": b"2"}), LIMITS)) as cell:
            assert dict(captured(cell).files) == {"b": b"2"}


# ------------------------------------------------------------------------------------------------ without an overlay


@needs_namespaces
def test_where_no_overlay_can_be_had_the_files_are_sent(
    image: ImageFiles, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.closing(NamespaceWall()) as wall:
        tree = wall._with_trees(image.tree().parent.parent)
        really = tree._new_cell
        broken = lambda limits, order: really(limits, b"no-such-tree:files")  # noqa: E731
        monkeypatch.setattr(tree, "_new_cell", broken)
        with contextlib.closing(wall.open(image, LIMITS)) as cell:
            assert dict(captured(cell).files) == START
            if missing() is None:
                assert out(cell, "git status --short") == ""
        assert "No such file" in str(wall.no_overlay)
        assert any("copied into each cell" in why for why in wall.weaknesses)


@needs_namespaces
@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_conformance_over_an_image(overlay_wall: NamespaceWall, check: Check) -> None:
    base = Images().add({"below.txt": b"below"})

    class Over:
        name, weaknesses = "namespace", ()

        def open(self, files: Mapping[str, bytes], limits: CellLimits) -> Cell:
            return overlay_wall.open(OnImage(base, files), limits)

        def close(self) -> None:
            pass

    check.on(Over())


def test_files_that_are_mostly_an_images(wall: Wall, image: ImageFiles) -> None:
    files = {p: b for p, b in START.items() if not p.startswith("tests/")} | {
        "pkg/core.py": b"changed",
        "n": b"new",
    }
    on = OnImage(image, files)
    assert on.changed == {"pkg/core.py": b"changed", "n": b"new"}
    assert on.gone == ("tests/test_core.py", "tests")
    with contextlib.closing(wall.open(on, LIMITS)) as cell:
        assert dict(captured(cell).files) == files
        assert sh(cell, "test -e tests").rc == 1, "no empty folder that could be imported is left"
        assert sh(cell, "test -e .git").rc == 1, "grading has no history, not even this one"


def test_five_hundred_files_by_copy(wall: Wall) -> None:
    files = {f"p{n % 30}/q{n % 7}/m{n}.py": b"x = %d\n" % n for n in range(500)}
    with contextlib.closing(wall.open(files, LIMITS)) as cell:
        assert dict(captured(cell).files) == files


@pytest.mark.parametrize("pair", [{"a": b"", "a/b": b""}, {"x/y": b"", "x/y/z": b"", "x/q": b""}], ids=str)
def test_a_file_that_is_a_folder_too_is_refused(wall: Wall, pair: dict[str, bytes]) -> None:
    with pytest.raises((ArenaError, Exception), match="a file and a folder"):
        wall.open(pair, LIMITS)


# ------------------------------------------------------------------------------------------------ .git


@needs_git
def test_git_has_one_commit_and_nothing_else(cell: Cell) -> None:
    assert out(cell, "git rev-list --all --count") == "1\n"
    assert out(cell, "git log --format='%an|%ae|%at|%cn|%ct|%s|%D'") == (
        "Tiltyard|start@tiltyard.invalid|946684800|Tiltyard|946684800|start|HEAD -> main\n"
    )
    assert out(cell, "git for-each-ref --format='%(refname)'") == "refs/heads/main\n"
    assert (
        out(cell, "git reflog; git stash list; git remote; git tag; git config --get-regexp remote || true")
        == ""
    )
    listed = out(cell, "git cat-file --batch-check --batch-all-objects")
    reached = out(cell, "git rev-list --all --objects")
    assert {line.split()[0] for line in listed.splitlines()} == {
        line.split()[0] for line in reached.splitlines()
    }
    assert (
        out(cell, "git fsck --full --strict 2>&1; ls .git/hooks .git/logs 2>/dev/null | wc -l").strip() == "0"
    )


@needs_git
def test_git_status_and_diff_are_right(cell: Cell) -> None:
    assert out(cell, "git status --porcelain") == "", "line ends and filters of .gitattributes change nothing"
    assert out(cell, "git diff; git diff HEAD --stat") == ""
    out(cell, "echo more >> README.md; rm tests/test_core.py; echo n > pkg/new.py")
    assert out(cell, "git status --porcelain").splitlines() == [
        " M README.md",
        " D tests/test_core.py",
        "?? pkg/new.py",
    ]
    assert "+more" in out(cell, "git diff README.md")
    assert out(cell, "git checkout -q -- README.md tests; git status --porcelain") == "?? pkg/new.py\n"
    assert cell.read("README.md", max_bytes=99) == START["README.md"]
    out(
        cell,
        "git add -A; git commit -q -m mine; git checkout -q -b side; echo s > s; git stash -q -u; git stash pop -q",
    )
    assert out(cell, "git log --format=%s") == "mine\nstart\n"


@needs_git
def test_git_of_the_workspace_is_never_captured(cell: Cell) -> None:
    out(
        cell,
        "echo x > x; git add x; git commit -q -m x; echo y > .git/planted; mkdir -p pkg/.git; echo n > pkg/.git/f",
    )
    files = captured(cell).files
    assert not any(p.startswith(".git/") for p in files)
    assert set(files) == {*START, "x", "pkg/.git/f"}
    assert not any(e.path.startswith(".git/") for e in cell.list(max_entries=9999).entries)
    out(cell, "rm -rf .git; echo file > .git")
    assert set(captured(cell).files) == {*START, "x", "pkg/.git/f"}


@needs_git
def test_git_is_the_same_bytes_of_objects_for_the_same_image(image: ImageFiles, cell: Cell) -> None:
    head = out(cell, "git rev-parse HEAD")
    again = Images().add(dict(START))
    assert again.image == image.image
    shutil.rmtree(again.tree().parent / "git")
    layer = git_layer(again)
    assert layer is not None
    done = subprocess.run(
        ["git", f"--git-dir={layer / '.git'}", "rev-parse", "HEAD"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout == head


def test_a_history_among_start_files_is_dropped(wall: Wall, cache: Path) -> None:
    leaky = {
        **START,
        ".git/HEAD": b"ref: refs/heads/leak\n",
        ".git/objects/x": b"the fix",
        "sub/.GIT/config": b"c",
    }
    for files in (leaky, Files(leaky), Images().add(leaky)):
        with contextlib.closing(wall.open(files, LIMITS)) as cell:
            assert sh(cell, "cat .git/objects/x || cat sub/.GIT/config").rc != 0
            assert dict(captured(cell).files) == START
            if isinstance(files, ImageFiles) and missing() is None:
                assert out(cell, "git log --format=%s; git status --porcelain") == "start\n"


def test_without_git_there_is_none_and_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILTYARD_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert "install git" in str(missing())
    image = Images().add({"only-here.txt": b"x"})
    assert git_layer(image) is None and git_files(image) == {}
    if probe() is None:
        with (
            contextlib.closing(NamespaceWall()) as wall,
            contextlib.closing(wall.open(image, LIMITS)) as cell,
        ):
            assert [e.path for e in cell.list(max_entries=9).entries] == ["only-here.txt"]


@needs_git
def test_nobodys_configuration_has_a_hand_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = tmp_path / "template" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "post-checkout").write_text("#!/bin/sh\necho hooked\n")
    config = tmp_path / "gitconfig"
    config.write_text(
        f"[init]\n\ttemplateDir = {tmp_path}/template\n[user]\n\tname = Somebody\n[core]\n\tautocrlf = true\n"
    )
    monkeypatch.setenv("TILTYARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    layer = git_layer(Images().add(START))
    assert (
        layer is not None
        and not (layer / ".git" / "hooks").exists()
        and not (tmp_path / "elsewhere").exists()
    )
    monkeypatch.delenv("GIT_DIR")
    done = subprocess.run(
        ["git", f"--git-dir={layer / '.git'}", "log", "--format=%an"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout == "Tiltyard\n"


def test_commands_that_people_use_on_repositories(cell: Cell) -> None:
    assert out(cell, "grep -rn 'return 1' pkg") == "pkg/core.py:2:    return 1\n"
    assert (
        out(cell, "find . -path ./.git -prune -o -name '*.py' -print | sort | head -1")
        == "./pkg/__init__.py\n"
    )
    if shutil.which("rg", path="/usr/bin:/bin") is not None:
        assert "return 1" in out(cell, "rg 'return 1' pkg")
    if missing() is None:
        assert out(cell, "git grep -n 'return 1'") == "pkg/core.py:2:    return 1\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has cells with other ids than its own")
def test_a_tree_of_another_user_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if probe() is not None:
        pytest.skip(f"no namespace wall here: {probe()}")
    monkeypatch.setenv("TILTYARD_CACHE", str(tmp_path))
    image = Images().add(START)
    for path in [image.tree(), *image.tree().rglob("*")]:
        os.chown(path, 54321, 54321)
    with contextlib.closing(NamespaceWall()) as wall, contextlib.closing(wall.open(image, LIMITS)) as cell:
        assert wall.no_overlay is not None and "belongs to" in wall.no_overlay
        out(cell, "echo x >> README.md")
        assert captured(cell).files["README.md"] == b"hello\nx\n"


AS_USER = """
import json, os
from tiltyard.cells import CellLimits, Run
from tiltyard.cells.namespace import NamespaceWall, probe
from tiltyard.images import Images
reason = probe()
if reason is not None:
    print(json.dumps({'skip': reason})); raise SystemExit
image = Images().add({'README.md': b'hello\\n', 'pkg/core.py': b'x = 1\\n', 'pkg/old.py': b''})
wall = NamespaceWall()
cell = wall.open(image, CellLimits())
if wall.no_overlay is not None:
    print(json.dumps({'skip': wall.no_overlay})); raise SystemExit
run = cell.run(Run(('sh', '-c', 'echo x >> README.md; chmod 600 pkg/core.py; rm pkg/old.py; git status --short; id -u'),
                   wall_s=120))
files = cell.capture(max_file_bytes=99, max_bytes=999, max_files=9, max_depth=9).files
print(json.dumps({'out': run.stdout.decode(), 'files': {p: b.decode() for p, b in files.items()},
                  'below': (image.tree() / 'README.md').read_text()}))
wall.close()
"""


@needs_namespaces
def test_an_ordinary_user_has_overlays_too(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("all of these tests run as an ordinary user already")
    python = _readable_python()
    if python is None:
        pytest.skip("no Python 3.11 or newer that an ordinary user can read")
    home, cache = tmp_path / "package", tmp_path / "cache"
    shutil.copytree(
        Path(tiltyard.__file__).parent,
        home / "tiltyard",
        ignore=shutil.ignore_patterns("__pycache__", "builtin"),
    )
    cache.mkdir()
    os.chown(cache, 65534, 65534)
    for folder in (home, *home.parents):
        if folder.stat().st_uid == os.getuid() and str(folder).startswith("/tmp/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    done = subprocess.run(
        [python, "-s", "-c", AS_USER],
        env={
            "PYTHONPATH": str(home),
            "PATH": "/usr/bin:/bin",
            "PYTHONDONTWRITEBYTECODE": "1",
            "TILTYARD_CACHE": str(cache),
        },
        cwd="/",
        user=65534,
        group=65534,
        extra_groups=(),
        capture_output=True,
        timeout=600,
        check=False,
    )
    if b"Permission denied" in done.stderr and b"tiltyard" in done.stderr:
        pytest.skip("the temporary folder can't be read by an ordinary user")
    assert done.returncode == 0, done.stderr.decode()
    got = json.loads(done.stdout)
    if "skip" in got:
        pytest.skip(f"ordinary users have no overlays here: {got['skip']}")
    assert got["files"] == {"README.md": "hello\nx\n", "pkg/core.py": "x = 1\n"} and got["below"] == "hello\n"
    assert got["out"].endswith("1000\n")
    if missing() is None:
        assert got["out"].splitlines()[:2] == [" M README.md", " D pkg/old.py"]
