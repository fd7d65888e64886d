"""What is kept of a stream, and what is hidden in it, however it comes in pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tiltyard.cells.inside.pump import Hide, Kept

pieces = st.lists(st.binary(max_size=50), max_size=20)


@given(pieces, st.integers(0, 200))
def test_kept_is_the_head_and_the_tail(parts: list[bytes], size: int) -> None:
    whole = b"".join(parts)
    kept = Kept(size)
    for part in parts:
        kept.feed(part)
    value = kept.value()
    if len(whole) <= size:
        assert (value, kept.dropped) == (whole, 0)
    else:
        tail = size // 2
        assert value == whole[: size - tail] + whole[len(whole) - tail :]
        assert kept.dropped == len(whole) - size


def test_a_flood_is_not_held() -> None:
    kept = Kept(1000)
    for _ in range(200):
        kept.feed(b"x" * 65536)
        assert len(kept.head) + len(kept.tail) < 3 << 20
    assert len(kept.value()) == 1000 and kept.dropped == 200 * 65536 - 1000


@given(
    st.lists(
        st.sampled_from([b"/tmp/t-12/x", b"/tmp/", b"t-12", b"/", b"/tmp/t-12", b"abc", b"/tmp/t-1", b"2"]),
        max_size=30,
    ),
    st.integers(1, 7),
)
def test_hidden_wherever_it_is_cut(words: list[bytes], step: int) -> None:
    whole = b"".join(words)
    hide = Hide(b"/tmp/t-12")
    out = b"".join(hide.feed(whole[n : n + step]) for n in range(0, len(whole), step)) + hide.end()
    assert out == whole.replace(b"/tmp/t-12", b"")


def test_nothing_is_hidden_without_a_word() -> None:
    hide = Hide(b"")
    assert hide.feed(b"/tmp/x") + hide.end() == b"/tmp/x"


def test_what_could_begin_the_word_comes_out_at_the_end() -> None:
    hide = Hide(b"/tmp/t")
    assert hide.feed(b"a/tmp/") == b"a"
    assert hide.end() == b"/tmp/"
