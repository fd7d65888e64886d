def test_plain_and_quoted():
    assert parse_csv_line('a,b c,"d,e"') == ["a", "b c", "d,e"]


def test_doubled_quotes():
    assert parse_csv_line('"say ""hi""",1') == ['say "hi"', "1"]


def test_empty_field_at_the_end():
    assert parse_csv_line("a,") == ["a", ""]
