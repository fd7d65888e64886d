def test_prices_of_the_report():
    assert parse_amount("19.99") == 1999
    assert parse_amount("4.35") == 435
    assert parse_amount("19.95") == 1995


def test_half_a_cent():
    assert percent_of(250, 5) == 13
    assert percent_of(750, 5) == 38
