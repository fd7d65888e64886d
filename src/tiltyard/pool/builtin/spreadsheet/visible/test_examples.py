def test_recalculates():
    sheet = Spreadsheet()
    sheet.set("A1", 5)
    sheet.set("B1", "= A1 * 2 + C9")
    assert sheet.get("B1") == 10
    sheet.set("A1", 7)
    assert sheet.get("B1") == 14
    assert sheet.dependents("A1") == ["B1"]


def test_circle():
    sheet = Spreadsheet()
    sheet.set("A1", 7)
    sheet.set("B1", "=A1")
    try:
        sheet.set("A1", "=B1")
    except ValueError:
        pass
    else:
        raise AssertionError("ValueError was expected")
    assert sheet.get("A1") == 7
