"""The filter against the kernel's own tables: every call that both machines know gets the same answer on both.

The tables are those of the kernel's headers (linux-libc-dev): x86-64's own, and the generic one, which is aarch64's. So
the filter for aarch64 is walked, call by call, on machines that are none.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_lock import AARCH64, ALLOW, X86_64, decide

from tiltyard.cells.inside import lock

GENERIC = Path("/usr/include/asm-generic/unistd.h")
X86 = [Path(f"/usr/include/{folder}asm/unistd_64.h") for folder in ("x86_64-linux-gnu/", "")]
ARGUMENTS = [
    (0, 0),
    (1, 1),
    (17, 0),
    (2, 1),
    (16, 3),
    (40, 1),
    (0x10000011, 0),
    (0x40000011, 0),
    (0x003D0F00, 0),
    (0xFFFFFFFF, 0),
    (0, 0x5412),
    (0, 0x541C),
    (0, 0x5401),
    (1000, 7),
]
"""First and second arguments: families, flags of clone, personalities, ioctls, pids."""


def table(path: Path) -> dict[str, int]:
    """Names and numbers in a header; those that differ by word size as 64-bit machines have them."""
    text = path.read_text()
    found = {n: int(v) for n, v in re.findall(r"#define\s+__NR(?:3264)?_(\w+)\s+(\d+)\b", text)}
    known = {
        name: number for name, number in found.items() if name not in ("syscalls", "arch_specific_syscall")
    }
    # the upper half of this range is each machine's own
    return {name: number for name, number in known.items() if not (244 <= number < 260 and path == GENERIC)}


@pytest.fixture(scope="module")
def generic() -> dict[str, int]:
    if not GENERIC.is_file():
        pytest.skip(f"no kernel headers here: {GENERIC} is in linux-libc-dev")
    # 403 to 423 are for 32-bit machines: times of 64 bits
    return {name: number for name, number in table(GENERIC).items() if not 403 <= number <= 423}


@pytest.fixture(scope="module")
def x86() -> dict[str, int]:
    for path in X86:
        if path.is_file():
            return table(path)
    pytest.skip("no kernel headers of x86-64 here: they are in linux-libc-dev")


def test_the_numbers_of_aarch64_are_the_kernels(generic: dict[str, int]) -> None:
    arch = lock._ARCHES["aarch64"]
    other = {"landlock_create": "landlock_create_ruleset", "landlock_add": "landlock_add_rule"}
    other |= {"landlock_restrict": "landlock_restrict_self"}
    for name, number in {**arch.calls, **arch.checked}.items():
        assert generic[other.get(name, name)] == number, name
    assert arch.refused <= set(generic.values()), arch.refused - set(generic.values())


def test_the_numbers_of_x86_64_are_the_kernels(x86: dict[str, int]) -> None:
    arch = lock._ARCHES["x86_64"]
    other = {"landlock_create": "landlock_create_ruleset", "landlock_add": "landlock_add_rule"}
    other |= {"landlock_restrict": "landlock_restrict_self"}
    for name, number in {**arch.calls, **arch.checked}.items():
        assert x86[other.get(name, name)] == number, name
    assert arch.refused <= set(x86.values()), arch.refused - set(x86.values())


def test_every_call_that_both_know_gets_the_same_answer_on_both(
    generic: dict[str, int], x86: dict[str, int]
) -> None:
    programs = lock.filter_program("x86_64"), lock.filter_program("aarch64")
    common = sorted(generic.keys() & x86.keys())
    assert len(common) > 250
    differ = {}
    common.remove(
        "shmdt"
    )  # refused with its like on one; on the other it finds nothing that could be given back
    for name in common:
        for words in ARGUMENTS:
            one = decide(programs[0], X86_64, x86[name], *words)
            two = decide(programs[1], AARCH64, generic[name], *words)
            if one != two:
                differ[name, words] = one, two
    assert differ == {}


def test_what_only_aarch64_knows_is_harmless_or_refused(generic: dict[str, int], x86: dict[str, int]) -> None:
    program = lock.filter_program("aarch64")
    own = {name for name in generic.keys() - x86.keys() if decide(program, AARCH64, generic[name]) == ALLOW}
    # x86-64 has them as newfstatat and sync_file_range
    assert own <= {"fstatat", "sync_file_range2"}, own
