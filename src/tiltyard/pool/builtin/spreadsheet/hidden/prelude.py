def raises(kind, function, *args, **kwargs):
    """Whether the call raises an exception of this kind."""
    try:
        function(*args, **kwargs)
    except kind:
        return True
    except Exception:
        return False
    return False


def filled(**contents):
    sheet = Spreadsheet()
    for cell, content in contents.items():
        sheet.set(cell, content)
    return sheet


def value_of(formula, **contents):
    sheet = filled(**contents)
    sheet.set("Z9999", formula)
    return sheet.get("Z9999")
