import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from tiltyard.errors import UsageError
from tiltyard.pool.rows import read_rows, short

Write = Callable[[str, "str | bytes"], Path]


def test_lines_lists_and_gzip_are_one(write: Write) -> None:
    lines = '{"a": 1}\n\n{"a": 2}\r\n'
    listed = ' [{"a": 1},\n {"a": 2}]'
    for name, data in [
        ("x.jsonl", lines),
        ("x.jsonl.gz", gzip.compress(lines.encode())),
        ("x.json", listed),
        ("x.json.gz", gzip.compress(listed.encode())),
        ("listed.jsonl", listed),
        ("zipped-without-saying.jsonl", gzip.compress(lines.encode())),
        ("bom.jsonl", b"\xef\xbb\xbf" + lines.encode()),
    ]:
        rows, problems = read_rows(write(name, data))
        assert [row.data for row in rows] == [{"a": 1}, {"a": 2}], name
        assert problems == []
    rows, _ = read_rows(write("x.jsonl", lines))
    assert [row.where.rpartition("/")[2] for row in rows] == ["x.jsonl:1", "x.jsonl:3"]
    rows, _ = read_rows(write("x.json", listed))
    assert [row.where.rpartition("/")[2] for row in rows] == ["x.json[0]", "x.json[1]"]


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("x.jsonl", '{"a": 1}\n{"a": }\n', "x.jsonl:2:7: found bad JSON (Expecting value); expected JSON"),
        ("x.jsonl", '{"a": 1}\n[1]\n', "x.jsonl:2: found a list of 1; expected an object"),
        (
            "x.json",
            '[{"a": 1},\n  {"a" 2}]',
            "x.json:2:8: found bad JSON (Expecting ':' delimiter); expected JSON",
        ),
        ("x.jsonl", '{"a": 1, "b": 2, "a": 3}', "x.jsonl:1: found the key 'a' twice in one object; expected"),
        (
            "x.jsonl",
            b'{"a": 1}\n{"a": "\xff"}',
            "x.jsonl:2: found the byte 0xff, which is not UTF-8; expected",
        ),
        ("x.jsonl.gz", "plain", "x.jsonl.gz: found data that is not gzipped; expected"),
        ("x.jsonl.gz", gzip.compress(b"{}" * 99, mtime=0)[:20], "x.jsonl.gz: found damaged gzip data"),
        ("x.jsonl", "[" * 200_000, "x.jsonl: found JSON that is nested too deep; expected"),
        ("x.jsonl", '{"a": ' + "1" * 5000 + "}", "x.jsonl:1: found bad JSON (Exceeds the limit"),
    ],
)
def test_what_is_wrong_is_named_with_line_and_column(
    write: Write, name: str, data: str | bytes, expected: str
) -> None:
    _, problems = read_rows(write(name, data))
    assert len(problems) == 1
    assert str(problems[0]).rpartition("/")[2].startswith(expected) or expected in str(problems[0])


def test_every_bad_line_is_named_and_the_good_ones_come_back(write: Write) -> None:
    rows, problems = read_rows(write("x.jsonl", '{\n{"a": 1}\n7\n{"b": 2}\n'))
    assert [row.data for row in rows] == [{"a": 1}, {"b": 2}]
    assert [p.where.rpartition("/")[2] for p in problems] == ["x.jsonl:1:2", "x.jsonl:3"]


def test_a_file_that_can_not_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"can't read .*nothing.jsonl: No such file"):
        read_rows(tmp_path / "nothing.jsonl")
    with pytest.raises(UsageError, match="can't read"):
        read_rows(tmp_path)


def test_values_in_few_words() -> None:
    assert short("x" * 100) == "'" + "x" * 58 + "… (text)"
    assert (short(None), short({}), short((1, 2)), short(b"")) == (
        "null",
        "an object of 0",
        "a tuple of 2",
        "a bytes",
    )
