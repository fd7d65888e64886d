"""``sandbox.run``: one command in a folder, with limits, and nothing left of it."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from tiltyard.errors import UsageError
from tiltyard.sandbox import KEPT_CHARS, run

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")


def alive(marker: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in path.read_bytes():
                return True
        except OSError:
            continue
    return False


def test_the_result_has_the_keys_of_the_lesson(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    result = run([sys.executable, "a.py"], str(tmp_path), timeout_s=60)
    assert list(result) == ["rc", "stdout", "stderr", "timed_out", "seconds"]
    assert (result["rc"], result["stdout"], result["stderr"], result["timed_out"]) == (
        3,
        "out\n",
        "err\n",
        False,
    )
    assert 0 < result["seconds"] < 60
    assert [p.name for p in tmp_path.iterdir()] == ["a.py"]


def test_the_environment_is_path_and_two_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    result = run(["env"], str(tmp_path), timeout_s=60)
    lines = dict(line.split("=", 1) for line in result["stdout"].splitlines())
    assert lines == {"PATH": os.environ["PATH"], "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}


def test_it_runs_in_the_folder_and_sees_its_files(tmp_path: Path) -> None:
    (tmp_path / "here.txt").write_text("x")
    assert run(["ls"], str(tmp_path), timeout_s=60)["stdout"] == "here.txt\n"
    assert run(["pwd"], str(tmp_path), timeout_s=60)["stdout"].strip() == str(tmp_path.resolve())
    run(["sh", "-c", "echo made > new.txt"], str(tmp_path), timeout_s=60)
    assert (tmp_path / "new.txt").read_text() == "made\n"


def test_the_last_characters_of_each_stream_are_kept(tmp_path: Path) -> None:
    code = "import sys\nfor n in range(20000): print(f'{n:05}ü'); print('e', end='', file=sys.stderr)"
    result = run([sys.executable, "-X", "utf8", "-c", code], str(tmp_path), timeout_s=60, cpu_s=30)
    whole = "".join(f"{n:05}ü\n" for n in range(20000))
    assert result["stdout"] == whole[-KEPT_CHARS:]
    assert result["stderr"] == "e" * KEPT_CHARS
    code = "import os; os.write(1, '😀'.encode() * 5000 + b'\\xff')"
    result = run([sys.executable, "-c", code], str(tmp_path), timeout_s=60)
    assert result["stdout"] == "😀" * (KEPT_CHARS - 1) + "\N{REPLACEMENT CHARACTER}"


@linux
def test_after_the_time_everything_is_dead(tmp_path: Path) -> None:
    marker = str(10**9 + int.from_bytes(os.urandom(4), "big"))
    result = run(
        ["sh", "-c", f"echo begun; setsid sleep {marker} & sleep {marker}"], str(tmp_path), timeout_s=1
    )
    assert (result["rc"], result["timed_out"], result["stdout"]) == (-9, True, "begun\n")
    assert not alive(marker)


@linux
def test_after_the_end_everything_is_dead(tmp_path: Path) -> None:
    marker = str(10**9 + int.from_bytes(os.urandom(4), "big"))
    result = run(
        ["sh", "-c", f"setsid sleep {marker} & sleep {marker} & exit 5"], str(tmp_path), timeout_s=60
    )
    assert (result["rc"], result["timed_out"]) == (5, False)
    assert not alive(marker)


def test_cpu_and_file_size_are_limited(tmp_path: Path) -> None:
    result = run([sys.executable, "-c", "while True: pass"], str(tmp_path), timeout_s=100, cpu_s=1)
    assert (result["rc"], result["timed_out"]) == (-9, True)
    code = "open('big', 'wb').write(bytes(1 << 21))"
    assert "File too large" in run([sys.executable, "-c", code], str(tmp_path), timeout_s=60)["stderr"]
    assert (tmp_path / "big").stat().st_size <= 1 << 20
    assert run([sys.executable, "-c", code], str(tmp_path), timeout_s=60, fsize_bytes=1 << 22)["rc"] == 0


def test_hashes_are_fixed_and_no_bytecode_is_written(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import b; print(hash('x'))")
    (tmp_path / "b.py").write_text("")
    assert len({run([sys.executable, "a.py"], str(tmp_path), timeout_s=60)["stdout"] for _ in range(3)}) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.py", "b.py"]


def test_it_works_in_many_threads(tmp_path: Path) -> None:
    results: dict[int, str] = {}

    def work(n: int) -> None:
        results[n] = run(["echo", str(n)], str(tmp_path), timeout_s=60)["stdout"]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {n: f"{n}\n" for n in range(8)}


def test_the_path_of_the_folder_is_told_as_it_is(tmp_path: Path) -> None:
    result = run([sys.executable, "-c", "import os; print(os.getcwd())"], str(tmp_path), timeout_s=60)
    assert result["stdout"].strip() == str(tmp_path.resolve())


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cmd"):
        run([], str(tmp_path))
    with pytest.raises(UsageError, match="cmd"):
        run("true", str(tmp_path))
    with pytest.raises(UsageError, match="no/such"):
        run(["true"], str(tmp_path / "no/such"))
    result = run(["no-such-command"], str(tmp_path))
    assert result["rc"] == 127 and "no-such-command" in result["stderr"]
