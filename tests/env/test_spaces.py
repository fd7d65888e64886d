"""The spaces: seeded, comparable, to JSON and back, and what they sample is in them."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest

from tiltyard.env import ToolCallSpace, UnicodeText
from tiltyard.tools import TOOLS, Call, parse_action


def test_text_contains() -> None:
    space = UnicodeText(5)
    for inside in ("", "abc", "a\nb\tc", "日本語", "😀" * 5):
        assert inside in space
    for outside in ("abcdef", "\ud800", b"abc", None, 3, ["a"]):
        assert outside not in space


def test_text_samples() -> None:
    space = UnicodeText(1000, seed=1)
    samples = [space.sample() for _ in range(50)]
    assert all(s in space for s in samples)
    assert len(set(samples)) == 50
    assert any("\n" in s for s in samples)
    assert any(not s.isascii() for s in samples)
    space.seed(1)
    assert [space.sample() for _ in range(50)] == samples
    assert UnicodeText(0).sample() == ""


def test_text_equality_repr_json() -> None:
    assert UnicodeText(5) == UnicodeText(5)
    assert UnicodeText(5) != UnicodeText(6)
    assert UnicodeText(5) != 5
    assert repr(UnicodeText(5)) == "UnicodeText(5)"
    texts = ["a", "日\n"]
    assert UnicodeText(5).from_jsonable(json.loads(json.dumps(UnicodeText(5).to_jsonable(texts)))) == texts
    assert pickle.loads(pickle.dumps(UnicodeText(5))) == copy.deepcopy(UnicodeText(5)) == UnicodeText(5)
    with pytest.raises(ValueError, match="-1"):
        UnicodeText(-1)


def test_calls_sampled_are_legal() -> None:
    space = ToolCallSpace(seed=7)
    samples = [space.sample() for _ in range(300)]
    assert all(isinstance(parse_action(s), Call) for s in samples)
    assert all(s in space for s in samples)
    assert {s["tool"] for s in samples} == {t.name for t in TOOLS}
    space.seed(7)
    assert [space.sample() for _ in range(300)] == samples


def test_calls_masks() -> None:
    space = ToolCallSpace(seed=1)
    mask = np.array([0, 1, 0, 0, 0, 0], dtype=np.int8)
    assert {space.sample(mask=mask)["tool"] for _ in range(20)} == {"list_files"}
    assert {space.sample(probability=[0, 0, 0, 0, 0.5, 0.5])["tool"] for _ in range(50)} == {
        "run_tests",
        "submit",
    }
    for wrong in ([0] * 6, [1], [-1, 2, 0, 0, 0, 0]):
        with pytest.raises(ValueError, match="weights"):
            space.sample(mask=wrong)
    with pytest.raises(ValueError, match="both"):
        space.sample(mask=mask, probability=mask)


def test_calls_contains() -> None:
    space = ToolCallSpace()
    assert {"tool": "submit"} in space
    for outside in ({"tool": "x"}, "submit", None, {"tool": "submit", "x": 1}, '{"tool": "submit"}'):
        assert outside not in space


def test_calls_equality_and_json() -> None:
    assert ToolCallSpace() == ToolCallSpace(TOOLS)
    assert ToolCallSpace() != ToolCallSpace(TOOLS[:2])
    assert "view_file" in repr(ToolCallSpace())
    samples = [ToolCallSpace(seed=3).sample()]
    space = ToolCallSpace()
    assert space.from_jsonable(json.loads(json.dumps(space.to_jsonable(samples)))) == samples
    assert pickle.loads(pickle.dumps(space)) == space
