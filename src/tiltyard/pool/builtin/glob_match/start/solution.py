def glob_match(pattern, text):
    """Say whether all of ``text`` matches the wildcard ``pattern``."""
    raise NotImplementedError
