import random


def reference_answer(text):
    """By rewriting: remove innermost pairs until nothing changes."""
    text = "".join(c for c in text if c in "()[]{}")
    while True:
        shorter = text.replace("()", "").replace("[]", "").replace("{}", "")
        if shorter == text:
            return text == ""
        text = shorter


def test_each_kind():
    assert is_balanced_brackets("()[]{}") is True
    assert is_balanced_brackets("()[]{") is False


def test_nested():
    assert is_balanced_brackets("{[(())]}") is True
    assert is_balanced_brackets("{[(())}]") is False


def test_wrong_kind():
    assert is_balanced_brackets("(]") is False
    assert is_balanced_brackets("{)") is False
    assert is_balanced_brackets("(){}") is True


def test_closed_before_opened():
    assert is_balanced_brackets(")(") is False
    assert is_balanced_brackets("]]") is False
    assert is_balanced_brackets("()()") is True


def test_one_closed_too_many():
    assert is_balanced_brackets("(a))") is False
    assert is_balanced_brackets("((a))") is True


def test_left_open_at_the_end():
    assert is_balanced_brackets("[]{") is False
    assert is_balanced_brackets("[[]") is False
    assert is_balanced_brackets("[[]]") is True


def test_crossed_with_equal_counts():
    assert is_balanced_brackets("{(})") is False
    assert is_balanced_brackets("[{]}[]") is False
    assert is_balanced_brackets("[{}][]") is True


def test_empty_and_without_brackets():
    assert is_balanced_brackets("") is True
    assert is_balanced_brackets("no brackets, <none>") is True
    assert is_balanced_brackets("}") is False


def test_other_characters_are_ignored():
    assert is_balanced_brackets("if (a < b) { c[1] = '>'; }") is True
    assert is_balanced_brackets("if (a < b) { c[1 = '>'; }") is False


def test_quotes_mean_nothing():
    assert is_balanced_brackets("'(' \\)") is True
    assert is_balanced_brackets('"(" \\(') is False


def test_deep():
    assert is_balanced_brackets("([" * 3000 + "])" * 3000) is True
    assert is_balanced_brackets("([" * 3000 + "])" * 2999 + ")]") is False


def test_generated():
    rng = random.Random(8)
    texts = ["".join(rng.choice("()[]{}x") for _ in range(rng.randrange(2, 9))) for _ in range(150)]
    texts += ["".join(rng.choice(["()", "[", "]", "{}", ""]) for _ in range(6)) for _ in range(100)]
    answers = [is_balanced_brackets(text) for text in texts]
    assert answers == [reference_answer(text) for text in texts]
    assert True in answers and False in answers
