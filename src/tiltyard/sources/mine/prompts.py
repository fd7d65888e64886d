"""From a commit's message to a task's prompt: what it says, without what it gives away, if that is good enough.

Never: code of the patch, fragments of a diff, or a name of a test that the commit adds. A paragraph that has one is left
out; what is left must still say what is wrong or wanted, or the task is one that *needs a prompt*. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

TEST_NAME = "the name of an added test"
LEAST_CHARS = 45
LEAST_WORDS = 6
VAGUE_WORDS = 16
"""A message that begins vaguely ("WIP", "cleanup") must go on for so long to say something."""
_CODE_CHARS = 12
"""A line of the patch that is shorter is no giveaway: ``else:``, ``return x``."""
_TRAILER = re.compile(
    r"^\s*(signed-off-by|co-authored-by|reviewed-by|acked-by|tested-by|reported-by|change-id|git-svn-id|cc)\s*:"
    r"|^\s*\(cherry picked from|^\s*(\[ci skip\]|\[skip ci\])\s*$|^# |^\s*conflicts:",
    re.IGNORECASE,
)
_MERGE = re.compile(r"^\s*merge (pull request|pr|branch|remote-tracking branch|commit|tag)\b", re.IGNORECASE)
_KEYED = re.compile(r"^[A-Z][a-z]+(-[A-Za-z]+)+: \S")
_SQUASHED = re.compile(r"^\* [^\n]+$")
"""One of the commits that a squashed pull request was made of, as GitHub lists them."""
_CHORE = re.compile(
    r"^\W*(\w+ing |(add|added|adds|update|updated|updates|fix|fixed|fixes|more|improve|remove|write|wip|blacken|run) )?"
    r"(some |more |unit |a |the |new |missing )*"
    r"(tests?|testcases?|test cases?|docs?|docstrings?|documentation|changelog|changes|lint|linting|flake8|black|isort|mypy|"
    r"typos?|ci|coverage|version|readme|whitespace|formatting|review comments?|code review)\b[\w\s./:-]{0,40}$",
    re.IGNORECASE,
)
_BULLET = re.compile(r"(?:[*+-]|\d{1,2}[.)])\s+")
_DIFF = re.compile(r"^\s*(@@ -\d|diff --git |index [0-9a-f]{7,}\.\.|\+\+\+ [ab]/|--- [ab]/)", re.MULTILINE)
_SAYS = re.compile(
    r"\b(fix\w*|bug\w*|errors?|exceptions?|rais\w+|throw\w*|fail\w*|crash\w*|wrong\w*|incorrect\w*|broken|breaks?|should\w*|"
    r"must|instead|expect\w*|return\w*|support\w*|allow\w*|accept\w*|handl\w+|add\w*|implement\w*|when\w*|don'?t|does|do not|"
    r"not|no longer|now|missing|prevent\w*|avoid\w*|ignor\w+|preserv\w+|keep\w*|rejects?|hangs?|infinite\w*|leak\w*|"
    r"regression|treat\w*|escap\w+|recogni[sz]e\w*|ensure\w*|make|makes|use|uses|only|cap|caps|can)\b|\w+(Error|Exception)\b",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"^\W*(wip|update|updates|cleanup|clean up|refactor\w*|misc|minor|more|various|release|bump|merge)\b",
    re.IGNORECASE,
)
_URL = re.compile(
    r"https?://[\w.-]+/[\w.-]+/[\w.-]+(?:/-)?/(?:issues|pull|pulls|merge_requests|issue)/\d+", re.IGNORECASE
)
_NUMBER = re.compile(
    r"(?<![\w/&])(?:#|gh-|issues?[ #_-]{0,2}|pr[ #_-]{0,2}|bug[ #_-]{1,2})(\d{1,6})\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Said:
    """What a message comes to. ``why`` it is not good enough as a prompt; "": it is. ``upstream``: the issues and pull
    requests that it names, as addresses where the repository's own is known, else ``#12``. ``leaks``: what was left
    out of it."""

    text: str
    why: str = ""
    upstream: tuple[str, ...] = ()
    leaks: tuple[str, ...] = ()


def read_message(
    message: str,
    *,
    changelog: Iterable[str] = (),
    added: Iterable[str] = (),
    test_names: Collection[str] = (),
    home: str = "",
) -> Said:
    """What ``message`` says, with the ``changelog`` lines that the commit adds. ``added`` are the lines that it adds to
    files that are no tests, ``test_names`` the names of tests that it adds, ``home`` the repository's address."""
    secrets = frozenset(line for raw in added if _is_code(line := _squeezed(raw)))
    paragraphs = _paragraphs(message) + _new_entries(changelog, message)
    kept: list[str] = []
    leaks: dict[str, None] = {}
    for paragraph in paragraphs:
        what = _leak(paragraph, secrets, test_names)
        if what:
            leaks[what] = None
            paragraph = _without(paragraph, test_names) if what == TEST_NAME else ""
        if paragraph and not _leak(paragraph, secrets, test_names):
            kept.append(paragraph)
    told = [paragraph for n, paragraph in enumerate(kept) if n == 0 or not _SQUASHED.match(paragraph)]
    text = "\n\n".join(told).strip()
    return Said(text, _too_little(text, leaks), upstream(message, home), tuple(leaks))


