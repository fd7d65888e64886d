def test_starting_with():
    trie = Trie(["tilt", "till", "to"])
    assert trie.add("til") is True
    assert trie.starting_with("til") == ["til", "till", "tilt"]
    assert trie.starting_with("t", limit=2) == ["til", "till"]


def test_in():
    trie = Trie(["tilt"])
    assert "tilt" in trie
    assert "ti" not in trie


def test_longest_prefix_of():
    trie = Trie(["tilt", "til"])
    assert trie.longest_prefix_of("tilting") == "tilt"
