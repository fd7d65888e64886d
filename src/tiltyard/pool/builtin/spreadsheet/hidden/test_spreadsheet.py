def test_numbers():
    sheet = filled(A1=3, B20=-8, Z9999=0)
    assert (sheet.get("A1"), sheet.get("B20"), sheet.get("Z9999")) == (3, -8, 0)
    assert sheet.get("C3") == 0


def test_content():
    sheet = filled(A1=3, A2="= A1 +1", A3=0)
    assert [sheet.content(cell) for cell in ("A1", "A2", "A3", "A4")] == [3, "= A1 +1", 0, None]
    sheet.set("A2", -1)
    assert sheet.content("A2") == -1


def test_constant_formulas():
    assert value_of("=7") == 7
    assert value_of("=007") == 7
    assert value_of("=2+3*4") == 14
    assert value_of("=2*3+4") == 10
    assert value_of("=10-4-3") == 3
    assert value_of("=10-2*3-1*1+5") == 8
    assert value_of("=2*3*4-1") == 23


def test_formulas_with_cells():
    assert value_of("=A1-B2*A1", A1=5, B2=-3) == 20
    assert value_of("=A1*A1*A1", A1=-2) == -8
    assert value_of("=B7", B7=12) == 12
    assert value_of("=A1+Q5*3-2", A1=1) == -1


def test_spaces():
    assert value_of("=  A1  *  2 +   B1 ", A1=4, B1=1) == 9
    assert value_of("= 5 ") == 5


def test_through_other_cells():
    sheet = filled(A1=2, A2="=A1*A1", A3="=A2*A2", A4="=A3-A2-A1")
    assert sheet.get("A4") == 10
    sheet.set("A1", 3)
    assert (sheet.get("A2"), sheet.get("A3"), sheet.get("A4")) == (9, 81, 69)
    sheet.set("A2", 1)
    assert (sheet.get("A3"), sheet.get("A4")) == (1, -3)


def test_formula_before_its_cells():
    sheet = filled(C1="=B1+1", B1="=A1+1")
    assert sheet.get("C1") == 2
    sheet.set("A1", 40)
    assert sheet.get("C1") == 42


def test_clear():
    sheet = filled(A1=5, B1="=A1+1", C1="=B1*2")
    sheet.clear("A1")
    assert (sheet.get("A1"), sheet.get("B1"), sheet.content("A1")) == (0, 1, None)
    sheet.clear("B1")
    assert (sheet.get("B1"), sheet.get("C1")) == (0, 0)
    assert sheet.dependents("A1") == [] and sheet.dependents("B1") == ["C1"]
    sheet.clear("Y7")
    sheet.set("A1", "=C1+1")
    assert sheet.get("A1") == 1


def test_bad_names():
    sheet = filled(A1=1)
    for name in (
        "a1",
        "A0",
        "A01",
        "AA1",
        "A10000",
        "A",
        "1",
        "",
        "A-1",
        "A1 ",
        " A1",
        "A1\n",
        "Ä1",
        "A1B",
        "A²",
    ):
        assert raises(ValueError, sheet.set, name, 1), name
        assert raises(ValueError, sheet.get, name), name
        assert raises(ValueError, sheet.content, name), name
        assert raises(ValueError, sheet.clear, name), name
        assert raises(ValueError, sheet.dependents, name), name
    assert sheet.get("A1") == 1


def test_malformed_formulas():
    sheet = filled(A1=1, B1=6)
    for formula in (
        "", "5", "A1", " =A1", "=", "= ", "=+1", "=-A1", "=1+", "=1++2", "=1+-2", "=*2", "=2*", "=2**3",
        "=A1 B1", "=1 2", "=(A1)", "=A1/2", "=2.5", "=1+*2", "=A1,B1", "=2A1", "==1", "=A1+\n1", "=x", "=-1",
    ):  # fmt: skip
        assert raises(ValueError, sheet.set, "B1", formula), formula
        assert raises(ValueError, sheet.set, "C1", formula), formula
    assert (sheet.get("B1"), sheet.content("B1"), sheet.content("C1")) == (6, 6, None)


def test_bad_names_in_formulas():
    sheet = filled(B1="=A1")
    for formula in ("=a1", "=A0", "=A01", "=AA1", "=A10000+1", "=A", "=2*B", "=A 1"):
        assert raises(ValueError, sheet.set, "B1", formula), formula
    assert sheet.content("B1") == "=A1"


