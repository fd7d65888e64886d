UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


def format_duration(seconds):
    """Return a number of seconds in words, such as "1 hour and 2 seconds"."""
    if seconds < 0:
        raise ValueError("a duration can't be negative")
    parts = []
    for name, size in UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {name}" + ("" if count == 1 else "s"))
    if not parts:
        return "0 seconds"
    if len(parts) == 1:
        return parts[0]
    return ", ".join(parts[:-1]) + " and " + parts[-1]
