"""What tests of environments share: a cache of their own, and an index that is a folder of archives made here."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import tarfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tiltyard.environments.model import BuildError
from tiltyard.environments.uv import uv_path

MakeWheel = Callable[..., Path]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of this test."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("TILTYARD_CACHE", str(folder))
    return folder


@pytest.fixture
def wheels(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that uv takes for the whole index: no test here needs a network."""
    try:
        uv_path()
    except BuildError as error:
        pytest.skip(str(error))
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name in [n for n in os.environ if n.startswith(("UV_", "PIP_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    return folder


@pytest.fixture
def make_wheel(wheels: Path) -> MakeWheel:
    """``make_wheel(name, version, files, requires=())`` puts a wheel into the index."""

    def make(
        name: str, version: str, files: Mapping[str, str], requires: Sequence[str] = (), points: str = ""
    ) -> Path:
        info = f"{name}-{version}.dist-info"
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        metadata += "".join(f"Requires-Dist: {one}\n" for one in requires)
        contents = {
            **files,
            f"{info}/METADATA": metadata,
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        if points:
            contents[f"{info}/entry_points.txt"] = points
        record = "".join(f"{path},{_hash(text)},{len(text.encode())}\n" for path, text in contents.items())
        contents[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n"
        target = wheels / f"{name}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(target, "w") as archive:
            for path, text in contents.items():
                archive.writestr(zipfile.ZipInfo(path, (2024, 1, 1, 0, 0, 0)), text)
        return target

    return make


_BACKEND = """
import pathlib, zipfile
def get_requires_for_build_wheel(config_settings=None):
    return []
def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = "NAME-VERSION-py3-none-any.whl"
    info = "NAME-VERSION.dist-info"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w") as archive:
        archive.writestr("NAME.py", "answer = 42\\n")
        archive.writestr(info + "/METADATA", "Metadata-Version: 2.1\\nName: NAME\\nVersion: VERSION\\n")
        archive.writestr(info + "/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(info + "/RECORD", "")
    return name
"""


@pytest.fixture
def make_sdist(wheels: Path) -> MakeWheel:
    """``make_sdist(name, version, backend=…)`` puts a source archive into the index, which builds by itself."""

    def make(name: str, version: str, backend: str = _BACKEND) -> Path:
        top = f"{name}-{version}"
        contents = {
            f"{top}/pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "make"\nbackend-path = ["."]\n'
            f'[project]\nname = "{name}"\nversion = "{version}"\n',
            f"{top}/make.py": backend.replace("NAME", name).replace("VERSION", version),
            f"{top}/PKG-INFO": f"Metadata-Version: 2.2\nName: {name}\nVersion: {version}\n",
        }
        target = wheels / f"{name}-{version}.tar.gz"
        with tarfile.open(target, "w:gz") as archive:
            for path, text in contents.items():
                info = tarfile.TarInfo(path)
                info.size = len(text.encode())
                archive.addfile(info, io.BytesIO(text.encode()))
        return target

    return make


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"
