"""The files that a module's behaviour depends on: the closure of its imports.

It follows imports of this package and of users' own studies anywhere in a file, except those for
type checking. It only reads the source text, so it is fast enough for each parse of the workflow.
"""

import ast
import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import moelaws
from moelaws.spec.errors import UserError
from moelaws.spec.references import folder, module_of, packages

PACKAGE = Path(moelaws.__file__).parent
# A study's entries as a registration holds them: kind -> name -> what the study says of it, and the
# digest of its code under a key of its own
Entries = dict[str, dict[str, dict[str, Any]]]
CODE = "code_digest"


@cache
def closure(*modules: str) -> tuple[Path, ...]:
    """Returns the source files of ``modules`` (dotted names) and of all that they import.

    The paths are absolute and sorted; a package counts with its ``__init__``, and a module with the
    table ``NAME.toml`` that it may have beside it.
    """
    for module in modules:
        source(module)
    ours = frozenset(package.partition(".")[0] for package in packages())
    seen: set[Path] = set()
    waiting = list(modules)
    while waiting:
        for name, path in _files(waiting.pop(), ours):
            if path not in seen:
                seen.add(path)
                waiting.extend(_imports(name, path))
    tables = (path.with_suffix(".toml") for path in seen)
    return tuple(sorted(seen.union(filter(Path.is_file, tables))))


def source(module: str) -> Path:
    stem = _stem(module)
    for path in (stem.with_suffix(".py"), stem / "__init__.py"):
        if path.is_file():
            return path
    raise UserError(f"there is no module {module} ({stem.with_suffix('.py')})")


def definition(package: str, reference: str) -> ast.FunctionDef:
    """Returns the syntax tree of the function that ``reference`` names, without importing it."""
    module, name = module_of(package, reference), reference.partition(":")[2]
    nodes = _tree(source(module)).body
    functions = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
    if name not in functions:
        public = ", ".join(known for known in functions if not known.startswith("_")) or "none"
        raise UserError(f"the module {module} has no function {name}; it has {public}")
    return functions[name]


def digest(paths: Iterable[Path]) -> str:
    """Returns 16 hex digits of the SHA-256 over contents and names relative to the package."""
    sha = hashlib.sha256()
    for path in paths:
        ours = path.is_relative_to(PACKAGE)
        name = path.relative_to(PACKAGE).as_posix() if ours else path.name
        sha.update(name.encode() + b"\0")
        sha.update(path.read_bytes() + b"\0")
    return sha.hexdigest()[:16]


@cache
def training_code() -> str:
    """Returns the digest of the code of a training: the packages corpus, model and training."""
    # It covers all their files, because a closure of imports would slow the start of each run.
    folders = ("corpus", "model", "training")
    return digest(sorted(path for name in folders for path in (PACKAGE / name).rglob("*.py")))


@cache
def _files(module: str, ours: frozenset[str]) -> tuple[tuple[str, Path], ...]:
    """Returns names and files that importing ``module`` reads: its own and its packages'.

    They are empty if its top-level package is not one of ``ours``, moelaws and users' own.
    """
    words, files = module.split("."), []
    if words[0] not in ours:
        return ()
    for depth in range(1, len(words) + 1):
        name = ".".join(words[:depth])
        stem = _stem(name)
        for path in (stem / "__init__.py", stem.with_suffix(".py")):
            if path.is_file():
                files.append((name, path))
    return tuple(files)


def _stem(module: str) -> Path:
    """Returns the path of ``module`` without a suffix."""
    top, *rest = module.split(".")
    return folder(top).joinpath(*rest)


@cache
def _imports(module: str, path: Path) -> tuple[str, ...]:
    """Returns what the file of ``module`` imports; each may be a module or a name in one."""
    within = module if path.name == "__init__.py" else module.rpartition(".")[0]
    names: list[str] = []
    nodes: list[ast.AST] = [_tree(path)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:  # a relative import, as in a user's own package
                above = within.split(".")[: len(within.split(".")) - node.level + 1]
                base = ".".join([*above, *filter(None, [base])])
            names += (base, *(f"{base}.{alias.name}" for alias in node.names))
        elif isinstance(node, _HOLD_STATEMENTS):
            test = node.test if isinstance(node, ast.If) else None
            if not (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"):
                nodes.extend(ast.iter_child_nodes(node))
    return tuple(names)


# An import is a statement, so expressions need no search.
_HOLD_STATEMENTS = (ast.stmt, ast.Module, ast.ExceptHandler, ast.match_case)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
