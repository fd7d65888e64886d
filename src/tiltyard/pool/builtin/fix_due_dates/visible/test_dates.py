from datetime import date


def test_end_of_january():
    got = schedule(date(2023, 1, 31), 4)
    assert got == [date(2023, 1, 31), date(2023, 2, 28), date(2023, 3, 31), date(2023, 4, 30)]


def test_december():
    assert add_months(date(2023, 11, 15), 1) == date(2023, 12, 15)
