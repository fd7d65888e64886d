from itertools import zip_longest


def compare_versions(left, right):
    """Return -1, 0 or 1 as version ``left`` is older than, the same as or newer than ``right``."""
    for a, b in zip_longest(_parts(left), _parts(right), fillvalue=0):
        if a != b:
            return -1 if a < b else 1
    return 0


def _parts(version):
    parts = version.split(".")
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"{version!r} is not a version number")
    return [int(part) for part in parts]
