def test_rollback():
    store = KeyValueStore()
    store.set("a", 1)
    store.begin()
    store.set("a", 2)
    store.begin()
    store.delete("a")
    assert store.get("a") is None
    store.rollback()
    assert store.get("a") == 2
    store.rollback()
    assert store.get("a") == 1


def test_commit():
    store = KeyValueStore()
    store.begin()
    store.set("a", 1)
    store.commit()
    assert (store.get("a"), store.depth) == (1, 0)
