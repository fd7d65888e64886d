def test_last_field_empty():
    assert read("a,b,\n") == [["a", "b", ""]]
    assert read("a,b,") == [["a", "b", ""]]


def test_quotation_at_the_end_of_a_field():
    assert read('"He said ""yes""",x\n') == [['He said "yes"', "x"]]


def test_semicolons():
    assert write([["x;y", "z"]], delimiter=";") == '"x;y";z\n'
