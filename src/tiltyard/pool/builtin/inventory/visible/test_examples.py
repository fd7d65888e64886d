def test_add_and_take():
    stock = Inventory({"nail": 100})
    stock.add("saw")
    stock.take("nail", 40)
    assert (stock.count("nail"), stock.count("saw"), stock.total()) == (60, 1, 61)


def test_all_or_nothing():
    stock = Inventory({"nail": 60, "saw": 1})
    assert stock.take_all({"nail": 10, "saw": 2}) is False
    assert stock.count("nail") == 60
    assert stock.take_all({"nail": 10, "saw": 1}) is True
    assert stock.articles() == ["nail"]
