import random


def test_new_cache():
    cache = LRUCache(3)
    assert len(cache) == 0
    assert cache.keys() == []
    assert cache.get("k") is None
    assert cache.get("k", 7) == 7
    assert "k" not in cache


def test_get_and_put():
    cache = filled(3, ["k", "m"])
    assert (cache.get("k"), cache.get("m")) == ("kk", "mm")
    assert len(cache) == 2
    assert "k" in cache and "n" not in cache


def test_put_returns_what_was_dropped():
    cache = LRUCache(2)
    assert [cache.put(n, n) for n in (1, 2, 3, 4)] == [None, None, 1, 2]
    assert cache.keys() == [4, 3]


def test_never_more_than_capacity():
    cache = filled(3, "abcdefg")
    assert len(cache) == 3
    assert cache.keys() == ["g", "f", "e"]
    assert cache.get("d") is None


def test_get_counts_as_use():
    cache = filled(3, "abc")
    assert cache.get("a") == "aa"
    assert cache.keys() == ["a", "c", "b"]
    assert cache.put("d", 0) == "b"
    assert cache.get("a") == "aa"


def test_put_of_a_known_key_counts_as_use():
    cache = filled(3, "abc")
    assert cache.put("a", "new") is None
    assert cache.keys() == ["a", "c", "b"]
    assert cache.get("a") == "new"
    assert cache.put("d", 0) == "b"


def test_put_of_a_known_key_drops_nothing():
    cache = filled(2, "ab")
    assert cache.put("b", 1) is None
    assert cache.put("b", 2) is None
    assert len(cache) == 2
    assert (cache.get("a"), cache.get("b")) == ("aa", 2)


def test_in_is_no_use():
    cache = filled(2, "ab")
    assert "a" in cache
    assert cache.put("c", 0) == "a"
    assert "a" not in cache


def test_keys_and_len_are_no_use():
    cache = filled(2, "ab")
    assert cache.keys() == ["b", "a"]
    assert len(cache) == 2
    assert cache.keys() == ["b", "a"]
    assert cache.put("c", 0) == "a"


def test_missed_get_changes_nothing():
    cache = filled(2, "ab")
    assert cache.get("z", "none") == "none"
    assert "z" not in cache
    assert cache.keys() == ["b", "a"]


def test_none_is_a_value():
    cache = LRUCache(2)
    cache.put("a", None)
    cache.put("b", 0)
    assert cache.get("a", "default") is None
    assert "a" in cache
    assert cache.put("c", 1) == "b"


def test_delete():
    cache = filled(2, "ab")
    cache.delete("b")
    assert "b" not in cache and len(cache) == 1
    assert cache.put("c", 1) is None
    assert cache.keys() == ["c", "a"]
    assert cache.put("d", 1) == "a"


def test_delete_what_is_not_there():
    cache = filled(1, "ab")
    assert raises(KeyError, cache.delete, "a")
    cache.delete("b")
    assert raises(KeyError, cache.delete, "b")
    assert len(cache) == 0


def test_capacity_one():
    cache = filled(1, "a")
    assert cache.put("b", 5) == "a"
    assert cache.put("b", 6) is None
    assert cache.get("b") == 6


def test_bad_capacity():
    assert raises(ValueError, LRUCache, 0)
    assert raises(ValueError, LRUCache, -1)
    assert len(LRUCache(1)) == 0


def test_kinds_of_keys():
    cache = LRUCache(3)
    for key in (1, "1", (1, "1")):
        cache.put(key, [key])
    assert [cache.get(key) for key in (1, "1", (1, "1"))] == [[1], ["1"], [(1, "1")]]
    assert cache.put(0, 0) == 1


def test_caches_are_independent():
    one, two = filled(2, "a"), filled(2, "b")
    assert one.keys() == ["a"] and two.keys() == ["b"]


def test_against_a_model():
    rng = random.Random(1)
    for capacity in (1, 2, 4):
        cache = LRUCache(capacity)
        model = []  # (key, value), most recently used first
        for n in range(100):
            key = rng.choice("abcdef")
            found = [entry for entry in model if entry[0] == key]
            action = rng.choice(["get", "put", "put", "in", "delete"])
            if action == "get":
                assert cache.get(key, "-") == (found[0][1] if found else "-")
                if found:
                    model.remove(found[0])
                    model.insert(0, found[0])
            elif action == "put":
                expected = None
                if found:
                    model.remove(found[0])
                elif len(model) == capacity:
                    expected = model.pop()[0]
                model.insert(0, (key, n))
                assert cache.put(key, n) == expected
            elif action == "in":
                assert (key in cache) is bool(found)
            elif found:
                model.remove(found[0])
                cache.delete(key)
            assert cache.keys() == [key for key, _ in model]
