import random


def test_start():
    assert state(TextEditor()) == ("", 0)
    assert state(TextEditor("lance")) == ("lance", 5)


def test_insert_at_the_cursor():
    editor = TextEditor("ad")
    editor.move(-1)
    editor.insert("b")
    editor.insert("c")
    assert state(editor) == ("abcd", 3)


def test_insert_at_the_start():
    editor = TextEditor("yard")
    editor.move(-100)
    editor.insert("tilt")
    assert state(editor) == ("tiltyard", 4)


def test_delete_before_the_cursor():
    editor = TextEditor("abcdef")
    editor.move(-2)
    assert editor.delete() == "d"
    assert state(editor) == ("abcef", 3)
    assert editor.delete(2) == "bc"
    assert state(editor) == ("aef", 1)


def test_delete_more_than_there_is():
    editor = TextEditor("abcd")
    editor.move(-1)
    assert editor.delete(50) == "abc"
    assert state(editor) == ("d", 0)
    assert editor.delete(1) == ""
    assert state(editor) == ("d", 0)


def test_delete_zero_and_negative():
    editor = TextEditor("abcd")
    assert editor.delete(0) == ""
    assert raises(ValueError, editor.delete, -1)
    assert state(editor) == ("abcd", 4)


def test_move_stops_at_the_ends():
    editor = TextEditor("abc")
    assert editor.move(1) == 3
    assert editor.move(-2) == 1
    assert editor.move(-5) == 0
    assert editor.move(2) == 2
    assert editor.move(9) == 3
    assert editor.move(0) == 3


def test_nothing_to_undo_or_redo():
    editor = TextEditor("abc")
    assert editor.undo() is False
    assert editor.redo() is False
    editor.insert("d")
    assert editor.redo() is False
    assert editor.undo() is True
    assert editor.undo() is False
    assert state(editor) == ("abc", 3)


def test_undo_in_reverse_order():
    editor = TextEditor()
    for s in ("one", " two", " three"):
        editor.insert(s)
    assert editor.undo() and editor.text == "one two"
    assert editor.undo() and editor.text == "one"
    assert editor.redo() and editor.text == "one two"
    assert editor.redo() and editor.text == "one two three"
    assert editor.redo() is False


def test_undo_of_a_delete():
    editor = TextEditor("abcdef")
    editor.move(-2)
    assert editor.delete(3) == "bcd"
    assert editor.undo() is True
    assert state(editor) == ("abcdef", 4)
    assert editor.redo() is True
    assert state(editor) == ("aef", 1)


def test_undo_puts_the_cursor_back_where_the_edit_was():
    editor = TextEditor("abcd")
    editor.move(-3)
    editor.insert("X")
    editor.move(2)
    assert editor.undo() is True
    assert state(editor) == ("abcd", 1)
    editor.move(3)
    assert editor.redo() is True
    assert state(editor) == ("aXbcd", 2)


def test_moves_are_not_undone():
    editor = TextEditor("ab")
    editor.insert("c")
    editor.move(-3)
    editor.move(1)
    assert editor.undo() is True
    assert state(editor) == ("ab", 2)
    assert editor.undo() is False


def test_moves_do_not_disturb_redo():
    editor = TextEditor("ab")
    editor.insert("c")
    assert editor.undo() is True
    assert editor.move(-1) == 1
    assert editor.redo() is True
    assert state(editor) == ("abc", 3)


def test_new_edit_ends_redo():
    editor = TextEditor("a")
    editor.insert("b")
    editor.insert("c")
    assert editor.undo() and editor.undo()
    editor.insert("x")
    assert editor.redo() is False
    assert state(editor) == ("ax", 2)
    assert editor.undo() is True
    assert state(editor) == ("a", 1)
    assert editor.redo() is True
    assert state(editor) == ("ax", 2)


def test_delete_ends_redo():
    editor = TextEditor("a")
    editor.insert("b")
    assert editor.undo() is True
    assert editor.delete() == "a"
    assert editor.redo() is False
    assert state(editor) == ("", 0)


def test_empty_edits_are_none():
    editor = TextEditor("a")
    editor.insert("b")
    assert editor.undo() is True
    editor.insert("")
    assert editor.delete(0) == ""
    editor.move(-1)
    assert editor.delete(3) == ""
    assert editor.redo() is True
    assert state(editor) == ("ab", 2)
    editor.insert("")
    assert editor.undo() is True
    assert state(editor) == ("a", 1)


def test_failed_delete_does_not_disturb_redo():
    editor = TextEditor("a")
    editor.insert("b")
    assert editor.undo() is True
    assert raises(ValueError, editor.delete, -2)
    assert editor.redo() is True
    assert editor.text == "ab"


def test_against_a_model():
    rng = random.Random(52)
    editor = TextEditor("start")
    text, cursor = "start", 5
    edits, done = [], 0  # (before, after); the first `done` of them are in effect
    for _ in range(200):
        action = rng.choice(["insert", "delete", "move", "undo", "undo", "redo"])
        if action in ("insert", "delete"):
            before = (text, cursor)
            if action == "insert":
                s = rng.choice(["", "a", "bc"])
                editor.insert(s)
                text, cursor = text[:cursor] + s + text[cursor:], cursor + len(s)
            else:
                n = rng.randrange(0, 3)
                assert editor.delete(n) == text[max(0, cursor - n) : cursor]
                text, cursor = text[: max(0, cursor - n)] + text[cursor:], max(0, cursor - n)
            if text != before[0]:
                edits[done:] = [(before, (text, cursor))]
                done += 1
        elif action == "move":
            n = rng.randrange(-4, 5)
            cursor = max(0, min(len(text), cursor + n))
            assert editor.move(n) == cursor
        elif action == "undo":
            assert editor.undo() is (done > 0)
            if done:
                done -= 1
                text, cursor = edits[done][0]
        else:
            assert editor.redo() is (done < len(edits))
            if done < len(edits):
                text, cursor = edits[done][1]
                done += 1
        assert state(editor) == (text, cursor)
