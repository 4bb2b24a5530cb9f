"""Which files a module's behaviour depends on: the closure of its imports within this package.

Read from the source text, nothing is imported: the workflow asks for this while it is parsed.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import moelaws
from moelaws.spec.errors import UserError

PACKAGE = Path(moelaws.__file__).parent


@cache
def closure(*modules: str) -> tuple[Path, ...]:
    """Source files of ``modules`` (dotted names) and of all that they import from this package.

    Packages count with their ``__init__``. Sorted, absolute.

    Raises:
        UserError: where one of ``modules`` is not there.
    """
    for module in modules:
        stem = PACKAGE.joinpath(*module.split(".")[1:])
        if not (stem.with_suffix(".py").is_file() or (stem / "__init__.py").is_file()):
            raise UserError(f"no module {module} ({stem.with_suffix('.py')})")
    seen: set[Path] = set()
    waiting = [path for module in modules for path in _files(module)]
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting.extend(_imports(path))
    return tuple(sorted(seen))


def digest(paths: Iterable[Path]) -> str:
    """First 16 hex digits of SHA-256 over names (relative to the package) and contents."""
    sha = hashlib.sha256()
    for path in paths:
        sha.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0")
        sha.update(path.read_bytes() + b"\0")
    return sha.hexdigest()[:16]


@cache
def training_code() -> str:
    """Digest of the code that decides what a training computes: corpus, model and training."""
    # All of their files, not the closure of their imports: each run's start pays for it.
    folders = ("corpus", "model", "training")
    return digest(sorted(path for name in folders for path in (PACKAGE / name).rglob("*.py")))


def _files(module: str) -> list[Path]:
    """Files that importing ``module`` reads: its own and the packages' above it."""
    parts = module.split(".")[1:]
    files = [PACKAGE / "__init__.py"]
    for depth in range(1, len(parts) + 1):
        stem = PACKAGE.joinpath(*parts[:depth])
        for path in (stem / "__init__.py", stem.with_suffix(".py")):
            if path.is_file():
                files.append(path)
    return files


@cache
def _imports(path: Path) -> tuple[Path, ...]:
    files: list[Path] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "moelaws":
                files.extend(_files(name))
    return tuple(files)
