def test_trailing_delimiter_at_the_end_of_the_text():
    assert read(",") == [["", ""]]
    assert read("1,2\n3,") == [["1", "2"], ["3", ""]]
    assert read(";;", ";") == [["", "", ""]]


def test_trailing_delimiter_before_a_newline():
    assert read("a,\r\nb,c\r\n") == [["a", ""], ["b", "c"]]
    assert read("a,\nb\n") == [["a", ""], ["b"]]


def test_doubled_quotes():
    assert read('""""') == [['"']]
    assert read('"a""",b') == [['a"', "b"]]
    assert read('"a""b"') == [['a"b']]
    assert read('"""a"""\n"b"\n') == [['"a"'], ["b"]]
    assert read('"""",""""\n') == [['"', '"']]


def test_quoted_then_quoted():
    assert read('"a","b"\n"c","d"') == [["a", "b"], ["c", "d"]]
    assert read('"","",x') == [["", "", "x"]]


def test_quoted_field_before_a_quotation_in_the_next_row():
    assert read('a,"b"\n"c",d\n') == [["a", "b"], ["c", "d"]]


def test_quoted_empty_last_row():
    assert read('a\n""') == [["a"], [""]]
    assert read('""') == [[""]]
    assert read('a\n""\n') == [["a"], [""]]


def test_empty_lines():
    assert read("a\n\nb\n") == [["a"], [""], ["b"]]
    assert read("\n") == [[""]]
    assert read("a\n\n") == [["a"], [""]]
    assert read("a\r\n\r\n") == [["a"], [""]]


def test_empty_text():
    assert read("") == []


def test_newlines_and_delimiters_in_quotations():
    assert read('"a,b","c\nd","e\r\nf"\r\nx,y,z') == [["a,b", "c\nd", "e\r\nf"], ["x", "y", "z"]]


def test_quotes_inside_plain_fields():
    assert read('5" disk,a"b"c\n') == [['5" disk', 'a"b"c']]
    assert read(' "a"\n') == [[' "a"']]


def test_carriage_return_alone_is_an_ordinary_character():
    assert read("a\rb,c\n") == [["a\rb", "c"]]


def test_unclosed_quotation():
    for text in ('"', '"abc', 'a,"b\nc,d\n', '"a""', 'x\n"y""'):
        raises(FormatError, read, text)


def test_rest_after_a_quotation():
    for text in ('"a"b', '"a" ,b', 'x,"a";y', '"a"\rb'):
        raises(FormatError, read, text)


def test_write_quotes_what_needs_it():
    assert write([["a", "b,c", 'd"e', "f\ng", "h\ri"]]) == 'a,"b,c","d""e","f\ng","h\ri"\n'


def test_write_quotes_nothing_else():
    assert write([["a;b", "c d", ""], [""]]) == "a;b,c d,\n\n"
    assert write([["a,b", "c"]], delimiter=";") == "a,b;c\n"
    assert write([["a,b", "c\td"]], delimiter="\t") == 'a,b\t"c\td"\n'
    assert write([]) == ""


def test_write_refuses_rows_without_fields():
    raises(ValueError, write, [["a"], []])


def test_round_trips():
    rows = [["", ""], [""], ['"'], ['""', "x"], ["a\r\nb", ";", "|"], ["end\n", '"\n"', ""], ["é,ü"], [""]]
    for delimiter in ",;|\t":
        assert read(write(rows, delimiter), delimiter) == rows
