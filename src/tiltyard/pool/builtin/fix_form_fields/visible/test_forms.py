def test_newsletter_has_its_own_fields():
    assert form_names(Newsletter) == ["email", "name"]


def test_optional_number():
    good, values, errors = submit(Contact(), {"email": "Ann@Example.org", "message": " hi "})
    assert (good, errors) == (True, {})
    assert values == {"email": "ann@example.org", "message": "hi", "age": None}


def test_missing_text():
    assert submit(Contact(), {"age": "3"})[2] == {"message": "is missing"}
