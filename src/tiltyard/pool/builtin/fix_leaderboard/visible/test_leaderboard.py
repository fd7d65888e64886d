def board():
    b = Leaderboard()
    for name, score in [("Ada", 7), ("Bob", 9), ("Cyd", 7), ("Dan", 5)]:
        b.enter(name, score)
    return b


def test_table():
    assert board().ranking() == [(1, "Bob", 9), (2, "Ada", 7), (2, "Cyd", 7), (4, "Dan", 5)]


def test_place():
    assert board().place("Bob") == 1
