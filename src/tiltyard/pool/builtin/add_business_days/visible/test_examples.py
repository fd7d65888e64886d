def test_over_a_weekend():
    assert add_business_days("2026-11-06", 1) == "2026-11-09"


def test_backwards():
    assert add_business_days("2026-11-09", -1) == "2026-11-06"


def test_holiday():
    assert add_business_days("2026-12-24", 1, ["2026-12-25"]) == "2026-12-28"
