def test_least_recently_used_is_dropped():
    cache = LRUCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    assert cache.put("c", 3) == "b"
    assert cache.get("b", -1) == -1


def test_keys():
    cache = LRUCache(3)
    for key in "xyz":
        cache.put(key, key.upper())
    assert cache.keys() == ["z", "y", "x"]
    assert len(cache) == 3
