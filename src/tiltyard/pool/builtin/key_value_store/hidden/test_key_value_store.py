import random


def test_without_transactions():
    store = KeyValueStore()
    store.set("k", 1)
    store.set("m", "one")
    store.set("k", 2)
    assert (store.get("k"), store.get("m"), store.get("x"), store.get("x", 9)) == (2, "one", None, 9)
    assert store.keys() == ["k", "m"]


def test_delete():
    store = KeyValueStore()
    store.set("k", 0)
    store.delete("k")
    assert store.get("k", "gone") == "gone"
    assert raises(KeyError, store.delete, "k")
    assert store.keys() == []


def test_keys_are_sorted():
    store = KeyValueStore()
    for key in ("pear", "Fig", "apple"):
        store.set(key, 1)
    assert store.keys() == ["Fig", "apple", "pear"]


def test_count():
    store = KeyValueStore()
    for key, value in (("a", 1), ("b", "1"), ("c", 1), ("d", 2)):
        store.set(key, value)
    assert [store.count(1), store.count("1"), store.count(2), store.count(3)] == [2, 1, 1, 0]
    store.set("a", 2)
    store.delete("c")
    assert [store.count(1), store.count(2)] == [0, 2]


def test_rollback_of_a_change():
    store = KeyValueStore()
    store.set("k", "old")
    store.begin()
    store.set("k", "new")
    store.set("k", "newer")
    assert store.get("k") == "newer"
    store.rollback()
    assert store.get("k") == "old"


def test_rollback_of_a_new_key():
    store = KeyValueStore()
    store.set("k", 1)
    store.begin()
    store.set("n", 5)
    assert store.keys() == ["k", "n"]
    store.rollback()
    assert store.keys() == ["k"]
    assert raises(KeyError, store.delete, "n")


def test_rollback_of_a_delete():
    store = KeyValueStore()
    store.set("k", 1)
    store.begin()
    store.delete("k")
    assert store.keys() == [] and store.count(1) == 0
    store.rollback()
    assert store.get("k") == 1 and store.count(1) == 1


def test_rollback_of_set_and_delete_together():
    store = KeyValueStore()
    store.set("k", 1)
    store.begin()
    store.delete("k")
    store.set("k", 2)
    store.set("n", 3)
    store.delete("n")
    store.rollback()
    assert (store.get("k"), store.keys()) == (1, ["k"])


def test_falsy_values_come_back():
    store = KeyValueStore()
    store.set("zero", 0)
    store.set("empty", "")
    store.begin()
    store.set("zero", 1)
    store.delete("empty")
    store.rollback()
    assert (store.get("zero"), store.get("empty")) == (0, "")


def test_commit_keeps():
    store = KeyValueStore()
    store.set("k", 1)
    store.begin()
    store.set("k", 2)
    store.set("n", 3)
    store.commit()
    assert (store.get("k"), store.get("n")) == (2, 3)
    assert raises(NoTransaction, store.rollback)
    assert store.get("k") == 2


def test_inner_commit_goes_with_outer_rollback():
    store = KeyValueStore()
    store.set("k", 1)
    store.begin()
    store.begin()
    store.set("k", 2)
    store.set("n", 3)
    store.commit()
    assert (store.get("k"), store.depth) == (2, 1)
    store.rollback()
    assert (store.get("k"), store.keys()) == (1, ["k"])


def test_inner_rollback_keeps_outer_changes():
    store = KeyValueStore()
    store.begin()
    store.set("k", 1)
    store.begin()
    store.set("k", 2)
    store.set("n", 3)
    store.rollback()
    assert (store.get("k"), store.get("n")) == (1, None)
    store.commit()
    assert (store.get("k"), store.depth) == (1, 0)


def test_three_levels():
    store = KeyValueStore()
    store.set("k", 0)
    for value in (1, 2, 3):
        store.begin()
        store.set("k", value)
    store.commit()
    assert store.get("k") == 3
    store.rollback()
    assert store.get("k") == 1
    store.rollback()
    assert store.get("k") == 0


def test_depth():
    store = KeyValueStore()
    assert store.depth == 0
    store.begin()
    store.begin()
    assert store.depth == 2
    store.commit()
    assert store.depth == 1
    store.rollback()
    assert store.depth == 0


def test_no_transaction():
    store = KeyValueStore()
    assert raises(NoTransaction, store.commit)
    assert raises(NoTransaction, store.rollback)
    store.begin()
    store.commit()
    assert raises(NoTransaction, store.commit)
    assert issubclass(NoTransaction, Exception)


def test_failed_delete_in_a_transaction():
    store = KeyValueStore()
    store.set("k", 1)
    store.begin()
    assert raises(KeyError, store.delete, "x")
    assert store.depth == 1
    store.rollback()
    assert store.keys() == ["k"]


def test_transaction_after_a_rollback():
    store = KeyValueStore()
    store.begin()
    store.set("k", 1)
    store.rollback()
    store.begin()
    store.set("k", 2)
    store.commit()
    assert store.get("k") == 2 and store.keys() == ["k"]


def test_against_copies():
    rng = random.Random(44)
    store, states = KeyValueStore(), [{}]
    for _ in range(300):
        action = rng.choice(["set", "set", "delete", "begin", "commit", "rollback"])
        key, value = rng.choice("abcd"), rng.randrange(3)
        if action == "set":
            store.set(key, value)
            states[-1][key] = value
        elif action == "delete" and key in states[-1]:
            store.delete(key)
            del states[-1][key]
        elif action == "begin" and len(states) < 5:
            store.begin()
            states.append(dict(states[-1]))
        elif action in ("commit", "rollback") and len(states) > 1:
            top = states.pop()
            if action == "commit":
                store.commit()
                states[-1] = top
            else:
                store.rollback()
        assert {key: store.get(key) for key in store.keys()} == states[-1]
        assert store.count(1) == list(states[-1].values()).count(1)
