import random


def test_plain():
    assert parse_csv_line("red,green,blue") == ["red", "green", "blue"]


def test_one_field():
    assert parse_csv_line("alone") == ["alone"]
    assert parse_csv_line('"alone, not"') == ["alone, not"]


def test_empty_line():
    assert parse_csv_line("") == [""]
    assert parse_csv_line('""') == [""]


def test_empty_fields():
    assert parse_csv_line(",") == ["", ""]
    assert parse_csv_line(",x,,y,") == ["", "x", "", "y", ""]
    assert parse_csv_line('"",,""') == ["", "", ""]


def test_spaces_are_kept():
    assert parse_csv_line("  a , b,c ") == ["  a ", " b", "c "]


def test_commas_in_quotes():
    assert parse_csv_line('"x,y,z",",",w') == ["x,y,z", ",", "w"]


def test_quote_at_each_place_of_a_quoted_field():
    assert parse_csv_line('"""a"') == ['"a']
    assert parse_csv_line('"a"""') == ['a"']
    assert parse_csv_line('"a""b",c') == ['a"b', "c"]


def test_only_quotes():
    assert parse_csv_line('""""') == ['"']
    assert parse_csv_line('"""""",p') == ['""', "p"]


def test_quote_then_comma_inside():
    assert parse_csv_line('"a"",b",c') == ['a",b', "c"]


def test_newline_in_quotes():
    assert parse_csv_line('"two\nlines",end') == ["two\nlines", "end"]


def test_quote_in_a_plain_field():
    assert parse_csv_line('5" pipe,6""') == ['5" pipe', '6""']
    assert parse_csv_line('k, "l",m') == ["k", ' "l"', "m"]


def test_not_closed():
    for line in ('"', '"abc', 'a,"b""', '"a,b', '"""', 'x,"', ',"x', ',,"'):
        assert raises(ValueError, parse_csv_line, line), line
    assert parse_csv_line('"abc"') == ["abc"]


def test_something_after_the_closing_quote():
    for line in ('"a"b', '"a" ,b', '"a" ', 'x,"y"z,w', '"a" "b"', '""x'):
        assert raises(ValueError, parse_csv_line, line), line
    assert parse_csv_line('"a",b') == ["a", "b"]


def test_round_trip():
    rng = random.Random(13)
    for _ in range(120):
        fields = [
            "".join(rng.choice('a", \n') for _ in range(rng.randrange(0, 5)))
            for _ in range(rng.randrange(1, 6))
        ]
        parts = []
        for field in fields:
            must = field.startswith('"') or "," in field
            if must or rng.random() < 0.5:
                parts.append('"' + field.replace('"', '""') + '"')
            else:
                parts.append(field)
        assert parse_csv_line(",".join(parts)) == fields
