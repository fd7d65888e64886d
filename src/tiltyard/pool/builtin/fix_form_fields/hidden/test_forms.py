from forms.fields import Email, Field, Mistake, Number, Text


def test_own_fields_only():
    assert form_names(Contact) == ["email", "message", "age"]
    assert form_names(Newsletter) == ["email", "name"]


def test_base_class_fields_first():
    assert form_names(SignUp) == ["email", "name", "password", "seats"]


def test_field_declared_again():
    long = "x" * 15
    assert submit(Newsletter(), {"email": "a@b.cd", "name": long})[0] is True
    got = submit(SignUp(), {"email": "a@b.cd", "name": long, "password": "p", "seats": "1"})
    assert got[2] == {"name": "is too long"}
    assert submit(SignUp(), {"email": "a@b.cd", "password": "p", "seats": "1"})[2] == {"name": "is missing"}


def test_required_email():
    assert submit(Newsletter(), {}) == (False, {"name": None}, {"email": "is missing"})
    assert submit(Newsletter(), {"email": "  "})[2] == {"email": "is missing"}


def test_optional_email():
    assert submit(Contact(), {"message": "m"}) == (True, {"email": None, "message": "m", "age": None}, {})
    assert submit(Contact(), {"message": "m", "email": "me"})[2] == {"email": "is not an address"}


def test_email_required_attribute():
    assert Email().required is True
    assert Email(required=False).required is False
    assert Email(5, False).clean("") is None


def test_email_addresses():
    for text in ("a@b.c", "  John.Doe@Mail.Example.COM ", "x+y@z-1.org"):
        assert Email().clean(text) == text.strip().lower()
    for text in ("a", "@b.c", "a@b", "a@@b.c", "a b@c.d", "a@b..c", "a@.b", "a@b.c@d.e"):
        assert str(raises(Mistake, Email().clean, text)) == "is not an address"


def test_email_too_long():
    assert str(raises(Mistake, Email().clean, "a" * 50 + "@b.cd")) == "is too long"
    assert str(raises(Mistake, Email(6).clean, "aaa@b.c")) == "is too long"
    assert Email(7).clean("aaa@b.c") == "aaa@b.c"


def test_optional_number_left_empty():
    assert Number(required=False).clean("") is None
    assert Number(least=5, required=False).clean("  ") is None


def test_required_number_left_empty():
    assert str(raises(Mistake, Number().clean, "")) == "is missing"
    got = submit(SignUp(), {"email": "a@b.cd", "name": "n", "password": "p"})
    assert got[2] == {"seats": "is missing"}


def test_numbers():
    assert Number().clean(" 12 ") == 12
    assert Number().clean("-3") == -3
    assert Number(least=0).clean("0") == 0
    for text in ("1.5", "abc", "1 2", "--1", "²"):
        assert str(raises(Mistake, Number().clean, text)) == "is not a number"
    assert str(raises(Mistake, Number(least=1).clean, "0")) == "is too small"


def test_old_mistakes_are_gone():
    form = Contact()
    assert submit(form, {"age": "x"})[2] == {"message": "is missing", "age": "is not a number"}
    assert submit(form, {"message": "m"})[2] == {}
    assert submit(form, {"message": "m", "age": "4"}) == (True, {"email": None, "message": "m", "age": 4}, {})


def test_old_values_are_gone():
    form = Contact()
    submit(form, {"message": "m", "age": "7"})
    assert submit(form, {"age": "8"}) == (False, {"email": None, "age": 8}, {"message": "is missing"})


def test_forms_do_not_share_results():
    one, two = Contact(), Contact()
    submit(one, {"age": "x"})
    assert (dict(two.errors), dict(two.values)) == ({}, {})
    assert submit(two, {"message": "m"})[0] is True
    assert dict(one.errors) == {"message": "is missing", "age": "is not a number"}


def test_unknown_names_are_ignored():
    assert submit(Newsletter(), {"email": "a@b.cd", "password": "p", "seats": "x"}) == (
        True,
        {"email": "a@b.cd", "name": None},
        {},
    )


def test_text_fields():
    assert Text(3).clean(" abc ") == "abc"
    assert str(raises(Mistake, Text(3).clean, "abcd")) == "is too long"
    assert str(raises(Mistake, Field().clean, " ")) == "is missing"
    assert Field(required=False).clean(" ") is None


def test_plain_field_gives_its_text():
    assert Field().clean("  some text ") == "some text"


def test_longest_address_if_nothing_else_is_said():
    assert Email().clean("a" * 45 + "@b.cd") == "a" * 45 + "@b.cd"
    assert str(raises(Mistake, Email().clean, "a" * 46 + "@b.cd")) == "is too long"


def test_longest_text_if_nothing_else_is_said():
    assert Text().clean("a" * 100) == "a" * 100
    assert str(raises(Mistake, Text().clean, "a" * 101)) == "is too long"
