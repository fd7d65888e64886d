def test_twenty_orders_are_two_pages():
    assert Pager(range(20), 10).pages == 2


def test_twenty_one_orders_are_three_pages():
    assert Pager(range(21), 10).pages == 3


def test_label_of_the_last_page():
    assert Pager(range(21), 10).label(3) == "21-21 of 21"
