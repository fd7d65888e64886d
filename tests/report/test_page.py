"""The page and the terminal: self-contained, harmless whatever a player wrote, and the command around them."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.report.made import POOL, act, episode, lively, model_run, play, submit
from typer.testing import CliRunner

from tiltyard.cli import app
from tiltyard.errors import UsageError
from tiltyard.records import Store
from tiltyard.report import Report, report
from tiltyard.report.markup import clean, esc, table, tag
from tiltyard.report.terminal import render

EVIL = "<script>alert(1)</script>\x1b[31m\u202e\ud800\0\x9b'\"&</td>$x$"
VOID_ELEMENTS = {"meta", "br"}
pytest.importorskip("matplotlib", reason="no matplotlib: the extra `report` is not installed")


class Checker(HTMLParser):
    """Every element is closed where it was opened; keeps elements, attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, name: str, attributes: Any) -> None:
        self.elements.append((name, dict(attributes)))
        if name not in VOID_ELEMENTS:
            self.open.append(name)

    def handle_startendtag(self, name: str, attributes: Any) -> None:
        self.elements.append((name, dict(attributes)))

    def handle_endtag(self, name: str) -> None:
        assert self.open and self.open.pop() == name, (name, self.getpos())

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def checked(text: str) -> Checker:
    found = Checker()
    found.feed(text)
    found.close()
    assert not found.open
    return found


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with something for every section, and with hostile texts everywhere that a player can put them."""
    where = tmp_path_factory.mktemp("full") / "s.sqlite"
    with Store(where) as store:
        model_run(store, "openai:m", 5, attempts=3, tasks=20, skill=0.4)
        play(store, "random", lively(3, 0.0), tasks=20, attempts=3)
        evil = (act("write_file", EVIL, path=EVIL, content=EVIL), submit(0.0))
        store.add(episode(POOL[3], EVIL, 0.0, steps=evil, flags=(EVIL,)))
        store.add(episode(POOL[3], EVIL, None, void=EVIL))
        solved = (act("write_file", EVIL, path="solution.py", content=EVIL), submit(1.0))
        store.add(episode(POOL["trie"], EVIL, 1.0, steps=solved))
    return where


@pytest.fixture(scope="module")
def found(full: Path) -> Report:
    return report(full, cutoff="2026-11", pool=POOL)


@pytest.fixture(scope="module")
def html(found: Report) -> str:
    from tiltyard.report.page import page

    return page(found)


def test_the_page_asks_nothing_of_a_network_and_runs_nothing(html: str) -> None:
    page = checked(html)
    names = {name for name, _ in page.elements}
    assert not names & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "form",
        "base",
        "audio",
        "video",
        "image",
    }
    for name, attributes in page.elements:
        for key, value in attributes.items():
            assert not key.startswith("on"), (name, key)
            if key in ("href", "src", "xlink:href", "action", "data"):
                assert value is not None and value.startswith("#"), (name, key, value)
    style = html[html.index("<style>") : html.index("</style>")]
    assert "url(" not in style and "@import" not in style
    policy = next(a["content"] for n, a in page.elements if n == "meta" and a.get("http-equiv"))
    assert policy is not None and policy.startswith("default-src 'none'")
    html.encode("utf-8")


def test_every_section_is_there_and_can_be_reached(html: str) -> None:
    page = checked(html)
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    targets = {str(a["href"])[1:] for n, a in page.elements if n == "a"}
    sections = [
        "rewards",
        "gradient",
        "never",
        "costs",
        "flags",
        "contamination",
        "voids",
        "tasks",
        "formulas",
    ]
    assert targets == set(sections) and targets <= set(ids)
    for used in re.findall(r"url\(#([^)]*)\)", html):
        assert used in ids
    assert sum(name == "svg" for name, _ in page.elements) == 4
    text = "".join(page.text)
    for task in ("fix_", "pass@k", "2026-11-01", "openai:m", "k = 3"):
        assert task in text


def test_what_players_wrote_is_text_and_nothing_else(html: str) -> None:
    assert "<script" not in html and "alert(1)" in html
    for harmful in ("\x1b", "\u202e", "\0", "\x9b", "\ud800"):
        assert harmful not in html
    assert r"\x1b[31m\u202e\ud800" in "".join(checked(html).text)


def test_the_plots_follow_light_and_dark(html: str) -> None:
    for svg in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        ET.fromstring(svg.replace("xlink:href", "href"))  # well-formed
        assert "var(--ink)" in svg
        assert not re.search(r"#0[12]03|#0102", svg)
        fixed = set(re.findall(r"(?:fill|stroke): ?(#[0-9a-f]{6})", svg))
        assert fixed <= {"#000000"}, fixed
    variables = set(re.findall(r"var\((--[\w-]+)\)", html))
    style = html[html.index("<style>") : html.index("</style>")]
    light, dark = style.split("@media (prefers-color-scheme: dark)")
    for name in variables:
        assert f"{name}:" in light and f"{name}:" in dark, name


def test_the_same_report_gives_the_same_page(found: Report, html: str) -> None:
    from tiltyard.report.page import page

    assert page(found) == html


def test_the_page_of_very_little(tmp_path: Path) -> None:
    from tiltyard.report.page import page

    with Store(tmp_path / "s") as store:
        store.add(episode(POOL[0], "me", None))
        nothing = page(report(store, pool=POOL))
        assert "the server was overloaded" in nothing
        store.add(episode(POOL[0], "me", 1.0))
        checked(page(report(store, pool=POOL, unsolved_shown=0)))
    checked(nothing)


def test_the_terminal_shows_it_all_and_obeys_no_one(found: Report) -> None:
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    console = Console(file=out, width=400, force_terminal=False)
    for thing in render(found):
        console.print(thing, markup=False) if isinstance(thing, str) else console.print(thing)
    text = out.getvalue()
    for title in (
        "Rewards",
        "pass@k",
        "What an episode takes",
        "bought no gradient",
        "Voids",
        "Mixed tasks",
        "Flags",
    ):
        assert title in text
    assert "Never solved" in text and "Solve rates before and after 2026-11-01" in text and "Signs" in text
    for harmful in ("\x1b", "\u202e", "\0", "\x9b", "\ud800"):
        assert harmful not in text


def test_markup() -> None:
    assert esc("<a> & 'b'") == "&lt;a&gt; &amp; &#x27;b&#x27;"
    assert esc(tag("b", "<")) == "<b>&lt;</b>"
    assert tag("a", "x", href='"><script>') == '<a href="&quot;&gt;&lt;script&gt;">x</a>'
    assert clean("a\tb\nc\r\nd\re") == "a\tb\nc\nd\\re"
    assert 'class="n"' in table(("a", "b"), [("x", "1"), ("y", "–")])
    assert 'class="n"' not in table(("a", "b"), [("x", "1"), ("y", "z")])


# -- the command ---------------------------------------------------------------------------------------------------


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


def test_the_command(full: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    done = run(full, "--html", page, "--json", "--player", "openai:m", "--group-size", 2, "--cutoff", "2026")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert list(found["players"]) == ["openai:m"] and found["group_size"] == 2
    wanted = report(full, player="openai:m", group_size=2, cutoff="2026", pool=POOL).as_json()
    assert found == json.loads(json.dumps(wanted))
    assert "openai:m" in page.read_text("utf-8")
    shown = run(full, "--transcripts", 0)
    assert shown.exit_code == 0 and "Rewards" in shown.stdout


def test_what_the_command_refuses(full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, match in (
        ((tmp_path / "none",), "there is no store"),
        ((full, "--cutoff", "never"), "--cutoff"),
        ((full, "--run", "zz"), "no run"),
        ((full, "--html", tmp_path), "is a folder"),
        ((full, "--html", tmp_path / "a" / "b.html"), "can't be written"),
    ):
        done = run(*arguments)
        assert isinstance(done.exception, UsageError), done.output
        assert match in str(done.exception)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = run(full, "--html", tmp_path / "r.html")
    assert "pip install 'tiltyard[report]'" in str(done.exception) and not (tmp_path / "r.html").exists()
    assert run(full, "--player", "random").exit_code == 0  # only the page needs it
