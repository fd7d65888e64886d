def test_empty():
    stock = Inventory()
    assert stock.total() == 0
    assert stock.articles() == []
    assert stock.count("bolt") == 0


def test_starting_counts():
    stock = Inventory({"bolt": 3, "axe": 0, "rope": 7})
    assert [stock.count(name) for name in ("bolt", "axe", "rope")] == [3, 0, 7]
    assert stock.total() == 10


def test_negative_starting_count():
    assert raises(ValueError, Inventory, {"bolt": 3, "axe": -1})
    assert Inventory({"bolt": 0}).total() == 0


def test_starting_dict_is_copied():
    counts = {"bolt": 3}
    stock = Inventory(counts)
    stock.add("bolt", 2)
    stock.add("rope")
    assert counts == {"bolt": 3}
    counts["bolt"] = 99
    assert stock.count("bolt") == 5


def test_add():
    stock = Inventory()
    stock.add("bolt")
    stock.add("bolt", 4)
    stock.add("rope", count=2)
    assert (stock.count("bolt"), stock.count("rope"), stock.total()) == (5, 2, 7)


def test_take():
    stock = Inventory({"bolt": 5})
    stock.take("bolt")
    assert stock.count("bolt") == 4
    stock.take("bolt", 4)
    assert stock.count("bolt") == 0


def test_take_what_is_not_there():
    stock = Inventory({"axe": 0, "bolt": 1})
    assert raises(KeyError, stock.take, "rope")
    assert raises(KeyError, stock.take, "axe", 2)
    stock.take("bolt")
    assert raises(KeyError, stock.take, "bolt")
    assert stock.total() == 0


def test_take_more_than_there_is():
    stock = Inventory({"bolt": 3})
    assert raises(ValueError, stock.take, "bolt", 4)
    assert stock.count("bolt") == 3


def test_count_below_one():
    stock = Inventory({"bolt": 3})
    for count in (0, -1):
        assert raises(ValueError, stock.add, "bolt", count)
        assert raises(ValueError, stock.take, "bolt", count)
        assert raises(ValueError, stock.take, "rope", count)
    assert stock.count("bolt") == 3
    assert stock.articles() == ["bolt"]


def test_articles_in_order():
    stock = Inventory({"rope": 1, "axe": 2})
    stock.add("nail", 9)
    stock.add("Zip")
    assert stock.articles() == ["Zip", "axe", "nail", "rope"]


def test_articles_that_ran_out():
    stock = Inventory({"rope": 1, "axe": 2, "hook": 0})
    stock.take("rope")
    assert stock.articles() == ["axe"]
    stock.add("rope")
    assert stock.articles() == ["axe", "rope"]


def test_take_all():
    stock = Inventory({"rope": 3, "axe": 2, "hook": 1})
    order = {"rope": 3, "axe": 1}
    assert stock.take_all(order) is True
    assert [stock.count(name) for name in ("rope", "axe", "hook")] == [0, 1, 1]
    assert order == {"rope": 3, "axe": 1}


def test_take_all_takes_nothing_if_something_is_missing():
    stock = Inventory({"rope": 3, "axe": 2})
    assert stock.take_all({"rope": 1, "axe": 3}) is False
    assert stock.take_all({"rope": 1, "saw": 1}) is False
    assert stock.take_all({"saw": 1, "rope": 1}) is False
    assert (stock.count("rope"), stock.count("axe"), stock.total()) == (3, 2, 5)


def test_take_all_of_nothing():
    stock = Inventory({"rope": 3})
    assert stock.take_all({}) is True
    assert stock.total() == 3


def test_take_all_with_bad_counts():
    stock = Inventory({"rope": 3})
    assert raises(ValueError, stock.take_all, {"rope": 1, "axe": 0})
    assert raises(ValueError, stock.take_all, {"rope": -1})
    assert stock.count("rope") == 3
    assert stock.take_all({"rope": 2}) is True


def test_inventories_are_independent():
    one, two = Inventory(), Inventory()
    one.add("rope", 2)
    assert (one.total(), two.total()) == (2, 0)
