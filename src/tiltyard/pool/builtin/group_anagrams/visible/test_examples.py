def test_two_groups():
    assert group_anagrams(["tea", "bun", "Eat", "nub"]) == [["tea", "Eat"], ["bun", "nub"]]


def test_letters_are_counted():
    assert group_anagrams(["aab", "abb"]) == [["aab"], ["abb"]]


def test_one_word():
    assert group_anagrams(["solo"]) == [["solo"]]
