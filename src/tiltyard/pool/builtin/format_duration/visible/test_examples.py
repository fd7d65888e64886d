def test_two_units():
    assert format_duration(62) == "1 minute and 2 seconds"


def test_three_units():
    assert format_duration(3662) == "1 hour, 1 minute and 2 seconds"


def test_zero():
    assert format_duration(0) == "0 seconds"
