import random


def test_runs_of_different_lengths():
    assert rle_encode("xxyyyyz") == [("x", 2), ("y", 4), ("z", 1)]


def test_last_run_is_long():
    assert rle_encode("pqqqq") == [("p", 1), ("q", 4)]


def test_no_repetition():
    assert rle_encode("dcba") == [("d", 1), ("c", 1), ("b", 1), ("a", 1)]


def test_one_run_only():
    assert rle_encode("wwwww") == [("w", 5)]


def test_run_comes_back_later():
    assert rle_encode("mmnnmm") == [("m", 2), ("n", 2), ("m", 2)]


def test_empty_and_short():
    assert rle_encode("") == []
    assert rle_encode("k") == [("k", 1)]


def test_case_matters():
    assert rle_encode("bBBb") == [("b", 1), ("B", 2), ("b", 1)]


def test_spaces_and_newlines():
    assert rle_encode("  \n\n\n ") == [(" ", 2), ("\n", 3), (" ", 1)]


def test_digits_are_characters():
    assert rle_encode("11223") == [("1", 2), ("2", 2), ("3", 1)]


def test_counts_of_ten_and_more():
    assert rle_encode("g" * 12 + "h" * 100) == [("g", 12), ("h", 100)]


def test_not_only_ascii():
    assert rle_encode("éé→→→") == [("é", 2), ("→", 3)]


def test_items_are_tuples_of_text_and_int():
    result = rle_encode("uuv")
    assert isinstance(result, list)
    assert all(type(item) is tuple and type(item[1]) is int for item in result)
    assert len(result) == 2


def test_generated():
    rng = random.Random(5)
    for size in range(1, 60):
        text = "".join(rng.choice("ab c") for _ in range(size))
        runs = rle_encode(text)
        assert "".join(character * count for character, count in runs) == text
        assert all(count >= 1 and len(character) == 1 for character, count in runs)
        assert all(left[0] != right[0] for left, right in zip(runs, runs[1:], strict=False))
