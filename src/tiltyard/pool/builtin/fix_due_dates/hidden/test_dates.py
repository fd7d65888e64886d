from datetime import date, timedelta


def test_schedule_keeps_the_day():
    got = schedule(date(2024, 1, 30), 5)
    assert got == [date(2024, 1, 30), date(2024, 2, 29), date(2024, 3, 30), date(2024, 4, 30), date(2024, 5, 30)]


def test_schedule_every_three_months():
    got = schedule(date(2022, 8, 31), 6, every=3)
    expected = [(2022, 8, 31), (2022, 11, 30), (2023, 2, 28), (2023, 5, 31), (2023, 8, 31), (2023, 11, 30)]
    assert got == [date(*d) for d in expected]


def test_schedule_of_a_leap_day():
    got = schedule(date(2020, 2, 29), 5, every=12)
    assert got == [date(2020, 2, 29), date(2021, 2, 28), date(2022, 2, 28), date(2023, 2, 28), date(2024, 2, 29)]


def test_schedule_starting_at_the_end_of_a_short_month():
    assert schedule(date(2023, 2, 28), 3) == [date(2023, 2, 28), date(2023, 3, 28), date(2023, 4, 28)]


def test_short_schedules():
    assert schedule(date(2023, 5, 5), 0) == []
    assert schedule(date(2023, 5, 31), 1) == [date(2023, 5, 31)]


def test_into_december():
    assert add_months(date(2021, 10, 31), 2) == date(2021, 12, 31)
    assert add_months(date(2021, 1, 5), 11) == date(2021, 12, 5)
    assert add_months(date(2021, 12, 5), 0) == date(2021, 12, 5)


def test_from_december():
    assert add_months(date(2021, 12, 31), 2) == date(2022, 2, 28)
    assert add_months(date(2021, 12, 1), 12) == date(2022, 12, 1)


def test_months_back():
    assert add_months(date(2022, 3, 31), -1) == date(2022, 2, 28)
    assert add_months(date(2022, 1, 15), -1) == date(2021, 12, 15)
    assert add_months(date(2022, 1, 15), -13) == date(2020, 12, 15)
    assert add_months(date(2022, 6, 30), -18) == date(2020, 12, 30)


def test_many_months():
    assert add_months(date(2000, 2, 29), 1200) == date(2100, 2, 28)
    assert add_months(date(2000, 5, 17), 25) == date(2002, 6, 17)


def test_months_within_a_year():
    assert add_months(date(2023, 1, 31), 1) == date(2023, 2, 28)
    assert add_months(date(2023, 3, 14), 5) == date(2023, 8, 14)


def test_month_lengths_of_centuries():
    assert month_length(1900, 2) == 28
    assert month_length(2100, 2) == 28
    assert month_length(2000, 2) == 29
    assert month_length(2024, 2) == 29
    assert month_length(2023, 2) == 28


def test_overdue_in_centuries():
    assert days_overdue(date(1900, 2, 1), date(1900, 3, 1)) == 28
    assert days_overdue(date(2100, 2, 28), date(2100, 3, 2)) == 2
    assert days_overdue(date(2000, 2, 28), date(2000, 3, 1)) == 2
    assert days_overdue(date(1899, 12, 31), date(1901, 1, 1)) == 366


def test_overdue_agrees_with_the_calendar():
    day = date(2023, 12, 28)
    for n in range(0, 800, 37):
        assert days_overdue(day, day + timedelta(days=n)) == n


def test_overdue_with_grace():
    assert days_overdue(date(2023, 5, 1), date(2023, 5, 11), grace=4) == 6
    assert days_overdue(date(2023, 5, 1), date(2023, 5, 4), grace=4) == 0
    assert days_overdue(date(2023, 5, 10), date(2023, 5, 1)) == 0


def test_next_due():
    assert next_due(date(2023, 1, 31), date(2023, 3, 29)) == date(2023, 3, 31)
    assert next_due(date(2023, 1, 31), date(2023, 2, 28)) == date(2023, 2, 28)
    assert next_due(date(2023, 1, 31), date(2022, 1, 1)) == date(2023, 1, 31)
    assert next_due(date(2023, 10, 15), date(2023, 11, 16)) == date(2023, 12, 15)
