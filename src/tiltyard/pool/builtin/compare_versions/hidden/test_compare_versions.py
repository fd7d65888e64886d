import random


def test_numbers_not_text():
    assert compare_versions("3.20", "3.3") == 1
    assert compare_versions("3.3", "3.20") == -1


def test_not_a_decimal_number():
    assert compare_versions("1.5", "1.25") == -1
    assert compare_versions("0.10", "0.1") == 1


def test_one_part():
    assert compare_versions("9", "10") == -1
    assert compare_versions("12", "12") == 0


def test_first_difference_decides():
    assert compare_versions("1.3.0", "1.2.9") == 1
    assert compare_versions("0.9.9", "1.0.0") == -1


def test_missing_parts_are_zero():
    assert compare_versions("4", "4.0.0.0") == 0
    assert compare_versions("4.0.0.1", "4") == 1
    assert compare_versions("4", "4.0.1") == -1


def test_longer_is_not_newer():
    assert compare_versions("1.2.3.4", "1.3") == -1
    assert compare_versions("2", "1.9.9") == 1


def test_leading_zeros():
    assert compare_versions("1.01", "1.1") == 0
    assert compare_versions("2026.09", "2026.10") == -1
    assert compare_versions("0007", "6") == 1


def test_large_parts():
    assert compare_versions("1." + "9" * 30, "1.1" + "0" * 30) == -1
    assert compare_versions("20261101.2", "20261101.1") == 1


def test_invalid_left():
    for bad in (
        "",
        ".",
        "5.",
        ".5",
        "5..5",
        "5.a",
        "v5",
        "-5",
        "5.-5",
        "+5",
        " 5",
        "5. 5",
        "5_0",
        "5,0",
    ):
        assert raises(ValueError, compare_versions, bad, "5.5"), bad
    assert compare_versions("5.5", "5.5.1") == -1


def test_invalid_right():
    for bad in ("", "3..4", "3.4-rc", "3.4\n", "3.-4", "1_000"):
        assert raises(ValueError, compare_versions, "3.4", bad), bad
    assert compare_versions("3.4", "3.3") == 1


def test_invalid_even_if_decided_before():
    assert raises(ValueError, compare_versions, "2.0", "1.x")
    assert raises(ValueError, compare_versions, "1.0.", "2.0")
    assert compare_versions("2.0", "1.0") == 1


def test_other_digits_are_invalid():
    assert raises(ValueError, compare_versions, "1.²", "1.2")
    assert raises(ValueError, compare_versions, "1.2", "1.٣")
    assert compare_versions("1.2", "1.3") == -1


def test_generated():
    rng = random.Random(17)
    for _ in range(120):
        a = [rng.randrange(0, 12) for _ in range(rng.randrange(1, 5))]
        b = a[: rng.randrange(1, len(a) + 1)] + [
            rng.choice([0, 0, 1, 10]) for _ in range(rng.randrange(0, 3))
        ]
        pa, pb = a + [0] * (8 - len(a)), b + [0] * (8 - len(b))
        expected = (pa > pb) - (pa < pb)
        left, right = ".".join(map(str, a)), ".".join(map(str, b))
        assert compare_versions(left, right) == expected
        assert compare_versions(right, left) == -expected
