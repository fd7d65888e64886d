"""Other right solutions of bundled tasks, written another way than the reference: each is worth 1."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tiltyard.pool import Pool, load
from tiltyard.referee import Referee
from tiltyard.task import Files

EQUIVALENT = {
    "median": """
        import heapq

        def median(values):
            if len(values) == 0:
                raise ValueError
            half = [(v, i) for i, v in enumerate(values)]
            heapq.heapify(half)
            ordered = [heapq.heappop(half)[0] for _ in range(len(half))]
            while len(ordered) > 2:
                ordered = ordered[1:-1]
            return ordered[0] if len(ordered) == 1 else (ordered[0] + ordered[1]) / 2
        """,
    "rle_encode": """
        import re

        def rle_encode(text):
            return [(m.group(1), len(m.group(0))) for m in re.finditer(r"(.)\\1*", text, re.DOTALL)]
        """,
    "merge_intervals": """
        def merge_intervals(intervals):
            events = []
            for start, end in intervals:
                if start > end:
                    raise ValueError("turned round")
                events += [(start, 0), (end, 1)]
            out, depth, begun = [], 0, None
            for point, kind in sorted(events):
                if kind == 0:
                    begun = point if depth == 0 else begun
                    depth += 1
                else:
                    depth -= 1
                    if depth == 0:
                        out.append((begun, point))
            return out
        """,
    "roman_to_int": """
        ONES = ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"]
        TENS = ["", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX", "XC"]
        HUNDREDS = ["", "C", "CC", "CCC", "CD", "D", "DC", "DCC", "DCCC", "CM"]
        ALL = {
            "M" * m + h + t + o: 1000 * m + 100 * i + 10 * j + k
            for m in range(4) for i, h in enumerate(HUNDREDS) for j, t in enumerate(TENS) for k, o in enumerate(ONES)
        }
        del ALL[""]

        def roman_to_int(numeral):
            try:
                return ALL[numeral]
            except KeyError:
                raise ValueError(numeral) from None
        """,
    "lru_cache": """
        class Link:
            def __init__(self):
                self.before = self.after = self

        class LRUCache:
            def __init__(self, capacity):
                if capacity < 1:
                    raise ValueError("no room")
                self.room, self.links, self.ring = capacity, {}, Link()

            def _out(self, link):
                link.before.after, link.after.before = link.after, link.before

            def _front(self, link):
                link.before, link.after = self.ring, self.ring.after
                self.ring.after.before = link
                self.ring.after = link

            def get(self, key, default=None):
                link = self.links.get(key)
                if link is None:
                    return default
                self._out(link)
                self._front(link)
                return link.value

            def put(self, key, value):
                dropped = None
                if key in self.links:
                    self._out(self.links.pop(key))
                elif len(self.links) >= self.room:
                    last = self.ring.before
                    self._out(last)
                    del self.links[last.key]
                    dropped = last.key
                link = Link()
                link.key, link.value = key, value
                self.links[key] = link
                self._front(link)
                return dropped

            def delete(self, key):
                self._out(self.links.pop(key))

            def keys(self):
                out, link = [], self.ring.after
                while link is not self.ring:
                    out.append(link.key)
                    link = link.after
                return out

            def __contains__(self, key):
                return key in self.links

            def __len__(self):
                return len(self.links)
        """,
    "prime_factors": """
        from collections import Counter
        from math import isqrt

        def smallest(n):
            return next((d for d in range(2, isqrt(n) + 1) if n % d == 0), n)

        def prime_factors(n):
            if n <= 0:
                raise ValueError(n)
            found = Counter()
            while n > 1:
                found[d := smallest(n)] += 1
                n //= d
            return sorted(found.items())
        """,
    "is_balanced_brackets": """
        import re

        def is_balanced_brackets(text):
            left = re.sub(r"[^][(){}]", "", text)
            depth = []
            for c in left:
                if c in "([{":
                    depth.append({"(": ")", "[": "]", "{": "}"}[c])
                elif not depth or depth.pop() != c:
                    return False
            return len(depth) == 0
        """,
    "io_word_count": """
        import re
        import sys

        counts = {}
        for word in re.split(r"(?:\\d|_|\\W)+", sys.stdin.read()):
            for part in "".join(c if c.isalpha() else "\\0" for c in word).split("\\0"):
                if part:
                    counts[part.casefold()] = counts.get(part.casefold(), 0) + 1
        print(f"total {sum(counts.values())}\\ndistinct {len(counts)}")
        by_count = {}
        for word, count in counts.items():
            by_count.setdefault(count, []).append(word)
        for count in sorted(by_count, reverse=True):
            for word in sorted(by_count[count]):
                print(f"{count} {word}")
        """,
}


@pytest.fixture(scope="module")
def pool() -> Pool:
    return load("builtin", tasks=list(EQUIVALENT))


@pytest.mark.parametrize("name", EQUIVALENT)
def test_another_algorithm_is_worth_as_much(wall, pool: Pool, name: str) -> None:
    task = pool[name]
    source = dedent(EQUIVALENT[name])
    assert source.split() != task.reference["solution.py"].decode().split()
    verdict = Referee(wall, controls=True).grade(task, Files({"solution.py": source}))
    assert [o for o in verdict.outcomes if not o.passed] == []
    assert verdict.reward == 1.0 and "negative_control_passed" not in verdict.flags
