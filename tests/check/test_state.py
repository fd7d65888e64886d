import pytest

from tiltyard.check.report import TaskReport
from tiltyard.check.state import State
from tiltyard.errors import UsageError

SETTINGS = {"repeats": 5, "wall": "process", "reward": None}
FIT = TaskReport("median", "fit", "", "d1")
UNFIT = TaskReport("mode", "unfit", "the reference scores 0", "d2")


def write(path, *reports, settings=SETTINGS):
    state = State(path, settings)
    for report in reports:
        state.add(report)
    state.close()


def known(path, settings=SETTINGS):
    state = State(path, settings)
    state.close()
    return state.known


def test_outcomes_come_back(tmp_path):
    write(tmp_path / "s", FIT)
    write(tmp_path / "s", UNFIT)
    assert known(tmp_path / "s") == {("median", "d1"): FIT, ("mode", "d2"): UNFIT}


def test_a_void_is_tried_again(tmp_path):
    write(tmp_path / "s", TaskReport("median", "void", "disk", "d1"), UNFIT)
    assert list(known(tmp_path / "s")) == [("mode", "d2")]


def test_other_settings_know_nothing_but_keep_everything(tmp_path):
    write(tmp_path / "s", FIT)
    assert known(tmp_path / "s", {**SETTINGS, "repeats": 6}) == {}
    write(tmp_path / "s", UNFIT, settings={**SETTINGS, "wall": "namespace"})
    assert list(known(tmp_path / "s")) == [("median", "d1")]


def test_the_latest_outcome_counts(tmp_path):
    write(tmp_path / "s", FIT, TaskReport("median", "unfit", "now", "d1"))
    assert known(tmp_path / "s")["median", "d1"].reason == "now"


@pytest.mark.parametrize("lost", [1, 5, 40])
def test_a_line_that_was_cut_off_is_ignored_and_not_continued(tmp_path, lost):
    path = tmp_path / "s"
    write(path, FIT, UNFIT)
    path.write_bytes(path.read_bytes()[:-lost])
    write(path, TaskReport("late", "fit", "", "d3"))
    found = known(path)
    assert found["median", "d1"] == FIT and found["late", "d3"].outcome == "fit"
    assert (("mode", "d2") in found) == (lost == 1)


def test_lines_that_say_nothing(tmp_path):
    path = tmp_path / "s"
    write(path, FIT)
    with path.open("ab") as file:
        file.write(b'[1]\n"x"\n\xff\xfe\n{"task": 1, "digest": 2, "outcome": "fit", "reason": 3}\n\n')
    assert list(known(path)) == [("median", "d1")]


def test_a_file_that_is_something_else(tmp_path):
    for text in ("hello\n", '{"format": "other"}\n', "[]"):
        (tmp_path / "s").write_text(text)
        with pytest.raises(UsageError, match="no state file"):
            State(tmp_path / "s", SETTINGS)
        assert (tmp_path / "s").read_text() == text
    with pytest.raises(UsageError, match="can't be used"):
        State(tmp_path, SETTINGS)
    with pytest.raises(UsageError, match="can't be used"):
        State(tmp_path / "no" / "s", SETTINGS)
    (tmp_path / "empty").touch()
    write(tmp_path / "empty", FIT)
    assert known(tmp_path / "empty")