def upstream(message: str, home: str = "") -> tuple[str, ...]:
    """The issues and pull requests that a message names, in its order."""
    found = dict.fromkeys(match[0] for match in _URL.finditer(message))
    rest = _URL.sub(" ", message)
    for match in _NUMBER.finditer(rest):
        squashed = f"({match[0]})" in rest.split("\n")[0][-12:]
        kind = (
            "pull"
            if squashed or match[0].lower().startswith("pr") or f"pull request #{match[1]}" in rest
            else "issues"
        )
        found[f"{home}/{kind}/{match[1]}" if home else f"#{match[1]}"] = None
    return tuple(found)


def home_of(remote: str) -> str:
    """The address of a repository from that of its remote: ``git@github.com:o/n.git`` is ``https://github.com/o/n``. ""
    for one that is no such place, or holds credentials."""
    match = re.fullmatch(
        r"(?:https?://(?:[^@/]*@)?|git://|ssh://(?:[^@/]*@)?|[\w.-]+@)([\w.-]+\.[a-z]+)(?::\d+/|[:/])([\w.-]+/[\w.-]+?)(?:\.git)?/?",
        remote.strip(),
    )
    return f"https://{match[1]}/{match[2]}" if match else ""


def names_of_tests(added: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """The names of the tests that are defined in these lines."""
    found: dict[str, None] = {}
    for lines in added.values():
        for line in lines:
            if match := re.match(r"\s*(?:async\s+)?(?:def|class)\s+(test_?\w{2,}|Test\w{2,})", line):
                found[match[1]] = None
    return tuple(found)


def _paragraphs(message: str) -> list[str]:
    lines = [line.rstrip() for line in message.replace("\r\n", "\n").splitlines()]
    lines = [line for line in lines if not _TRAILER.search(line)]
    if lines and _MERGE.match(lines[0]):
        lines = lines[1:]
    lines = [line for line in lines if not line or not _CHORE.match(line)]
    while lines and (not lines[-1].strip() or _KEYED.match(lines[-1]) or not lines[-1].strip("-")):
        lines.pop()
    out: list[str] = []
    block: list[str] = []
    fenced = False
    for line in [*lines, ""]:
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        if line.strip() or fenced:
            block.append(line)
        elif block:
            out.append("\n".join(block))
            block = []
    return out + (["\n".join(block)] if block else [])


def _new_entries(changelog: Iterable[str], message: str) -> list[str]:
    """What a changelog says beyond the message."""
    said, out = _squeezed(message).lower(), []
    for text in _entries(changelog):
        words = set(re.findall(r"[a-z]{4,}", text.lower()))
        is_head = re.fullmatch(r"[=~^-]+|#+ .*|v?\d[\w. ()-]*|.*\bunreleased\b.*", text, re.IGNORECASE)
        if len(words) >= 4 and not is_head and sum(word in said for word in words) < 0.8 * len(words):
            out.append(text)
    return out


def _entries(changelog: Iterable[str]) -> list[str]:
    """The entries that these lines are: one begins at a bullet, after an empty line, and where nothing is indented."""
    out: list[list[str]] = []
    fresh = True
    for line in changelog:
        text = _BULLET.sub("", line.strip())
        if not text:
            fresh = True
            continue
        if fresh or _BULLET.match(line.strip()) or not line[0].isspace():
            out.append([])
        out[-1].append(text)
        fresh = False
    return [" ".join(lines) for lines in out]


def _leak(paragraph: str, secrets: Collection[str], test_names: Collection[str]) -> str:
    """What a paragraph gives away, or ""."""
    if _DIFF.search(paragraph):
        return "a fragment of a diff"
    squeezed = _squeezed(paragraph)
    if any(secret in squeezed for secret in secrets):
        return "code of the patch"
    if any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", paragraph) for name in test_names):
        return TEST_NAME
    return ""


def _without(paragraph: str, test_names: Collection[str]) -> str:
    """The paragraph without the sentences that name a test."""
    sentences = re.split(r"(?<=[.!?;])\s+|\n(?=\s*[-*] )", paragraph)
    named = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, test_names))})(?!\w)")
    return "\n".join(sentence for sentence in sentences if not named.search(sentence)).strip()


def _squeezed(text: str) -> str:
    return " ".join(text.replace("`", " ").split())


def _is_code(line: str) -> bool:
    """Whether a line, repeated in a prompt, would be code of the patch and not words or a common idiom."""
    if len(line.replace(" ", "")) < _CODE_CHARS or line.startswith(
        ("#", "import ", "from ", '"""', "'''", "* ", "- ")
    ):
        return False
    return bool(re.search(r"[=()\[\]{}<>+*/%|&^~:]", line)) and not re.fullmatch(r"[\w ,.'-]+:?", line)


def _too_little(text: str, leaks: Collection[str]) -> str:
    plain = _NUMBER.sub(" ", _URL.sub(" ", text))
    words = re.findall(r"[A-Za-z][\w'.-]*", plain)
    because = f" without {', '.join(leaks)}" if leaks else ""
    if not words:
        return f"nothing is said{because}"
    if len(plain.strip()) < LEAST_CHARS or len(words) < LEAST_WORDS:
        return f"too short{because}"
    if _VAGUE.match(plain) and len(words) < VAGUE_WORDS:
        return f"too vague{because}"
    if not _SAYS.search(plain):
        return f"says nothing of what is wrong or wanted{because}"
    return ""
