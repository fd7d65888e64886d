from inventory.report import table


def shop():
    store = Store()
    store.add("h1", "hammer", 10)
    store.add("n1", "nail", 100)
    store.add("s1", "saw", 5)
    return store


def test_reservation_concerns_one_article():
    store = shop()
    store.reserve("A1", {"h1": 3})
    assert table(store) == [("h1", "hammer", 10, 7), ("n1", "nail", 100, 100), ("s1", "saw", 5, 5)]


def test_all_saws():
    store = shop()
    store.reserve("A2", {"s1": 5})
    assert table(store)[2] == ("s1", "saw", 5, 0)
