"""The forms of our site."""

from __future__ import annotations

from .fields import Email, Number, Text
from .form import Form


class Newsletter(Form):
    email = Email()
    name = Text(20, required=False)


class Contact(Form):
    email = Email(required=False)
    message = Text(200)
    age = Number(least=0, required=False)


class SignUp(Newsletter):
    password = Text(30)
    name = Text(10)
    seats = Number(least=1)


def form_names(form: type[Form]) -> list[str]:
    """The names of a form's fields in the order in which they are shown."""
    return list(form.fields)


def submit(form: Form, typed: dict[str, str]) -> tuple[bool, dict[str, object], dict[str, str]]:
    """Check a form; (whether all is well, values, errors) as copies."""
    good = form.check(typed)
    return good, dict(form.values), dict(form.errors)
