"""Forms: classes whose attributes are fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from .fields import Field, Mistake


class Form:
    """A subclass declares its fields as class attributes.

    ``fields`` of a form class has its own fields and those of its base classes, base classes' first, in the order of
    declaration; one that is declared again replaces that of the base class at the same position.
    """

    fields: ClassVar[dict[str, Field]] = {}

    errors: dict[str, str] = {}
    values: dict[str, Any] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, value in vars(cls).items():
            if isinstance(value, Field):
                cls.fields[name] = value

    def check(self, typed: Mapping[str, str]) -> bool:
        """Check typed texts (a missing one is an empty one; unknown names are ignored); whether all is well.

        Afterwards ``errors`` has the mistakes of this check by name, and ``values`` the values of the fields without
        one; both in the order of the fields.
        """
        for name, field in self.fields.items():
            try:
                self.values[name] = field.clean(typed.get(name, ""))
            except Mistake as mistake:
                self.errors[name] = str(mistake)
        return not self.errors
