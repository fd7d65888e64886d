"""New names: of the same style, with about the same meaning, used nowhere in the task. The same seed, the same name.

Words that have a near neighbour are replaced by it; a name without such a word gets one more, so that it still says what
it is about. Nothing is looked up but the lists below.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterator

from tiltyard.sources.perturb.external import BUILTINS

_ALIKE = """
add append insert include; get fetch obtain; find locate search seek; compute calculate work_out;
make build create; count tally number; check verify examine; has contains holds;
remove delete discard drop; parse read decipher; list series; lst seq series; arr items;
nums figures numerals; numbers figures numerals; num figure numeral; string phrase wording;
str phrase wording; text passage wording; s phrase chars; char symbol letter; c symbol glyph;
word term token; words terms tokens; sum total aggregate; total grand; max largest greatest;
min smallest least; maximum largest greatest; minimum smallest least; longest lengthiest;
shortest briefest; first leading initial; last final trailing; sort arrange order;
sorted ordered arranged; filter select pick; merge combine join_up; split divide separate;
swap exchange trade; reverse invert flip; even paired; odd unpaired; prime primal; factor divisor;
factors divisors; square quadrate; cube third_power; convert transform turn; encode encipher pack;
decode decipher unpack; shift displace move; rotate turn spin; remove_all purge; close near adjacent;
elements members entries; element member entry; items entries members; item entry member; key label tag;
keys labels tags; value datum content; values data contents; result outcome answer; res outcome answer;
ans outcome reply; output outcome product; index position place; idx position place; i position pos;
j second_pos other_pos; k amount kth; n size quantity; m extent breadth; x first_value operand;
y second_value other; a left first_arg; b right second_arg; d table gap; l seq series; p pointer part;
t moment piece; q quotient query; r rest radius; w width weight; h height tall; z third_value depth;
left lower_side west; right upper_side east; start begin origin; end finish stop; begin start;
stop finish end; size extent magnitude; length extent span; width breadth; height tallness; depth level;
weight mass load; price cost rate; cost expense price; amount quantity; balance holdings;
account ledger_entry; name title; names titles; time moment; times moments; month moon; year annum;
path route trail; file document; line row; lines rows; col column; matrix grid table; grid board lattice;
graph network; node vertex; nodes vertices; edge link arc; edges links arcs; tree hierarchy;
root base_node; parent ancestor; child descendant; children descendants; queue waiting_line; stack pile;
heap mound; cache store memo; buffer holder; map mapping chart; dict mapping lookup;
dictionary mapping lookup; set group collection; pair couple duo; pairs couples duos; tuple record;
tuples records; array vector; interval span; intervals spans ranges; range span; group cluster bunch;
groups clusters; chunk portion; chunks portions; part portion share; parts portions shares;
piece fragment; token lexeme; tokens lexemes; expression formula; formula expression; number figure;
digit numeral; digits numerals; binary dyadic; decimal tenfold; integer whole; int whole; float real;
bool truth; flag marker switch; status state condition; state status condition; error fault mistake;
exception failure; message notice; msg notice; event occurrence; events occurrences; handler responder;
callback responder; listener observer; emit announce; emitter announcer; subscribe enlist;
publish announce; push put_on; pop take_off; peek glance; update refresh; apply carry_out; run execute;
execute run; process treat; handle treat; save keep; write put_down; open unlock; send dispatch;
receive accept; new fresh; old former; current present; cur present; prev former; previous former;
next following; temp interim; tmp interim; copy duplicate; clone duplicate; simple plain; valid sound;
invalid unsound; empty blank; full complete; all every_one; any some_one; same equal alike;
different distinct; unique distinct single; common shared; similar alike; smallest least minimal;
largest greatest maximal; nearest closest; distance gap spacing; area surface; perimeter outline;
angle slope; radius reach; point spot; points spots; circle ring; triangle trigon; rectangle oblong;
sequence series; series sequence; subarray sub_series; substring fragment; prefix lead; suffix tail;
pattern motif; format layout; render draw_up; show display; print display; limit bound cap;
limits bounds caps; capacity room; threshold bound; lower low_end; upper high_end; low bottom; high top;
mid middle; middle centre; median middle_value; mode most_frequent; rank standing; grade mark;
level tier; test trial; case instance; cases instances; input given; inputs givens; option choice;
options choices; config setup; settings setup; default fallback; delimiter separator;
separator delimiter; sep delimiter; func routine; function routine; fn routine; f routine;
g other_routine; method procedure; class kind; type kind; object thing; obj thing; data material;
info details; table chart; database storehouse; store depot; inventory stock; order request;
orders requests; product article; products articles; customer client; player contestant; move step;
moves steps; step stride; steps strides; card leaf; dice cubes; change coinage; money funds;
bank treasury; ledger journal; journal diary; vowel sonant; vowels sonants; letter character;
letters characters; sentence statement; paragraph passage; space blank; spaces blanks; bracket paren;
brackets parens; balanced matched; palindrome mirror_word; anagram letter_shuffle;
anagrams letter_shuffles; fibonacci golden_series; fib golden_number; gcd common_divisor;
lcm common_multiple; factorial running_product; roman latin; caesar substitution;
"""
_AFFIXES = {
    "callable": ("perform_{}", "run_{}", "my_{}", "{}_call", "plain_{}", "own_{}"),
    "class": ("Basic{}", "{}Kind", "Plain{}", "{}Unit", "Own{}"),
    "value": ("given_{}", "the_{}", "this_{}", "own_{}", "{}_here"),
    "module": ("{}_core", "the_{}", "{}_unit", "{}_part"),
}
_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


def _table() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for line in _ALIKE.replace("\n", " ").split(";"):
        word, *others = line.split() or [""]
        if word and word not in found:
            found[word] = tuple(others)
    return found


_NEAR = _table()


class Namer:
    """Gives names. ``taken`` are all words of the task; what was given is taken too."""

    def __init__(self, rng: random.Random, taken: Collection[str]) -> None:
        self.rng = rng
        self.taken = set(taken)

    def name(self, old: str, kind: str, *, keep_words: bool = False) -> str:
        """A new name for ``old``. ``kind``: "callable", "class", "value" or "module". ``keep_words``: the name is an
        ordinary word of the prose around it, so it stays part of the new one."""
        lead = old[: len(old) - len(old.lstrip("_"))]
        trail = old[len(old.rstrip("_")) :] if old.strip("_") else ""
        core = old.strip("_") or old
        style = _style(core, kind)
        initials = {part.lower() for part in _words_of(core) if len(part) > 1 and part.isupper()}
        for candidate in self._candidates(core, kind, keep_words):
            made = lead + _styled(candidate, style, initials) + trail
            if self._free(made):
                self.taken.add(made)
                return made
        raise AssertionError("unreachable: numbers do not end")

    def _free(self, name: str) -> bool:
        return name.isidentifier() and name not in self.taken and name not in BUILTINS

    def _candidates(self, core: str, kind: str, keep_words: bool) -> Iterator[str]:
        parts = [part.lower() for part in _words_of(core)] or [core]
        known = [n for n, part in enumerate(parts) if part in _NEAR]
        if known and not keep_words:
            for _ in range(6):
                chosen = list(parts)
                for n in known:
                    if len(known) == 1 or self.rng.random() < 0.8:
                        chosen[n] = self.rng.choice(_NEAR[parts[n]])
                if chosen != parts:
                    yield "_".join(chosen)
        affixes = list(_AFFIXES[kind])
        self.rng.shuffle(affixes)
        plain = "_".join(parts)
        if kind == "class":
            yield from (
                a.replace("{}", f"_{plain}_").strip("_").replace("__", "_") for a in map(_snake, affixes)
            )
        else:
            yield from (affix.format(plain) for affix in affixes)
        number = 2
        while True:
            yield f"{plain}_no_{number}"
            number += 1


def _words_of(core: str) -> list[str]:
    """``LRUCache``, ``lru_cache`` as words. Only where all letters are ASCII does a capital begin one."""
    return _WORDS.findall(core) if core.isascii() else [part for part in core.split("_") if part]


def _snake(affix: str) -> str:
    return re.sub(r"(?<=[a-z}])(?=[A-Z{])", "_", affix).lower()


def _style(core: str, kind: str) -> str:
    if kind == "class":
        return "camel" if core[:1].isupper() or "_" not in core else "snake"
    if core.isupper() and len(core) > 1:
        return "upper"
    if "_" not in core and any(c.isupper() for c in core[1:]):
        return "mixed" if core[0].islower() else "camel"
    return "snake"


def _styled(snake: str, style: str, initials: Collection[str]) -> str:
    """The words in a style; ``initials`` (as in LRUCache) stay capitals where words are not set apart."""
    parts = [part for part in snake.split("_") if part]
    if style == "upper":
        return "_".join(parts).upper()
    if style == "camel":
        return "".join(_capital(part, initials) for part in parts)
    if style == "mixed":
        return parts[0] + "".join(_capital(part, initials) for part in parts[1:])
    return "_".join(parts)


def _capital(part: str, initials: Collection[str]) -> str:
    return part.upper() if part in initials else part[:1].upper() + part[1:]


_TOLD = {
    "yes": ("agreed", "granted"), "no": ("refused", "denied"), "true": ("so",), "deposit": ("credit",), "withdraw": ("debit",),
    "commit": ("confirm",), "rollback": ("undo",), "null": ("nothing",), "none": ("nothing",), "ok": ("fine",), "bad": ("wrong",),
    "way": ("route",), "raw": ("plain",), "std": ("ord",), "db": ("bin",), "transaction": ("exchange",), "rms": ("spread",),
}  # fmt: skip
"""Words that programs say or are told."""


def another_word(old: str, rng: random.Random) -> str:
    """A text of one or a few words in other ones, in the same style; "" where no near word is known."""
    made = []
    for part in old.split(" "):
        near = _TOLD.get(part.lower()) or tuple(w for w in _NEAR.get(part.lower(), ()) if "_" not in w)
        word = rng.choice(near) if near else part.lower()
        made.append(word.upper() if part.isupper() else word.capitalize() if part[:1].isupper() else word)
    text = " ".join(made)
    return "" if text.lower() == old.lower() else text
