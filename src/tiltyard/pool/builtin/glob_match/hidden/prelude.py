def raises(kind, function, *args, **kwargs):
    """Whether the call raises an exception of this kind."""
    try:
        function(*args, **kwargs)
    except kind:
        return True
    except Exception:
        return False
    return False


def matches(pattern, *texts):
    """Which of the texts match."""
    answers = [glob_match(pattern, text) for text in texts]
    assert all(type(answer) is bool for answer in answers)
    return [text for text, answer in zip(texts, answers, strict=True) if answer]
