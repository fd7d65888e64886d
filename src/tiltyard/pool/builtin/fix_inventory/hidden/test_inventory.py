from inventory.models import Item, NotEnough
from inventory.report import low, orders, table


def shop(**stock):
    store = Store()
    for sku, pieces in stock.items():
        store.add(sku, sku.upper(), pieces)
    return store


def test_articles_are_apart():
    store = shop(a=10, b=10, c=10)
    store.reserve("o1", {"a": 2, "c": 5})
    assert table(store) == [("a", "A", 10, 8), ("b", "B", 10, 10), ("c", "C", 10, 5)]


def test_stores_are_apart():
    one, two = shop(a=5), shop(a=5)
    one.reserve("o", {"a": 4})
    assert table(two) == [("a", "A", 5, 5)]
    assert orders(two) == {}


def test_items_are_apart():
    one, two = Item("x", "X", 9), Item("y", "Y", 9)
    one.reserve("o", 1)
    assert (one.free, two.free) == (8, 9)


def test_item_with_reservations():
    item = Item("x", "X", 9, {"old": 2})
    item.reserve("new", 3)
    assert item.free == 4
    assert item.release("old") == 2
    assert item.free == 6


def test_exactly_all():
    store = shop(a=3, b=4)
    store.reserve("o", {"a": 3})
    assert low(store, 1) == ["a"]
    store.reserve("p", {"b": 1})
    store.reserve("q", {"b": 3})
    assert low(store, 1) == ["a", "b"]


def test_one_too_many():
    store = shop(a=3)
    raises(NotEnough, store.reserve, "o", {"a": 4})
    store.reserve("o", {"a": 2})
    raises(NotEnough, store.reserve, "o", {"a": 2})
    assert table(store) == [("a", "A", 3, 1)]


def test_nothing_there():
    store = shop(a=0)
    raises(NotEnough, store.reserve, "o", {"a": 1})
    store.deliver("a", 1)
    store.reserve("o", {"a": 1})
    assert table(store) == [("a", "A", 1, 0)]


def test_cancel_gives_back():
    store = shop(a=6, b=6)
    store.reserve("o", {"a": 2, "b": 3})
    store.reserve("p", {"a": 1})
    assert store.cancel("o") == 5
    assert table(store) == [("a", "A", 6, 5), ("b", "B", 6, 6)]
    assert orders(store) == {"p": {"a": 1}}


def test_cancel_twice():
    store = shop(a=6)
    store.reserve("o", {"a": 2})
    assert [store.cancel("o"), store.cancel("o"), store.cancel("never")] == [2, 0, 0]


def test_cancelled_order_is_not_shipped():
    store = shop(a=6)
    store.reserve("o", {"a": 2})
    store.cancel("o")
    assert store.ship("o") == 0
    assert table(store) == [("a", "A", 6, 6)]


def test_ship():
    store = shop(a=6, b=6)
    store.reserve("o", {"a": 2, "b": 1})
    assert store.ship("o") == 3
    assert table(store) == [("a", "A", 4, 4), ("b", "B", 5, 5)]
    assert store.ship("o") == 0
    assert store.cancel("o") == 0


def test_all_or_nothing():
    store = shop(a=5, b=1)
    store.reserve("o", {"a": 1})
    raises(NotEnough, store.reserve, "o", {"a": 2, "b": 2})
    raises(KeyError, store.reserve, "p", {"a": 2, "zzz": 1})
    raises(ValueError, store.reserve, "p", {"b": 1, "a": 0})
    assert orders(store) == {"o": {"a": 1}}


def test_reservations_add_up():
    store = shop(a=9)
    store.reserve("o", {"a": 2})
    store.reserve("o", {"a": 3})
    assert orders(store) == {"o": {"a": 5}}


def test_low():
    store = shop(d=3, c=1, b=3, a=8)
    assert low(store, 4) == ["c", "b", "d"]
    assert low(store, 3) == ["c"]


def test_adding():
    store = shop(a=1)
    raises(ValueError, store.add, "a", "again")
    raises(ValueError, store.add, "b", "bad", -1)
    assert table(store) == [("a", "A", 1, 1)]


def test_article_without_a_stock():
    assert Item("x", "X").free == 0
