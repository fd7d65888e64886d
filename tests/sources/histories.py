"""Small git repositories with real histories, made by the tests themselves: fixed names, dates and so commits."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

WHO = "Ann <ann@example.org>"


class History:
    """A repository that grows commit by commit. Dates are one day apart, from 2024-01-01 on."""

    def __init__(self, path: Path) -> None:
        self.path, self.day = path, 0
        path.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *args: str) -> str:
        """Run git in it, with no configuration of anybody."""
        date = f"2024-{1 + self.day // 28:02}-{1 + self.day % 28:02}T12:00:00+00:00"
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.path),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
        }
        for who in ("AUTHOR", "COMMITTER"):
            env |= {f"GIT_{who}_NAME": "Ann", f"GIT_{who}_EMAIL": "ann@example.org", f"GIT_{who}_DATE": date}
        command = ["git", "-c", "commit.gpgsign=false", *args]
        done = subprocess.run(command, cwd=self.path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{args}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def commit(self, message: str, files: Mapping[str, str | None]) -> str:
        """Write these files (None: remove), commit, and return the commit's name."""
        for path, text in files.items():
            target = self.path / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                target.unlink()
            else:
                target.write_text(text)
        self.git("add", "-A")
        self.day += 1
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")
