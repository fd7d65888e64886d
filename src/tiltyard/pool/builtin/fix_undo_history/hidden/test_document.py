def test_undo_and_redo_of_edits():
    document = Document()
    document.add("a")
    document.edit(0, "b")
    document.edit(0, "c")
    assert document.undo() is True
    assert document.texts() == ["b"]
    assert document.undo() is True
    assert document.texts() == ["a"]
    assert document.redo() is True
    assert document.redo() is True
    assert document.redo() is False
    assert document.texts() == ["c"]


def test_undo_and_redo_of_tags():
    document = Document([{"text": "a", "tags": ["x"]}])
    document.tag(0, "y", "x", "z")
    document.tag(0, "w")
    document.undo()
    assert document.rows() == [{"text": "a", "tags": ["x", "y", "z"]}]
    document.undo()
    assert document.rows() == [{"text": "a", "tags": ["x"]}]
    document.redo()
    document.redo()
    assert document.rows() == [{"text": "a", "tags": ["x", "y", "z", "w"]}]


def test_undo_of_remove_has_the_tags_of_then():
    document = Document([{"text": "a", "tags": ["x"]}, {"text": "b", "tags": []}])
    assert document.remove(0) == "a"
    document.tag(0, "t")
    document.undo()
    document.undo()
    assert document.rows() == [{"text": "a", "tags": ["x"]}, {"text": "b", "tags": []}]


def test_new_change_ends_redo():
    document = Document([{"text": "a", "tags": []}])
    document.edit(0, "b")
    document.edit(0, "c")
    document.undo()
    document.undo()
    document.tag(0, "new")
    assert document.redo() is False
    assert document.rows() == [{"text": "a", "tags": ["new"]}]
    assert document.undo() is True
    assert document.rows() == [{"text": "a", "tags": []}]
    assert document.redo() is True
    assert document.rows() == [{"text": "a", "tags": ["new"]}]


def test_rows_are_a_copy():
    document = Document([{"text": "a", "tags": ["x"]}])
    rows = document.rows()
    rows[0]["text"] = "changed"
    rows[0]["tags"].append("changed")
    rows.append({"text": "more", "tags": []})
    assert document.rows() == [{"text": "a", "tags": ["x"]}]


def test_constructor_copies():
    rows = [{"text": "a", "tags": ["x"]}]
    document = Document(rows)
    document.edit(0, "b")
    document.tag(0, "y")
    document.add("c")
    assert rows == [{"text": "a", "tags": ["x"]}]


def test_two_documents_from_the_same_rows():
    rows = [{"text": "a", "tags": []}]
    one, two = Document(rows), Document(rows)
    one.tag(0, "mine")
    one.edit(0, "other")
    assert two.rows() == [{"text": "a", "tags": []}]


def test_tags_given_to_add_are_copied():
    document = Document()
    tags = ["x"]
    document.add("a", tags)
    document.add("b", tags)
    document.tag(0, "y")
    assert document.rows() == [{"text": "a", "tags": ["x", "y"]}, {"text": "b", "tags": ["x"]}]
    assert tags == ["x"]


def test_limit():
    document = Document(limit=2)
    for text in "abcd":
        document.add(text)
    assert [document.undo(), document.undo(), document.undo()] == [True, True, False]
    assert document.texts() == ["a", "b"]


def test_limit_of_one_and_redo():
    document = Document(limit=1)
    document.add("a")
    document.add("b")
    assert [document.undo(), document.undo()] == [True, False]
    assert document.redo() is True
    assert document.texts() == ["a", "b"]
    assert document.undo() is True
    assert document.texts() == ["a"]


def test_failures_are_no_changes():
    document = Document([{"text": "a", "tags": []}])
    raises(IndexError, document.edit, 1, "x")
    raises(IndexError, document.edit, -1, "x")
    raises(IndexError, document.tag, 5, "x")
    raises(IndexError, document.remove, -1)
    assert document.undo() is False
    assert document.rows() == [{"text": "a", "tags": []}]


def test_failure_keeps_redo():
    document = Document()
    document.add("a")
    document.undo()
    raises(IndexError, document.remove, 0)
    assert document.redo() is True
    assert document.texts() == ["a"]


def test_nothing_to_undo():
    document = Document([{"text": "a", "tags": []}])
    assert document.undo() is False
    assert document.redo() is False
    assert document.texts() == ["a"]


def test_add_returns_the_index():
    document = Document([{"text": "a", "tags": []}])
    assert document.add("b") == 1
    assert document.add("c", ["t"]) == 2
    assert document.texts() == ["a", "b", "c"]
