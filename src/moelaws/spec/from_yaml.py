"""YAML as users write it: the one reader of it, for data only, with limits.

The limits are far beyond what anybody writes. They hold before anything recurses, for a text that
is nested deeply enough ends the interpreter itself.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from moelaws.spec.errors import UserError
from moelaws.spec.from_json import DEEPEST, TOO_DEEP

LARGEST = 1_000_000  # values of one YAML text, aliases followed

_TAG = "tag:yaml.org,2002:"
_OTHERWISE = ("int", "float", "timestamp", "value")


def read_yaml(path: Path) -> dict[str, Any]:
    """Returns the mapping in a YAML file.

    Raises:
        UserError: for a missing or empty file, broken YAML, a repeated key, or what is too deep.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; run from the repository's root") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: this is not valid YAML: byte {error.start} is not UTF-8"
        ) from None
    data = parse_yaml(text, path)
    if not isinstance(data, dict):
        raise UserError(f"{path} must hold keys and values, not a {type(data).__name__}")
    return data


def parse_yaml(text: str, where: object) -> Any:
    """Returns the data in a YAML text; messages name it as ``where``.

    A time such as 1:30:00, a date and a number such as 010 stay texts: YAML 1.1 makes 5400 of the
    first and 8 of the last, and nobody means that.

    Raises:
        UserError: for broken YAML, a repeated key, a tag such as !!set, or what is too deep or
            too large.
    """
    try:
        _check_size(text, where)
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = error.problem or error.context
        raise UserError(f"{where}: this is not valid YAML: {line}{problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise UserError(
            f"{where}: this is not valid YAML: {' '.join(str(error).split())}"
        ) from None


def _check_size(text: str, where: object) -> None:
    """Refuses a text by its stream of events, which takes no recursion whatever its depth."""
    known: dict[str, tuple[int, int]] = {}  # anchor -> its values and levels
    open_: list[tuple[str, int, int]] = [("", 0, 0)]
    for event in yaml.parse(text, _Loader):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if tag := getattr(event, "tag", None):
            raise UserError(f"{where}: line {line}: {tag} is a tag: write the plain value instead")
        values = levels = 0
        anchor: str = getattr(event, "anchor", None) or ""
        if isinstance(event, yaml.CollectionStartEvent):
            known.pop(anchor, None)
            open_.append((anchor, 1, 1))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, values, levels = open_.pop()
            if anchor:
                known[anchor] = (values, levels)
            levels += 1
        elif isinstance(event, yaml.AliasEvent):
            if anchor not in known:
                raise UserError(f"{where}: line {line}: *{anchor} names no &{anchor} before it")
            values, levels = known[anchor]
            levels += 1
        elif isinstance(event, yaml.ScalarEvent):
            values = 1
            if anchor:
                known[anchor] = (1, 0)
        above, own, below = open_[-1]
        open_[-1] = above, own + values, max(below, levels)
        if len(open_) - 2 + open_[-1][2] > DEEPEST:
            raise UserError(f"{where}: line {line}: {TOO_DEEP}")
        if open_[-1][1] > LARGEST:
            raise UserError(f"{where}: line {line}: more than {LARGEST:,} values, aliases followed")


# First letter -> tags of the plain texts that may begin so, but for those below and for dates.
_FORMS = {
    first: [(tag, form) for tag, form in forms if tag.partition(_TAG)[2] not in _OTHERWISE]
    for first, forms in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Plain data, in which a repeated key is a mistake: YAML silently keeps the last of them."""

    yaml_implicit_resolvers = _FORMS

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        # A merge (<<) may be overridden by a key; two keys of one mapping may not be the same.
        merge = f"{_TAG}merge"
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag != merge and isinstance(key_node, yaml.ScalarNode):
                key = self.construct_object(key_node, deep=deep)
                if key in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"key {key!r} stands twice", key_node.start_mark
                    )
                seen.add(key)
        return super().construct_mapping(node, deep=deep)  # type: ignore[no-any-return]


# As YAML 1.1, but for base 60 and for octal numbers; longer whole numbers stay texts.
_Loader.add_implicit_resolver(
    f"{_TAG}int",
    re.compile(r"[-+]?(0|[1-9][0-9_]{0,99}|0x[0-9a-fA-F_]{1,99}|0b[01_]{1,99})$"),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver(
    f"{_TAG}float",
    re.compile(
        r"[-+]?([0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)([eE][-+][0-9]+)?$"
        r"|[-+]?\.(inf|Inf|INF)$|\.(nan|NaN|NAN)$"
    ),
    list("-+0123456789."),
)
