import random


def test_empty():
    trie = Trie()
    assert len(trie) == 0
    assert trie.starting_with("") == []
    assert trie.longest_prefix_of("any") is None
    assert "" not in trie and "a" not in trie


def test_starts_with_words():
    trie = Trie(("road", "roam", "road"))
    assert len(trie) == 2
    assert "road" in trie and "roam" in trie and "roa" not in trie and "roads" not in trie


def test_add_tells_what_is_new():
    trie = Trie(["road"])
    assert trie.add("road") is False
    assert trie.add("roa") is True
    assert trie.add("roads") is True
    assert trie.add("roa") is False
    assert len(trie) == 3


def test_starting_with_in_order():
    trie = Trie(["be", "bat", "b", "bad", "a", "beat", "c"])
    assert trie.starting_with("b") == ["b", "bad", "bat", "be", "beat"]
    assert trie.starting_with("be") == ["be", "beat"]
    assert trie.starting_with("bea") == ["beat"]
    assert trie.starting_with("") == ["a", "b", "bad", "bat", "be", "beat", "c"]


def test_starting_with_nothing_found():
    trie = Trie(["be", "bat"])
    assert trie.starting_with("x") == []
    assert trie.starting_with("bee") == []
    assert trie.starting_with("batch") == []
    assert trie.starting_with("bat") == ["bat"]


def test_case_and_other_characters():
    trie = Trie(["b c", "B", "a", "bé", "b-"])
    assert trie.starting_with("") == ["B", "a", "b c", "b-", "bé"]
    assert "b" not in trie and "A" not in trie
    assert trie.longest_prefix_of("bébé") == "bé"


def test_limit():
    trie = Trie(["ab", "aa", "ac", "a"])
    assert trie.starting_with("a", 1) == ["a"]
    assert trie.starting_with("a", limit=3) == ["a", "aa", "ab"]
    assert trie.starting_with("a", limit=4) == ["a", "aa", "ab", "ac"]
    assert trie.starting_with("a", limit=9) == ["a", "aa", "ab", "ac"]
    assert trie.starting_with("a", limit=0) == []


def test_longest_prefix_of():
    trie = Trie(["in", "inter", "internal"])
    assert trie.longest_prefix_of("internally") == "internal"
    assert trie.longest_prefix_of("internal") == "internal"
    assert trie.longest_prefix_of("interna") == "inter"
    assert trie.longest_prefix_of("int") == "in"
    assert trie.longest_prefix_of("i") is None
    assert trie.longest_prefix_of("outer") is None
    assert trie.longest_prefix_of("") is None


def test_remove():
    trie = Trie(["one", "two"])
    assert trie.remove("one") is True
    assert trie.remove("one") is False
    assert trie.remove("tw") is False
    assert trie.remove("twos") is False
    assert "one" not in trie and "two" in trie
    assert len(trie) == 1
    assert trie.starting_with("") == ["two"]


def test_remove_keeps_longer_words():
    trie = Trie(["art", "arts", "artist"])
    assert trie.remove("art") is True
    assert trie.starting_with("a") == ["artist", "arts"]
    assert trie.longest_prefix_of("arty") is None
    assert trie.add("art") is True


def test_remove_keeps_shorter_words():
    trie = Trie(["art", "arts", "a"])
    assert trie.remove("arts") is True
    assert trie.starting_with("") == ["a", "art"]
    assert trie.longest_prefix_of("arts") == "art"
    assert trie.starting_with("arts") == []


def test_remove_all_and_add_again():
    trie = Trie(["go", "got"])
    assert trie.remove("go") and trie.remove("got")
    assert len(trie) == 0 and trie.starting_with("") == []
    assert trie.add("got") is True
    assert trie.starting_with("g") == ["got"] and len(trie) == 1


def test_empty_word():
    trie = Trie(["x"])
    assert "" not in trie
    assert trie.remove("") is False
    assert trie.add("") is True
    assert "" in trie and len(trie) == 2
    assert trie.starting_with("") == ["", "x"]
    assert trie.starting_with("x") == ["x"]
    assert trie.longest_prefix_of("yes") == ""
    assert trie.longest_prefix_of("") == ""
    assert trie.remove("") is True
    assert trie.longest_prefix_of("yes") is None


def test_result_is_not_the_inside():
    trie = Trie(["p", "q"])
    trie.starting_with("").append("r")
    assert "r" not in trie and trie.starting_with("") == ["p", "q"]


def test_long_word():
    trie = Trie(["z" * 3000, "z" * 2000])
    assert trie.longest_prefix_of("z" * 2500) == "z" * 2000
    assert trie.starting_with("z" * 2001) == ["z" * 3000]
    assert trie.remove("z" * 3000) is True
    assert len(trie) == 1


def test_against_a_set():
    rng = random.Random(27)
    trie, words = Trie(), set()
    for _ in range(200):
        word = "".join(rng.choice("abc") for _ in range(rng.randrange(0, 5)))
        action = rng.randrange(5)
        if action < 2:
            assert trie.add(word) is (word not in words)
            words.add(word)
        elif action == 2:
            assert trie.remove(word) is (word in words)
            words.discard(word)
        elif action == 3:
            expected = sorted(w for w in words if w.startswith(word[:2]))
            assert trie.starting_with(word[:2]) == expected
            assert trie.starting_with(word[:2], 2) == expected[:2]
        else:
            beginnings = [w for w in words if word.startswith(w)]
            assert trie.longest_prefix_of(word) == (max(beginnings, key=len) if beginnings else None)
        assert len(trie) == len(words)
