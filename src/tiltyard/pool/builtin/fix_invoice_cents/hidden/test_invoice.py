def test_many_prices_up_to_a_hundred():
    wrong = [c for c in range(0, 10000, 7) if parse_amount(f"{c // 100}.{c % 100:02d}") != c]
    assert wrong == []


def test_one_decimal_and_none():
    assert parse_amount("12") == 1200
    assert parse_amount("12.5") == 1250
    assert parse_amount("0.1") == 10
    assert parse_amount("8.2") == 820


def test_signs():
    assert parse_amount("-0.05") == -5
    assert parse_amount("-1.15") == -115
    assert parse_amount("+2.30") == 230
    assert parse_amount("-0.29") == -29


def test_white_space_is_ignored():
    assert parse_amount("  7.01\n") == 701


def test_large_amount():
    assert parse_amount("123456789012345678.91") == 12345678901234567891


def test_bad_amounts():
    for text in ("", "1.234", "1,50", "abc", "1.", ".5", "--1", "1e3", "12 34"):
        raises(ValueError, parse_amount, text)


def test_half_a_cent_up():
    assert percent_of(50, 1) == 1
    assert percent_of(450, 1) == 5
    assert percent_of(650, 1) == 7
    assert percent_of(10, 5) == 1


def test_half_a_cent_of_credit_notes():
    assert percent_of(-250, 5) == -13
    assert percent_of(-50, 1) == -1
    assert percent_of(-450, 1) == -5
    assert percent_of(-150, 1) == -2


def test_less_and_more_than_half():
    assert percent_of(249, 5) == 12
    assert percent_of(251, 5) == 13
    assert percent_of(-249, 5) == -12
    assert percent_of(1000, 19) == 190
    assert percent_of(0, 19) == 0


def test_text_percentages():
    assert percent_of(1000, "7.5") == 75
    assert percent_of(100, "2.5") == 3
    assert percent_of(100, "0.5") == 1
    assert percent_of(100, "0.49") == 0
    assert percent_of(2000, "0.725") == 15


def test_percentage_that_binary_floats_lack():
    assert percent_of(50, "8.1") == 4
    assert percent_of(500, "1.1") == 6
    assert percent_of(500, "2.3") == 12
    assert percent_of(11500, "0.7") == 81


def test_large_sums_are_exact():
    assert percent_of(10**20 + 100, 1) == 10**18 + 1
    assert percent_of(12345678901234567800, 19) == 2345678991234567882
    assert percent_of(10**40 + 50, 1) == 10**38 + 1


def test_line_totals():
    assert line_total("19.99", 3) == 5997
    assert line_total("4.35", 2, 50) == 435
    assert line_total("0.50", 1, 5) == 47
    assert line_total("9.70", 1, "7.5") == 897


def test_split():
    assert split(100, 3) == [34, 33, 33]
    assert split(2, 4) == [1, 1, 0, 0]
    assert split(0, 2) == [0, 0]


def test_invoice_sums_before_the_tax():
    got = invoice([("0.10", 1, 0), ("0.10", 1, 0), ("2.30", 1, 0)], 5)
    assert got == {"net": 250, "tax": 13, "gross": 263}


def test_invoice_with_discounts():
    got = invoice([("19.99", 2, 0), ("4.35", 1, 10)], "7.7")
    assert got == {"net": 4389, "tax": 338, "gross": 4727}


def test_empty_invoice():
    assert invoice([], 19) == {"net": 0, "tax": 0, "gross": 0}


def test_cents_are_ints():
    found = invoice([("1.25", 2, "10")], "7.5")
    assert found == {"net": 225, "tax": 17, "gross": 242}
    assert [type(cents) for cents in found.values()] == [int, int, int]
    assert type(percent_of(-250, 5)) is int
