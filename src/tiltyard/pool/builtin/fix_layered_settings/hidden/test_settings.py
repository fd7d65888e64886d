def test_each_caller_has_its_own_default():
    settings = Settings()
    assert settings.get("k", 1) == 1
    assert settings.get("k", 2) == 2
    assert settings.get("k") is None


def test_default_then_set():
    settings = Settings()
    settings.get("k", "x")
    settings.set("k", "y")
    assert settings.get("k", "x") == "y"


def test_value_none_is_a_value():
    settings = Settings({"k": None})
    assert settings.get("k", "x") is None
    assert settings.has("k") is True


def test_has_does_not_spoil_get():
    settings = Settings({"a": 1})
    assert settings.has("b") is False
    assert settings.get("b", 5) == 5
    assert settings.has("b") is False
    assert settings.has("a") is True


def test_get_with_default_does_not_make_a_key():
    settings = Settings()
    settings.get("b", 5)
    assert settings.has("b") is False


def test_unset_in_a_single_layer():
    settings = Settings({"a": 1})
    assert settings.get("a") == 1
    settings.unset("a")
    assert settings.get("a") is None
    assert settings.has("a") is False


def test_unset_only_looks_at_the_top():
    settings = Settings({"a": 1})
    settings.push({"b": 2})
    assert settings.get("a") == 1
    raises(KeyError, settings.unset, "a")
    assert settings.get("a") == 1


def test_pop_shows_the_layer_below():
    settings = Settings({"a": 1, "b": 1})
    settings.push({"a": 2, "c": 2})
    assert [settings.get(k) for k in "abc"] == [2, 1, 2]
    assert settings.pop() == {"a": 2, "c": 2}
    assert [settings.get(k) for k in "abc"] == [1, 1, None]
    raises(IndexError, settings.pop)


def test_pop_of_what_was_set_in_the_layer():
    settings = Settings({"a": 1})
    settings.push({})
    settings.set("a", 7)
    assert settings.get("a") == 7
    settings.pop()
    assert settings.get("a") == 1


def test_push_hides_the_layer_below():
    settings = Settings({"a": 1})
    assert settings.get("a") == 1
    layer = {"a": 2}
    settings.push(layer)
    layer["a"] = 3
    assert settings.get("a") == 2


def test_found_keys_are_not_searched_again():
    settings = Settings({"a": 1, "b": None})
    for _ in range(5):
        settings.get("a")
        settings.get("b", 3)
    assert settings.lookups == 2


def test_set_costs_one_search_at_most():
    settings = Settings({"a": 1})
    settings.push({"b": 2})
    settings.get("a")
    settings.get("b")
    before = settings.lookups
    settings.set("b", 3)
    assert settings.get("b") == 3
    assert settings.lookups <= before + 1


def test_changed_knows_new_keys():
    settings = Settings({"a": 1, "b": 2})
    settings.push({"a": 5, "b": 2, "z": 0})
    settings.push({"n": None})
    assert settings.changed() == ["a", "n", "z"]
    settings.pop()
    assert settings.changed() == ["a", "z"]
    settings.pop()
    assert settings.changed() == []


def test_changed_without_layers():
    settings = Settings({"a": 1})
    settings.set("a", 2)
    assert settings.changed() == []


def test_changed_is_sorted():
    settings = Settings({"m": 1})
    settings.push({"z": 1, "a": 1, "q": 1})
    settings.push({"y": 1, "b": 1, "m": 2})
    assert settings.changed() == ["a", "b", "m", "q", "y", "z"]
