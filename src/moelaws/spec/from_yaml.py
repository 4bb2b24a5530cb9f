"""The package's only reader of YAML, as users write it; it reads nothing but data."""

import re
from pathlib import Path
from typing import Any

import yaml

from moelaws.spec.errors import UserError
from moelaws.spec.from_disk import read_bytes

DEEPEST = 100  # levels; libyaml recurses, and tens of thousands of levels end the interpreter
LONGEST = 10**7  # bytes
LARGEST = 100_000  # values in a text, each alias counted as what it stands for


def read_yaml(path: Path) -> dict[str, Any]:
    """Returns the mapping in a YAML file."""
    try:
        text = read_bytes(path, LONGEST).decode("utf-8")
    except FileNotFoundError:
        is_elsewhere = path.name == "config.yaml" or not Path("config").is_dir()
        hint = "; run from the repository's root" if is_elsewhere else ""
        raise UserError(f"{path}: no such file{hint}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    data = parse_yaml(text, path)
    if not isinstance(data, dict):
        raise UserError(f"{path} must hold keys and values, not a {type(data).__name__}")
    return data


def parse_yaml(text: str, where: object) -> Any:
    """Returns the data in a YAML text; messages name it as ``where``."""
    try:
        _refuse_too_much(text)
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise _invalid(where, f"{line}{error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError) as error:  # an impossible date, or ``int``'s limit
        raise _invalid(where, " ".join(str(error).partition("; use sys.")[0].split())) from None


def _refuse_too_much(text: str) -> None:
    """Refuses, before it is built, what is too deep, or too large with its aliases expanded."""
    sizes: dict[str | None, int] = {}  # anchor -> size of its node
    nodes: list[tuple[str | None, int]] = [(None, 0)]  # the open nodes: anchor, size so far
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            nodes.append((event.anchor, 1))
            if len(nodes) > DEEPEST + 1:
                raise ValueError(f"nested more than {DEEPEST} levels deep")
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, size = nodes.pop()
        elif isinstance(event, yaml.NodeEvent):
            anchor, size = event.anchor, 1
        else:
            continue
        if isinstance(event, yaml.AliasEvent):
            size = sizes.get(anchor, 0)
        else:
            sizes[anchor] = size
        above, total = nodes.pop()
        nodes.append((above, total + size))
        if total + size > LARGEST:
            raise ValueError(f"it has more than {LARGEST:,} values, its aliases counted as such")


def _text(loader: Any, node: Any) -> str:
    text: str = loader.construct_scalar(node)
    if "\0" in text:  # no path and no name can have one
        raise yaml.constructor.ConstructorError(None, None, "a text has a NUL", node.start_mark)
    return text


def _number(loader: Any, node: Any) -> Any:
    """Returns an int or a float; as in YAML 1.2, 010 is not octal, and 1:30 and 1_000 are texts."""
    text = loader.construct_scalar(node)
    if ":" in text or "_" in text or re.fullmatch("[-+]?0[0-9]+", text):
        return text
    whole = node.tag.endswith(":int")
    return (loader.construct_yaml_int if whole else loader.construct_yaml_float)(node)


def _invalid(where: object, problem: str) -> UserError:
    return UserError(f"{where}: this is not valid YAML: {problem}")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Loads plain data and refuses a repeated key, of which YAML silently keeps the last."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:  # merges (<<) come later, for a key may override a merged one
            if (name := str(key.value)) in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {name!r} stands twice", key.start_mark
                )
            seen.add(name)
        return super().construct_mapping(node, deep=deep)  # type: ignore[no-any-return]


_Loader.add_constructor("tag:yaml.org,2002:str", _text)
for _tag in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _number)
