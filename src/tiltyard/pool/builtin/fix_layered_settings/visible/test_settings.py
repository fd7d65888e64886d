def test_default_of_one_caller():
    settings = Settings({"size": 3})
    assert settings.get("color", "red") == "red"
    assert settings.get("color") is None


def test_unset_shows_the_layer_below():
    settings = Settings({"size": 3})
    settings.push({"size": 4})
    assert settings.get("size") == 4
    settings.unset("size")
    assert settings.get("size") == 3
