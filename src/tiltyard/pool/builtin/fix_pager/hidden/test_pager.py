def test_exact_multiple():
    assert Pager(range(30), 10).pages == 3
    assert Pager("abcdef", 2).pages == 3


def test_one_full_page():
    pager = Pager(["a", "b", "c"], 3)
    assert pager.pages == 1
    assert pager.has_next(1) is False


def test_one_item_a_page():
    pager = Pager("xyz", 1)
    assert pager.pages == 3
    assert [pager.page(n) for n in (1, 2, 3)] == [["x"], ["y"], ["z"]]


def test_not_a_multiple():
    assert Pager(range(25), 10).pages == 3
    assert Pager(range(9), 10).pages == 1
    assert Pager(range(31), 10).pages == 4


def test_no_items_is_one_empty_page():
    pager = Pager([], 5)
    assert pager.pages == 1
    assert pager.page(1) == []
    assert pager.label(1) == "0 of 0"
    assert pager.has_next(1) is False


def test_number_above_the_last_page_of_a_multiple():
    pager = Pager(range(8), 4)
    assert pager.clamp(9) == 2
    assert pager.page(9) == [4, 5, 6, 7]
    assert pager.label(9) == "5-8 of 8"


def test_number_below_one():
    pager = Pager(range(7), 3)
    assert pager.page(0) == [0, 1, 2]
    assert pager.page(-4) == [0, 1, 2]
    assert pager.label(-1) == "1-3 of 7"


def test_no_next_after_the_last_full_page():
    pager = Pager(range(12), 4)
    assert [pager.has_next(n) for n in (1, 2, 3)] == [True, True, False]


def test_label_of_a_short_last_page():
    assert Pager(range(25), 10).label(3) == "21-25 of 25"
    assert Pager(range(3), 10).label(1) == "1-3 of 3"


def test_label_of_full_pages():
    pager = Pager(range(25), 10)
    assert pager.label(1) == "1-10 of 25"
    assert pager.label(2) == "11-20 of 25"
    assert Pager(range(40), 20).label(2) == "21-40 of 40"


def test_links_of_a_multiple():
    assert Pager(range(100), 10).links(5) == [1, None, 4, 5, 6, None, 10]
    assert Pager(range(100), 10).links(10) == [1, None, 9, 10]


def test_links_otherwise():
    assert Pager(range(95), 10).links(1) == [1, 2, None, 10]
    assert Pager(range(45), 10).links(3, around=2) == [1, 2, 3, 4, 5]


def test_pages_hold_all_items_in_order():
    for count in range(0, 14):
        pager = Pager(range(count), 4)
        got = [x for n in range(1, pager.pages + 1) for x in pager.page(n)]
        assert got == list(range(count))


def test_per_page_must_be_positive():
    raises(ValueError, Pager, [1], 0)


def test_ten_a_page_if_nothing_else_is_said():
    pager = Pager(range(21))
    assert pager.pages == 3
    assert pager.label(1) == "1-10 of 21"
