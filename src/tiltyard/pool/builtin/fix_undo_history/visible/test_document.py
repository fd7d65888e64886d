def test_undo_of_tags():
    document = Document()
    document.add("milk")
    document.tag(0, "shop")
    assert document.undo() is True
    assert document.rows() == [{"text": "milk", "tags": []}]


def test_no_redo_after_a_change():
    document = Document()
    document.add("a")
    document.add("b")
    document.undo()
    document.add("c")
    assert document.redo() is False
    assert document.texts() == ["a", "c"]
