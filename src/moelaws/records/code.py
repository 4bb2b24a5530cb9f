"""Which files a module's behaviour depends on: the closure of its imports.

Followed are imports of this package and of users' own studies, wherever they stand in a file, but
for type checking. All is read from the source text and nothing is imported: the workflow asks for
this while it is parsed.
"""

import ast
import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TypeGuard

import moelaws
from moelaws.spec.errors import UserError
from moelaws.spec.references import folder, module_of, packages

PACKAGE = Path(moelaws.__file__).parent


@cache
def closure(*modules: str) -> tuple[Path, ...]:
    """Source files of ``modules`` (dotted names) and of all that they import.

    Packages count with their ``__init__``. Sorted, absolute.
    """
    for module in modules:
        source(module)
    ours = _ours()
    seen: set[Path] = set()
    waiting = list(modules)
    while waiting:
        for name, path in _files(waiting.pop(), ours):
            if path not in seen:
                seen.add(path)
                waiting.extend(_imports(name, path))
    return tuple(sorted(seen))


def source(module: str) -> Path:
    """The file of ``module``."""
    stem = _stem(module)
    for path in (stem.with_suffix(".py"), stem / "__init__.py"):
        if path.is_file():
            return path
    raise UserError(f"there is no module {module} ({stem.with_suffix('.py')})")


def definition(package: str, reference: str) -> ast.FunctionDef:
    """The function that ``reference`` names, by its text: importing it may take long."""
    module, name = module_of(package, reference), reference.partition(":")[2]
    functions = {node.name: node for node in _tree(source(module)).body if _is_function(node)}
    if name not in functions:
        public = ", ".join(known for known in functions if not known.startswith("_")) or "none"
        raise UserError(f"the module {module} has no function {name}; it has {public}")
    return functions[name]


def digest(paths: Iterable[Path]) -> str:
    """First 16 hex digits of SHA-256 over names (relative to the package) and contents."""
    sha = hashlib.sha256()
    for path in paths:
        ours = path.is_relative_to(PACKAGE)
        name = path.relative_to(PACKAGE).as_posix() if ours else path.name
        sha.update(name.encode() + b"\0")
        sha.update(path.read_bytes() + b"\0")
    return sha.hexdigest()[:16]


@cache
def training_code() -> str:
    """Digest of the code that decides what a training computes: corpus, model and training."""
    # All of their files, not the closure of their imports: each run's start pays for it.
    folders = ("corpus", "model", "training")
    return digest(sorted(path for name in folders for path in (PACKAGE / name).rglob("*.py")))


@cache
def _files(module: str, ours: frozenset[str]) -> tuple[tuple[str, Path], ...]:
    """What importing ``module`` reads: its own file and the packages' above it, with their names.

    Nothing where its top-level package is none of ``ours``, moelaws and users' own.
    """
    parts, files = module.split("."), []
    if parts[0] not in ours:
        return ()
    for depth in range(1, len(parts) + 1):
        name = ".".join(parts[:depth])
        stem = _stem(name)
        for path in (stem / "__init__.py", stem.with_suffix(".py")):
            if path.is_file():
                files.append((name, path))
    return tuple(files)


def _ours() -> frozenset[str]:
    """The top-level packages of moelaws and of users' own studies."""
    return frozenset(package.partition(".")[0] for package in packages())


def _stem(module: str) -> Path:
    """Where ``module`` lies, without a suffix."""
    top, *rest = module.split(".")
    return folder(top).joinpath(*rest)


@cache
def _imports(module: str, path: Path) -> tuple[str, ...]:
    """What the file of ``module`` imports: each may be a module or a name in one."""
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
        elif isinstance(node, _HOLD_STATEMENTS) and not _only_for_types(node):
            nodes.extend(ast.iter_child_nodes(node))
    return tuple(names)


# An import is a statement: no expression is looked into.
_HOLD_STATEMENTS = (ast.stmt, ast.Module, ast.ExceptHandler, ast.match_case)


def _only_for_types(node: ast.AST) -> bool:
    test = node.test if isinstance(node, ast.If) else None
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _is_function(node: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    return isinstance(node, ast.FunctionDef)
