import random


def test_both_empty():
    assert line_diff([], []) == []
    assert line_diff(["q"], []) == [("-", "q")]


def test_everything_removed():
    assert line_diff(["p", "q"], []) == [("-", "p"), ("-", "q")]


def test_everything_added():
    assert line_diff([], ["p", "q"]) == [("+", "p"), ("+", "q")]


def test_nothing_in_common():
    assert line_diff(["p", "q"], ["r", "s"]) == [("-", "p"), ("-", "q"), ("+", "r"), ("+", "s")]


def test_nothing_changed():
    assert line_diff(["p", "", "p"], ["p", "", "p"]) == [("=", "p"), ("=", ""), ("=", "p")]


def test_line_put_in():
    assert line_diff(["p", "q"], ["p", "n", "q"]) == [("=", "p"), ("+", "n"), ("=", "q")]


def test_line_taken_out():
    assert line_diff(["p", "n", "q"], ["p", "q"]) == [("=", "p"), ("-", "n"), ("=", "q")]


def test_changes_at_both_ends():
    assert line_diff(["p", "k"], ["k", "q"]) == [("-", "p"), ("=", "k"), ("+", "q")]
    assert line_diff(["k", "q"], ["p", "k"]) == [("+", "p"), ("=", "k"), ("-", "q")]


def test_two_places():
    expected = [("-", "a1"), ("+", "a2"), ("=", "k"), ("-", "b1"), ("-", "b2"), ("+", "c"), ("=", "l")]
    assert line_diff(["a1", "k", "b1", "b2", "l"], ["a2", "k", "c", "l"]) == expected


def test_white_space_and_case_count():
    assert line_diff(["Line", "x "], ["line", "x"]) == [("-", "Line"), ("-", "x "), ("+", "line"), ("+", "x")]


def test_greedy_match_is_not_enough():
    check(["a", "b", "c", "d"], ["d", "a", "b", "c"], 3)
    check(["d", "a", "b", "c"], ["a", "b", "c", "d"], 3)
    check("xaxbxc", "abcx", 3)


def test_longest_block_is_not_enough():
    check("abcdmmmmefgh", "mmmmabcdefgh", 8)
    check("abxyzcd", "xyzabcd", 5)
    check("pqMMMrstu", "MMMpqrstu", 7)


def test_repeated_lines():
    check("aaaa", "aa", 2)
    check("abab", "baba", 3)
    check("aabbaabb", "abababab", 6)


def test_reversed():
    check("abcdef", "fedcba", 1)


def test_arguments_are_not_changed():
    old, new = ["a", "b"], ["b", "c"]
    assert line_diff(old, new) == [("-", "a"), ("=", "b"), ("+", "c")]
    assert (old, new) == (["a", "b"], ["b", "c"])


def test_generated():
    rng = random.Random(12)
    for letters in ("ab", "abc", "abcdefgh"):
        for _ in range(25):
            old = [rng.choice(letters) for _ in range(rng.randrange(1, 15))]
            new = [rng.choice(letters) for _ in range(rng.randrange(1, 15))]
            check(old, new, most_kept(old, new))


def test_large():
    rng = random.Random(15)
    old = [f"line {rng.randrange(40)}" for _ in range(150)]
    new = [line for line in old if rng.random() < 0.8]
    for _ in range(20):
        new.insert(rng.randrange(len(new)), f"line {rng.randrange(60)}")
    check(old, new[:150], most_kept(old, new[:150]))
