import random


def test_interleaved_groups():
    words = ["listen", "stone", "silent", "notes", "enlist", "onset"]
    assert group_anagrams(words) == [["listen", "silent", "enlist"], ["stone", "notes", "onset"]]


def test_groups_in_order_of_first_word():
    assert group_anagrams(["zz", "aa", "mm"]) == [["zz"], ["aa"], ["mm"]]


def test_order_inside_a_group():
    assert group_anagrams(["cba", "bca", "abc"]) == [["cba", "bca", "abc"]]


def test_case_is_ignored():
    assert group_anagrams(["Dusty", "STUDY", "x"]) == [["Dusty", "STUDY"], ["x"]]


def test_words_keep_their_case():
    assert group_anagrams(["ON", "No", "oN"]) == [["ON", "No", "oN"]]


def test_counts_matter():
    assert group_anagrams(["noon", "no", "onno"]) == [["noon", "onno"], ["no"]]


def test_same_letters_other_counts():
    assert group_anagrams(["eel", "lle", "lee"]) == [["eel", "lee"], ["lle"]]


def test_same_sum_of_codes():
    assert group_anagrams(["ad", "bc", "da"]) == [["ad", "da"], ["bc"]]


def test_repeated_words():
    assert group_anagrams(["pot", "top", "pot"]) == [["pot", "top", "pot"]]


def test_empty_strings():
    assert group_anagrams(["", "a", ""]) == [["", ""], ["a"]]


def test_empty_list():
    assert group_anagrams([]) == []
    assert group_anagrams([""]) == [[""]]


def test_spaces_and_digits_are_characters():
    assert group_anagrams(["1 2", "12", "2 1", "21"]) == [["1 2", "2 1"], ["12", "21"]]


def test_argument_is_not_changed():
    words = ["wed", "Dew", "owl", "low"]
    assert group_anagrams(words) == [["wed", "Dew"], ["owl", "low"]]
    assert words == ["wed", "Dew", "owl", "low"]


def test_generated():
    rng = random.Random(21)
    words = ["".join(rng.choice("abAB") for _ in range(rng.randrange(1, 5))) for _ in range(120)]
    expected = []
    for word in words:
        for group in expected:
            head = group[0].lower()
            low = word.lower()
            if len(head) == len(low) and all(head.count(c) == low.count(c) for c in head):
                group.append(word)
                break
        else:
            expected.append([word])
    assert group_anagrams(words) == expected
