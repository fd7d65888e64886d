import random
from datetime import date, timedelta


def test_inside_a_week():
    assert add_business_days("2026-11-02", 3) == "2026-11-05"


def test_whole_weeks():
    assert add_business_days("2026-11-04", 5) == "2026-11-11"
    assert add_business_days("2026-11-04", -10) == "2026-10-21"


def test_from_a_weekend():
    assert add_business_days("2026-11-07", 1) == "2026-11-09"
    assert add_business_days("2026-11-08", 1) == "2026-11-09"
    assert add_business_days("2026-11-08", 2) == "2026-11-10"


def test_backwards_from_a_weekend():
    assert add_business_days("2026-11-08", -1) == "2026-11-06"
    assert add_business_days("2026-11-07", -2) == "2026-11-05"


def test_zero_on_a_working_day():
    assert add_business_days("2026-11-05", 0) == "2026-11-05"
    assert add_business_days("2026-11-05", 1) == "2026-11-06"


def test_zero_on_a_free_day():
    assert add_business_days("2026-11-08", 0) == "2026-11-09"
    assert add_business_days("2026-11-05", 0, ["2026-11-05", "2026-11-06"]) == "2026-11-09"


def test_holidays_on_the_way():
    assert add_business_days("2026-05-12", 4, ["2026-05-14", "2026-05-15"]) == "2026-05-20"


def test_several_holidays_backwards():
    assert add_business_days("2027-01-04", -2, ("2027-01-01", "2026-12-25", "2026-12-31")) == "2026-12-29"


def test_start_is_a_holiday():
    assert add_business_days("2026-11-05", 1, ["2026-11-05"]) == "2026-11-06"
    assert add_business_days("2026-11-05", -1, ["2026-11-05"]) == "2026-11-04"


def test_target_is_a_holiday():
    assert add_business_days("2026-06-01", 2, ["2026-06-03"]) == "2026-06-04"


def test_holidays_twice_and_on_weekends():
    holidays = ["2026-11-14", "2026-11-12", "2026-11-12", "2026-11-15"]
    assert add_business_days("2026-11-11", 1, holidays) == "2026-11-13"
    assert add_business_days("2026-11-11", 2, holidays) == "2026-11-16"


def test_leap_day():
    assert add_business_days("2028-02-28", 1) == "2028-02-29"
    assert add_business_days("2027-02-26", 1) == "2027-03-01"


def test_over_the_year_end():
    assert add_business_days("2025-12-31", 2) == "2026-01-02"
    assert add_business_days("2026-01-01", -1) == "2025-12-31"


def test_bad_dates():
    assert raises(ValueError, add_business_days, "2026-02-29", 1)
    assert raises(ValueError, add_business_days, "2026-13-01", 0)
    assert raises(ValueError, add_business_days, "2026-11-02", 1, ["2026-11-31"])
    assert add_business_days("2026-11-02", 1, ["2026-11-30"]) == "2026-11-03"


def test_far():
    assert add_business_days("2026-11-02", 1000) == "2030-09-02"
    assert add_business_days("2030-09-02", -1000) == "2026-11-02"


def test_generated():
    rng = random.Random(77)
    base = date(2026, 1, 1)
    for _ in range(60):
        holidays = [(base + timedelta(rng.randrange(0, 90))).isoformat() for _ in range(12)]
        start = base + timedelta(rng.randrange(30, 60))
        days = rng.choice([-9, -6, -2, -1, 1, 2, 3, 7, 12])
        result = date.fromisoformat(add_business_days(start.isoformat(), days, holidays))
        low, high = sorted((start, result))
        working = [
            low + timedelta(n)
            for n in range((high - low).days + 1)
            if (low + timedelta(n)).weekday() < 5 and (low + timedelta(n)).isoformat() not in holidays
        ]
        assert result in working
        assert (result > start) == (days > 0)
        assert len([d for d in working if d != start]) == abs(days)