def test_depends_on_itself_directly():
    sheet = filled(A1=4)
    assert raises(ValueError, sheet.set, "A1", "=A1")
    assert raises(ValueError, sheet.set, "A1", "=2+A1*0")
    assert raises(ValueError, sheet.set, "B1", "=B1+1")
    assert (sheet.get("A1"), sheet.content("A1"), sheet.content("B1")) == (4, 4, None)


def test_circle_through_others():
    sheet = filled(A1=1, B1="=A1+1", C1="=B1+1", D1="=C1+A1")
    for formula in ("=D1", "=C1", "=B1*0", "=Z5+D1"):
        assert raises(ValueError, sheet.set, "A1", formula), formula
    assert raises(ValueError, sheet.set, "B1", "=D1")
    assert sheet.get("D1") == 4
    assert sheet.content("B1") == "=A1+1"
    sheet.set("B1", "=A1+10")
    assert sheet.get("D1") == 13


def test_circle_is_open_again_after_a_change():
    sheet = filled(A1="=B1", B1="=C1")
    assert raises(ValueError, sheet.set, "C1", "=A1")
    sheet.set("A1", 5)
    sheet.set("C1", "=A1")
    assert sheet.get("B1") == 5
    assert raises(ValueError, sheet.set, "A1", "=B1")


def test_two_ways_are_no_circle():
    sheet = filled(A1=3, B1="=A1", C1="=A1", D1="=B1*C1+A1")
    assert sheet.get("D1") == 12
    assert sheet.dependents("A1") == ["B1", "C1", "D1"]


def test_dependents():
    sheet = filled(B1="=A1", C1="=B1", A2="=C1+A1", A10="=B1*2", B3=5)
    assert sheet.dependents("A1") == ["A2", "A10", "B1", "C1"]
    assert sheet.dependents("B1") == ["A2", "A10", "C1"]
    assert sheet.dependents("C1") == ["A2"]
    assert sheet.dependents("A2") == [] and sheet.dependents("Q1") == []
    sheet.set("C1", 1)
    assert sheet.dependents("A1") == ["A2", "A10", "B1"]


def test_failed_set_leaves_no_dependency():
    sheet = filled(A1=1, B1="=A1")
    assert raises(ValueError, sheet.set, "A1", "=C1+B1")
    assert raises(ValueError, sheet.set, "B1", "=D1+")
    assert sheet.dependents("C1") == [] and sheet.dependents("D1") == []
    assert sheet.dependents("A1") == ["B1"]
    sheet.set("C1", "=A1")
    assert sheet.get("C1") == 1


def test_long_chain():
    sheet = filled(A1=1)
    for row in range(2, 301):
        sheet.set(f"A{row}", f"=A{row - 1}+1")
    assert sheet.get("A300") == 300
    assert raises(ValueError, sheet.set, "A1", "=A300")
    sheet.set("A1", 11)
    assert sheet.get("A300") == 310
    assert len(sheet.dependents("A1")) == 299


def test_very_long_chain():
    sheet = Spreadsheet()
    for row in range(2000, 1, -1):
        sheet.set(f"A{row}", f"=A{row - 1}+1")
    sheet.set("A1", 5)
    assert sheet.get("A2000") == 2004


def test_very_many_ways():
    sheet = filled(A1=1)
    for row in range(2, 52):
        sheet.set(f"A{row}", f"=A{row - 1}+A{row - 1}")
    assert sheet.get("A51") == 2**50


def test_very_many_ways_through_two_columns():
    sheet = filled(A1=1, B1=1)
    for row in range(2, 42):
        sheet.set(f"A{row}", f"=A{row - 1}+B{row - 1}")
        sheet.set(f"B{row}", f"=B{row - 1}+A{row - 1}")
    assert sheet.get("B41") == 2**40
    assert len(sheet.dependents("A1")) == 80
    assert raises(ValueError, sheet.set, "A1", "=B41")


def test_large_values():
    sheet = filled(A1=10**20, A2="=A1*A1-1")
    assert sheet.get("A2") == 10**40 - 1


def test_sheets_are_independent():
    one, two = filled(A1=1), filled(B1="=A1")
    assert (one.get("A1"), two.get("B1"), two.get("A1")) == (1, 0, 0)
