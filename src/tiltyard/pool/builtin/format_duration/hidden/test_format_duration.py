import random


def test_one_second():
    assert format_duration(1) == "1 second"


def test_seconds_only():
    assert format_duration(59) == "59 seconds"


def test_exactly_one_of_a_unit():
    assert format_duration(60) == "1 minute"
    assert format_duration(3600) == "1 hour"
    assert format_duration(86400) == "1 day"


def test_plural_of_each_unit():
    assert format_duration(120) == "2 minutes"
    assert format_duration(10800) == "3 hours"
    assert format_duration(172800) == "2 days"


def test_just_below_a_unit():
    assert format_duration(3599) == "59 minutes and 59 seconds"
    assert format_duration(86399) == "23 hours, 59 minutes and 59 seconds"


def test_all_four_units():
    assert format_duration(93784) == "1 day, 2 hours, 3 minutes and 4 seconds"


def test_all_four_singular():
    assert format_duration(90061) == "1 day, 1 hour, 1 minute and 1 second"


def test_units_left_out_in_the_middle():
    assert format_duration(3605) == "1 hour and 5 seconds"
    assert format_duration(86401) == "1 day and 1 second"


def test_units_left_out_at_the_end():
    assert format_duration(2 * 86400 + 60) == "2 days and 1 minute"
    assert format_duration(86400 + 7200 + 180) == "1 day, 2 hours and 3 minutes"


def test_many_days():
    assert format_duration(365 * 86400) == "365 days"
    assert format_duration(1000 * 86400 + 3600) == "1000 days and 1 hour"


def test_zero_and_negative():
    assert format_duration(0) == "0 seconds"
    assert raises(ValueError, format_duration, -1)
    assert raises(ValueError, format_duration, -86400)


def test_generated():
    size = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}
    order = list(size)
    rng = random.Random(3)
    for _ in range(80):
        seconds = rng.randrange(1, 10 ** rng.randrange(1, 8))
        parts = format_duration(seconds).replace(" and ", ", ").split(", ")
        total = 0
        names = []
        for part in parts:
            count, name = part.split(" ")
            assert (count == "1") == (not name.endswith("s"))
            names.append(name.rstrip("s"))
            total += int(count) * size[names[-1]]
        assert total == seconds
        assert names == sorted(set(names), key=order.index)
        assert format_duration(seconds).count(" and ") == (1 if len(parts) > 1 else 0)
