def board(*pairs):
    b = Leaderboard()
    for name, score in pairs:
        b.enter(name, score)
    return b


def test_places_after_a_tie():
    b = board(("a", 10), ("b", 10), ("c", 10), ("d", 1))
    assert [row[0] for row in b.ranking()] == [1, 1, 1, 4]


def test_two_ties():
    b = board(("a", 3), ("b", 5), ("c", 3), ("d", 5), ("e", 0))
    assert b.ranking() == [(1, "b", 5), (1, "d", 5), (3, "a", 3), (3, "c", 3), (5, "e", 0)]


def test_order_of_entry_among_equals():
    b = board(("zoe", 4), ("amy", 4), ("max", 4))
    assert [row[1] for row in b.ranking()] == ["zoe", "amy", "max"]


def test_correction_keeps_the_rank_of_entry():
    b = board(("x", 1), ("y", 6), ("z", 6))
    b.enter("x", 6)
    assert b.ranking() == [(1, "x", 6), (1, "y", 6), (1, "z", 6)]


def test_withdrawn_and_entered_again():
    b = board(("x", 6), ("y", 6))
    b.withdraw("x")
    b.enter("x", 6)
    assert [row[1] for row in b.ranking()] == ["y", "x"]


def test_no_ties():
    b = board(("a", 1), ("b", 3), ("c", 2))
    assert b.ranking() == [(1, "b", 3), (2, "c", 2), (3, "a", 1)]


def test_negative_and_zero_scores():
    b = board(("a", -5), ("b", 0), ("c", -5), ("d", -9))
    assert b.ranking() == [(1, "b", 0), (2, "a", -5), (2, "c", -5), (4, "d", -9)]


def test_large_scores_that_floats_confuse():
    b = board(("a", 2**60), ("b", 2**60 + 1))
    assert b.ranking() == [(1, "b", 2**60 + 1), (2, "a", 2**60)]


def test_place_of_one():
    b = board(("a", 8), ("b", 8), ("c", 7))
    assert [b.place(n) for n in "abc"] == [1, 1, 3]
    raises(KeyError, b.place, "d")


def test_medals():
    assert board(("a", 1), ("b", 9), ("c", 9), ("d", 5), ("e", 1)).medals() == ["b", "c", "d"]
    assert board(("a", 2), ("b", 2), ("c", 2), ("d", 2)).medals() == ["a", "b", "c", "d"]
    assert board(("a", 9), ("b", 5), ("c", 5), ("d", 5), ("e", 4)).medals() == ["a", "b", "c", "d"]


def test_text():
    assert board(("Eve", 3), ("Robert", 3), ("Al", 12)).as_text() == "1. Al     12\n2. Eve    3\n2. Robert 3"


def test_empty():
    assert board().ranking() == []
    assert board().medals() == []
    assert board().as_text() == ""


def test_errors():
    b = board(("a", 1))
    raises(ValueError, b.enter, "  ", 3)
    raises(KeyError, b.withdraw, "b")
    assert b.ranking() == [(1, "a", 1)]
