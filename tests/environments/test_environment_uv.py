"""What uv is told of the user's settings, and what its words are taken for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiltyard.environments.installing import without_wheel
from tiltyard.environments.uv import kind_of, pip_settings, settings, shorten


def environ(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), "PATH": "/usr/bin", **more}


def test_settings_of_pip_are_passed_on_where_uv_has_none(tmp_path: Path) -> None:
    there = tmp_path / "wheels"
    there.mkdir()
    cert = tmp_path / "cert.pem"
    cert.write_text("")
    config = tmp_path / ".config" / "pip" / "pip.conf"
    config.parent.mkdir(parents=True)
    config.write_text(
        f"[global]\nindex-url = https://one.example/simple\ncert = {cert}\n"
        f"extra-index-url =\n  https://two.example/simple\n  file://{tmp_path}/gone\n  file://{there}\n"
        f"[install]\nfind-links = {there} {tmp_path}/gone\n"
    )
    env = settings(environ(tmp_path))
    assert env["UV_DEFAULT_INDEX"] == "https://one.example/simple"
    assert env["UV_INDEX"] == f"https://two.example/simple file://{there}"
    assert env["UV_INDEX_STRATEGY"] == "unsafe-best-match"
    assert env["UV_FIND_LINKS"] == str(there)
    assert env["SSL_CERT_FILE"] == str(cert)
    again = settings(environ(tmp_path, PIP_INDEX_URL="https://three.example/simple"))
    assert again["UV_DEFAULT_INDEX"] == "https://three.example/simple", "a variable comes before a file"
    own = settings(environ(tmp_path, UV_INDEX_URL="https://four.example/simple"))
    assert "UV_DEFAULT_INDEX" not in own and "UV_INDEX" not in own


def test_pip_files_can_be_turned_off(tmp_path: Path) -> None:
    (tmp_path / ".pip").mkdir()
    (tmp_path / ".pip" / "pip.conf").write_text("[global]\nindex-url = https://one.example\n")
    assert pip_settings(environ(tmp_path))["index-url"] == "https://one.example"
    assert "index-url" not in pip_settings(environ(tmp_path, PIP_CONFIG_FILE="/dev/null"))


def test_nothing_of_the_callers_python_reaches_uv(tmp_path: Path) -> None:
    env = settings(
        environ(tmp_path, VIRTUAL_ENV="/x", PYTHONPATH="/x", UV_EXCLUDE_NEWER="2020-01-01", UV_CACHE_DIR="/c")
    )
    assert not {"VIRTUAL_ENV", "PYTHONPATH", "UV_EXCLUDE_NEWER"} & {*env}
    assert env["UV_PYTHON_DOWNLOADS"] == "never" and env["UV_CACHE_DIR"] == "/c"


# uv's own words, as 0.13 says them
WORDS = [
    ("package", "Because nosuch was not found in the package registry and you require nosuch==1, we can conclude that your requirements are unsatisfiable."),
    ("package", "Because there is no version of six==99.0 and you require six==99.0, we can conclude that your requirements are unsatisfiable."),
    ("package", "Because pkg==1.0 has no usable wheels and you require pkg==1.0, we can conclude that your requirements are unsatisfiable.\nhint: Wheels are required for `pkg` because building from source is disabled"),
    ("python", "Because the current Python version (3.11.7) does not satisfy Python>=3.12 and numpy==2.5 depends on Python>=3.12, we can conclude"),
    ("conflict", "Because a==1 depends on b<2 and you require b>=2, we can conclude that a==1 and your requirements are incompatible."),
    ("network", "Failed to fetch: `https://x/simple/six/`\n  Caused by: error sending request for url\n  Caused by: dns error"),
    ("compiler", "Failed to build `lxml==4.6.0`\nThe build backend returned an error\nCall to `setuptools.build_meta:__legacy__.build_wheel` failed (exit status: 1)\nerror: command 'gcc' failed"),
    ("hash", "Failed to download `six==1.16.0`\n Hash mismatch for `six==1.16.0`"),
    ("other", "something that nobody has seen"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "said"), WORDS)
def test_what_words_are_about(kind: str, said: str) -> None:
    assert kind_of(said) == kind


def test_words_are_short_and_name_no_index() -> None:
    said = shorten(
        "warning: x\n  × No solution found:\n  ╰─▶ Because https://user:secret@host/simple/x is gone\n"
        + "y" * 10_000
    )
    assert said.startswith("No solution found: Because https://…")
    assert "secret" not in said and len(said) < 2100


def test_which_pin_has_no_wheel() -> None:
    pins = {"pkg": "pkg==1.0", "six": "six==1.16.0"}
    assert without_wheel(WORDS[2][1], pins) == ["pkg"]
    assert without_wheel(WORDS[0][1], pins) == []
