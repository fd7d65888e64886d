"""Reading repositories: real ones, made here, some of them hostile."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tiltyard import patches
from tiltyard.git import GitError, Repository, find_repository
from tiltyard.task import Files

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git on this machine")


class Made:
    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *args: str) -> str:
        env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
        env |= {f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        env |= {
            "GIT_AUTHOR_DATE": "2020-01-02T03:04:05+02:00",
            "GIT_COMMITTER_DATE": "2021-01-02T03:04:05+00:00",
        }
        return subprocess.run(
            ["git", *args], cwd=self.path, check=True, capture_output=True, text=True, env=env
        ).stdout.strip()

    def commit(self, message: str, **files: str | None) -> str:
        for name, content in files.items():
            path = self.path / name.replace("__", "/").replace("_py", ".py")
            if content is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "acme" / "lib")


def test_commits_files_and_changes(made: Made) -> None:
    first = made.commit("first\n\nwith a body", pkg__core_py="a = 1\n", README="hi\n")
    second = made.commit("second", pkg__core_py="a = 2\n", pkg__new_py="b = 1\n" * 9, README=None)
    repo = Repository(made.path)
    commit = repo.commit()
    assert (commit.sha, commit.parent, commit.message) == (second, first, "second")
    assert commit.author_date == "2020-01-02T03:04:05+02:00" and commit.commit_date.startswith("2021-01-02")
    assert [c.sha for c in repo.log()] == [second, first]
    assert repo.commit(first).message == "first\n\nwith a body"
    assert repo.files("HEAD~1") == {"README": b"hi\n", "pkg/core.py": b"a = 1\n"}
    assert [(c.path, c.status) for c in repo.changed("HEAD")] == [
        ("README", "D"),
        ("pkg/core.py", "M"),
        ("pkg/new.py", "A"),
    ]
    assert [(c.path, c.status) for c in repo.changed(first)] == [("README", "A"), ("pkg/core.py", "A")]
    assert repo.read(first, "pkg/core.py") == b"a = 1\n" and repo.read(second, "README") is None
    applied = patches.apply(repo.diff(first, second), Files(repo.files(first)))
    assert applied == Files(repo.files(second))
    assert [c.sha for c in repo.log(paths=["README"])] == [second, first]


def test_a_merge_is_seen_from_its_first_parent(made: Made) -> None:
    made.commit("base", a="1\n")
    made.git("checkout", "-q", "-b", "side")
    made.commit("side work", b="1\n")
    made.git("checkout", "-q", "main")
    main = made.commit("main work", c="1\n")
    made.git("merge", "-q", "--no-ff", "-m", "merged", "side")
    repo = Repository(made.path)
    assert [c.message for c in repo.log()] == ["merged", "main work", "base"]
    assert repo.commit().parent == main and [c.path for c in repo.changed("HEAD")] == ["b"]


def test_links_become_files_and_never_lead_out(made: Made) -> None:
    made.commit("files", pkg__core_py="x\n")
    (made.path / "good.py").symlink_to("pkg/core.py")
    (made.path / "pkg" / "twice.py").symlink_to("../good.py")
    (made.path / "out.py").symlink_to("/etc/passwd")
    (made.path / "up.py").symlink_to("../../../../etc/passwd")
    (made.path / "loop.py").symlink_to("loop.py")
    made.commit("links")
    assert Repository(made.path).files("HEAD") == dict.fromkeys(
        ("good.py", "pkg/core.py", "pkg/twice.py"), b"x\n"
    )


def test_nothing_of_a_hostile_repository_is_run(made: Made, tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    script = tmp_path / "trap.sh"
    script.write_text(f"#!/bin/sh\ntouch {trap}\ncat\n")
    script.chmod(0o755)
    first = made.commit("first", a="1\n", b_py="x\n")
    (made.path / ".gitattributes").write_text("* diff=evil filter=evil\n")
    made.commit("second", a="2\n")
    for name in ("core.fsmonitor", "core.pager", "diff.external", "diff.evil.textconv", "diff.evil.command"):
        made.git("config", name, str(script))
    for name in ("filter.evil.smudge", "filter.evil.clean", "core.sshCommand", "core.editor"):
        made.git("config", name, str(script))
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        (made.path / ".git" / "hooks" / hook).write_text(script.read_text())
        (made.path / ".git" / "hooks" / hook).chmod(0o755)
    repo = Repository(made.path)
    repo.files("HEAD"), repo.diff(first, "HEAD"), repo.changed("HEAD"), list(repo.log()), repo.name
    assert not trap.exists()


def test_replaced_objects_are_not_obeyed(made: Made) -> None:
    first = made.commit("first", a="1\n")
    second = made.commit("second", a="2\n")
    made.git("replace", second, first)
    assert Repository(made.path).files(second) == {"a": b"2\n"}


def test_a_revision_is_never_an_option(made: Made) -> None:
    made.commit("first", a="1\n")
    repo = Repository(made.path)
    for rev in ("--all", "-1", "nothing", "HEAD:a", "", "--output=/tmp/x"):
        with pytest.raises(GitError, match="no commit"):
            repo.commit(rev)
        assert not repo.has(rev)


def test_bare_ones_and_their_names(made: Made, tmp_path: Path) -> None:
    made.commit("first", a="1\n")
    bare = tmp_path / "repos" / "acme__lib.git"
    made.git("clone", "-q", "--bare", str(made.path), str(bare))
    for name in ("acme/lib", "lib"):
        assert find_repository(bare.parent, name).files("HEAD") == {"a": b"1\n"}
    assert find_repository(made.path.parent, "lib").path == made.path
    assert find_repository(made.path, "acme/lib").path == made.path
    with pytest.raises(GitError, match="no repository 'acme/other'"):
        find_repository(bare.parent, "acme/other")
    shutil.copytree(bare, bare.with_name("fork__lib.git"))
    with pytest.raises(GitError, match="more than one"):
        find_repository(bare.parent, "lib")


def test_what_is_none_says_so(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="no folder"):
        Repository(tmp_path / "nothing")
    with pytest.raises(GitError, match="no git repository"):
        Repository(tmp_path)
    with pytest.raises(GitError, match="no folder"):
        find_repository(tmp_path / "nothing", "x")


def test_a_lost_object_is_said(made: Made) -> None:
    made.commit("first", a="some content that is its own\n")
    blob = made.git("rev-parse", "HEAD:a")
    path = made.path / ".git" / "objects" / blob[:2] / blob[2:]
    path.unlink()
    with pytest.raises(GitError, match=r"lost the object|failed"):
        Repository(made.path).files("HEAD")
