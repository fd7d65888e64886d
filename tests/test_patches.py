"""Patches: what is made can be applied, by us and by git; what can't be applied says where and changes nothing."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiltyard.patches import MAX_PATCH, PatchError, apply, diff, touched
from tiltyard.task import Files

BEFORE = Files(
    {
        "a.py": "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n",
        "with space/é.txt": "x\ny",
        "gone.txt": "bye\n",
        "empty": "",
        "odd\x0cfeed.txt": "a\x0cb\rc\r\nd\n",
        'quote".txt': "q\n",
    }
)
AFTER = Files(
    {
        "a.py": "one\nTWO\nthree\nfour\nfive\nsix\nseven\n",
        "with space/é.txt": "x\ny\nz\n",
        "new/deep/file.py": "fresh",
        "empty": "not any more\n",
        "odd\x0cfeed.txt": "a\x0cb\rC\r\nd\n",
        'quote".txt': "",
        "also empty": "",
    }
)

_TEXT = st.lists(
    st.sampled_from(["", "a", "b", "c\r", "\x0c", " x", "-y", "+z", "\\ No newline"]), max_size=20
).map("\n".join)
_TREE = st.dictionaries(st.sampled_from(["a", "b/c", "d é", "e"]), _TEXT, max_size=4).map(Files)


@given(_TREE, _TREE)
def test_what_is_made_can_be_applied(before: Files, after: Files) -> None:
    patch = diff(before, after)
    assert apply(patch, before) == after
    assert {*touched(patch)} == {p for p in {*before, *after} if before.get(p) != after.get(p)}


def test_trees_with_everything_in_them() -> None:
    patch = diff(BEFORE, AFTER)
    assert apply(patch, BEFORE) == AFTER
    assert diff(BEFORE, BEFORE) == "" and apply("", BEFORE) == BEFORE


@pytest.mark.skipif(shutil.which("git") is None, reason="no git on this machine")
def test_git_applies_what_is_made_and_the_other_way_round(tmp_path: Path) -> None:
    for path, data in BEFORE.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)

    def git(*args: str, data: bytes = b"") -> bytes:
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false"]
        return subprocess.run(
            ["git", *who, *args], cwd=tmp_path, input=data, check=True, capture_output=True
        ).stdout

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "before")
    git("apply", "--index", "-", data=diff(BEFORE, AFTER).encode())
    there = {p.relative_to(tmp_path).as_posix(): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert Files({p: b for p, b in there.items() if not p.startswith(".git/")}) == AFTER
    (tmp_path / "a.py").rename(tmp_path / "renamed.py")
    git("add", "-A")
    patch = git("diff", "--cached", "-M", "HEAD").decode()
    assert "rename from a.py" not in patch or "a.py" not in apply(patch, BEFORE)
    assert apply(patch, BEFORE)["renamed.py"] == AFTER["a.py"]


def test_a_hunk_may_stand_elsewhere_but_must_fit() -> None:
    patch = diff({"f": b"a\nb\nc\n"}, {"f": b"a\nB\nc\n"})
    shifted = {"f": b"new\n" * 7 + b"a\nb\nc\n"}
    assert apply(patch, shifted)["f"] == b"new\n" * 7 + b"a\nB\nc\n"
    with pytest.raises(
        PatchError, match=r"f: hunk 1 \(line 1\) does not fit: expected 'b' at line 2, found 'x'"
    ):
        apply(patch, {"f": b"a\nx\nc\n"})


def test_fuzz_forgives_the_outermost_context_only() -> None:
    patch = "--- a/f\n+++ b/f\n@@ -1,5 +1,5 @@\n wrong\n b\n-c\n+C\n d\n wrong too\n"
    there = {"f": b"a\nb\nc\nd\ne\n"}
    with pytest.raises(PatchError, match="does not fit"):
        apply(patch, there)
    assert apply(patch, there, fuzz=2)["f"] == b"a\nb\nC\nd\ne\n"
    with pytest.raises(PatchError, match="does not fit"):
        apply(patch.replace("-c", "-x"), there, fuzz=2)


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        ("hello", "without a change"),
        ("--- a/f\n+++ b/../../etc/passwd\n@@ -1 +1 @@\n-a\n+b\n", "'.' or '..'"),
        ("--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-a\n+b\n", "an absolute path"),
        ("--- a/f\n+++ b/f\n@@ -1,7 +1 @@\n-a\n+b\n", "no unified diff"),
        ("--- a/missing.py\n+++ b/missing.py\n@@ -1 +1 @@\n-a\n+b\n", "there is no such file; did you mean"),
        ("--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+b\n", "there already"),
        (
            "--- /dev/null\n+++ b/f/inner\n@@ -0,0 +1 @@\n+b\n",
            "'?f'? is a file; expected a folder|f is a file",
        ),
        (
            "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n",
            "makes a link",
        ),
        (
            "diff --git a/s b/s\nnew file mode 160000\nindex 0..1\n--- /dev/null\n+++ b/s\n@@ -0,0 +1 @@\n+x\n",
            "submodule",
        ),
        ("diff --git a/b b/b\nindex 1..2 100644\nGIT binary patch\nliteral 1\nIcmZ\n", "binary"),
        ("diff --git a/f b/f\nindex 1..2 100644\nBinary files a/f and b/f differ\n", "binary"),
        ("diff --git a/f b/f\ndeleted file mode 100644\n", "without showing"),
        ("--- \n+++ \n@@ -1 +1 @@\n-a\n+b\n", "an empty path|no file"),
        ('--- "a/\\777"\n+++ "b/\\777"\n@@ -1 +1 @@\n-a\n+b\n', "can't be read|no such file"),
        ("x" * (MAX_PATCH + 1), "expected at most"),
    ],
)
def test_what_is_no_patch_says_so(patch: str, says: str) -> None:
    files = {"f": b"a\n", "other/missing.py": b""}
    with pytest.raises(PatchError, match=says):
        apply(patch, files)


@given(st.text(alphabet='-+@ \\ab/0123,\n\t"', max_size=200))
def test_nothing_but_a_patch_error_comes_out(text: str) -> None:
    try:
        apply(f"--- a/f\n+++ b/f\n{text}", {"f": b"a\nb\n"}, fuzz=2)
    except PatchError:
        pass


def test_files_made_to_take_hours_are_one_hunk() -> None:
    before, after = (
        ["ab"[n % 2] + "\n" for n in range(20_000)],
        ["ba"[n % 3 % 2] + "\n" for n in range(20_000)],
    )
    old, new = {"f": "".join(before).encode()}, {"f": "".join(after).encode()}
    begun = time.process_time()
    patch = diff(old, new)
    assert apply(patch, old)["f"] == new["f"]
    assert time.process_time() - begun < 30  # it would be hours
    head, tail = {"f": b"x\n" * 5 + old["f"] + b"y\n" * 5}, {"f": b"x\n" * 5 + new["f"] + b"y\n" * 5}
    assert apply(diff(head, tail), head)["f"] == tail["f"]


def test_bytes_that_are_no_text_are_named() -> None:
    assert diff({"f": b"\0"}, {"f": b"\1\xff"}).endswith("Binary files a/f and b/f differ\n")
