"""Which column of a table stands for which variable of a law."""

from __future__ import annotations

from collections.abc import Mapping

from moelaws.laws.base import Law
from moelaws.spec.errors import UserError


def mapped(law: Law, mapping: Mapping[str, str]) -> list[tuple[str, str]]:
    """(variable, column) for each variable and the response; a variable is its own column.

    Raises:
        UserError: for a mapping of something that is no variable of the law.
    """
    known = [variable.name for variable in (*law.variables, law.response)]
    for name in mapping:
        if name not in known:
            raise UserError(
                f"mapping of {name!r}: not a variable of {law.id}; it has {', '.join(known)}"
            )
    return [(name, mapping.get(name, name)) for name in known]
