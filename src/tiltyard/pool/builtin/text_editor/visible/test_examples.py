def test_insert_and_delete():
    editor = TextEditor("tilt")
    assert editor.move(-2) == 2
    editor.insert("XY")
    assert (editor.text, editor.cursor) == ("tiXYlt", 4)
    assert editor.delete(3) == "iXY"
    assert (editor.text, editor.cursor) == ("tlt", 1)


def test_undo_and_redo():
    editor = TextEditor("tilt")
    editor.insert("ed")
    assert editor.undo() is True
    assert editor.text == "tilt"
    assert editor.redo() is True
    assert (editor.text, editor.cursor) == ("tilted", 6)
