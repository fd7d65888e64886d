def raises(kind, function, *args, **kwargs):
    """Whether the call raises an exception of this kind."""
    try:
        function(*args, **kwargs)
    except kind:
        return True
    except Exception:
        return False
    return False


from fractions import Fraction


def c(p):
    """The coefficients, which must all be Fractions."""
    result = p.coefficients()
    assert all(type(value) is Fraction for value in result)
    return result
