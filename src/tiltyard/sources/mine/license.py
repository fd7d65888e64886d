"""Under which licence is a repository? Read from its licence file, else from what it declares. SPDX ids, or ""."""

from __future__ import annotations

import re
from collections.abc import Mapping

_FILE = re.compile(r"(licen[cs]e|copying|unlicense)([-.](md|txt|rst|mit|bsd|apache))?", re.IGNORECASE)
_TEXTS: tuple[tuple[str, str], ...] = (
    ("Apache-2.0", r"apache license,? version 2\.0"),
    ("AGPL-3.0", r"gnu affero general public license version 3"),
    ("LGPL-3.0", r"gnu lesser general public license version 3"),
    ("LGPL-2.1", r"gnu lesser general public license version 2\.1"),
    ("GPL-3.0", r"gnu general public license version 3"),
    ("GPL-2.0", r"gnu general public license version 2"),
    ("MPL-2.0", r"mozilla public license,? version 2\.0"),
    ("Unlicense", r"this is free and unencumbered software released into the public domain"),
    ("CC0-1.0", r"cc0 1\.0 universal"),
    ("PSF-2.0", r"python software foundation license version 2"),
    ("MIT", r"permission is hereby granted,? free of charge,? to any person obtaining a copy"),
    (
        "ISC",
        r"permission to use,? copy,? modify,? and/?(or)? distribute this software for any purpose with or without fee",
    ),
)
_BSD = r"redistribution and use in source and binary forms"
_NOT_ENDORSE = (
    r"(neither the name|names? of (the|its) .{0,200}? may not be used|contributors may (not )?be used)"
)
_DECLARED: tuple[tuple[str, str], ...] = (
    ("Apache-2.0", r"apache"),
    ("MIT", r"\bmit\b"),
    ("BSD-3-Clause", r"\b(new|modified|3-clause)\s+bsd|bsd[- ]3"),
    ("BSD-2-Clause", r"\b(simplified|2-clause)\s+bsd|bsd[- ]2"),
    ("LicenseRef-BSD", r"bsd"),
    ("MPL-2.0", r"mozilla|\bmpl"),
    ("LGPL-3.0", r"lgplv?3|lesser general public license v3"),
    ("GPL-3.0", r"gplv?3|general public license v3"),
    ("GPL-2.0", r"gplv?2|general public license v2"),
)


def license_of(files: Mapping[str, bytes]) -> str:
    """The SPDX id of the licence of these files; "" if there is none that is known."""
    for path in sorted(files):
        if "/" not in path and _FILE.fullmatch(path):
            text = " ".join(files[path].decode("utf-8", "replace").lower().split())
            if (found := _of_text(text)) is not None:
                return found
    return _declared(files)


def _of_text(text: str) -> str | None:
    if re.search(_BSD, text):
        return "BSD-3-Clause" if re.search(_NOT_ENDORSE, text) else "BSD-2-Clause"
    heads = [(match.start(), name) for name, words in _TEXTS if (match := re.search(words, text))]
    return min(heads)[1] if heads else None


def _declared(files: Mapping[str, bytes]) -> str:
    for path in ("pyproject.toml", "setup.cfg", "setup.py"):
        for line in files.get(path, b"").decode("utf-8", "replace").splitlines():
            match = re.search(r"licen[cs]e\b[^\n]*", line, re.IGNORECASE)
            if match is None:
                continue
            said = match[0].lower()
            found = next((name for name, words in _DECLARED if re.search(words, said)), None)
            if found is not None:
                return found
    return ""
