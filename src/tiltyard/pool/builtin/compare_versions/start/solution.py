def compare_versions(left, right):
    """Return -1, 0 or 1 as version ``left`` is older than, the same as or newer than ``right``."""
    raise NotImplementedError
