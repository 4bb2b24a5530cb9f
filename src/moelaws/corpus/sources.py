"""Which files a corpus is made of, and their digest. Light: the Snakefile asks at every parse."""

from __future__ import annotations

import codecs
import glob
import hashlib
import json
import os
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from moelaws.records.files import write_json
from moelaws.spec.errors import UserError

BLOCK = 1 << 20  # bytes read at once
SETTLED = 2_000_000_000  # ns; a file younger than this may yet change within its time stamp

# Parts of the standard library that are left out, although sys.stdlib_module_names lists them:
STDLIB_WITHOUT = {
    # packaged apart by Debian and others, so not everywhere
    "distutils",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "tkinter",
    "turtledemo",
    # of one platform only
    "msilib",
    # tables of character codes, near-copies of each other: what is held out would be known
    "encodings",
}
TEST_FOLDERS = {"test", "tests"}  # shipped inside ctypes, unittest, ... by some builds only


@dataclass(frozen=True)
class Sources:
    """The text files of a corpus, sorted by name.

    A name is a path relative to the deepest folder that holds all files, with forward slashes:
    the same files in another place are the same corpus.
    """

    name: str  # "stdlib" or "text"
    files: tuple[tuple[str, Path], ...]
    bytes: int  # of all files

    def digest(self, cache: Path | None = None) -> str:
        """SHA-256 (hex) over the names and contents of all files.

        ``cache`` is a JSON file of the files' own digests by path, size and modification time; a
        cache that cannot be read or written costs time and nothing else.

        Raises:
            UserError: for a file that cannot be read or is not UTF-8.
        """
        known = _load(cache)
        total, fresh, now = hashlib.sha256(), {}, time.time_ns()
        for name, path in self.files:
            try:
                stat = path.stat()
                entry = known.get(str(path))
                if entry is None or entry[:2] != [stat.st_size, stat.st_mtime_ns]:
                    entry = [stat.st_size, stat.st_mtime_ns, _file_digest(path)]
                    if now - stat.st_mtime_ns > SETTLED:
                        fresh[str(path)] = entry
            except OSError as error:
                raise UserError(f"{path}: cannot be read: {error.strerror}") from None
            total.update(os.fsencode(name) + b"\0" + str(entry[2]).encode() + b"\n")
        if fresh:
            _save(cache, known | fresh)
        return total.hexdigest()


def resolve(setting: str | list[str] | tuple[str, ...], base: Path) -> Sources:
    """The files that a config's corpus setting stands for.

    ``setting`` is "stdlib", or one or several paths or globs (``**`` goes into folders) of UTF-8
    text files, relative to ``base``.

    Raises:
        UserError: for a missing file, a glob without a match, a folder, or no text at all.
    """
    patterns = list(setting) if isinstance(setting, list | tuple) else [setting]
    if patterns == ["stdlib"]:
        root = Path(sysconfig.get_path("stdlib"))
        return _sources("stdlib", sorted(_stdlib(root)), root, f"corpus 'stdlib' ({root})")
    if not patterns or not all(isinstance(p, str) and p for p in patterns):
        raise UserError(f"corpus is {setting!r}; write stdlib, or paths or globs of text files")
    if "stdlib" in patterns:
        raise UserError(
            "corpus: stdlib cannot be mixed with files (for a file of that name: ./stdlib)"
        )
    paths = sorted({path for pattern in patterns for path in _matches(pattern, base)})
    root = Path(os.path.commonpath([path.parent for path in paths]))
    return _sources("text", paths, root, f"corpus {', '.join(patterns)}")


def _sources(name: str, paths: list[Path], root: Path, where: str) -> Sources:
    size = sum(path.stat().st_size for path in paths)
    if size == 0:
        files = f"its {len(paths)} files are empty" if paths else "no Python sources there"
        raise UserError(f"{where}: no text: {files}; name text files instead")
    return Sources(name, tuple((p.relative_to(root).as_posix(), p) for p in paths), size)


def _matches(pattern: str, base: Path) -> list[Path]:
    """Absolute paths of the files that ``pattern`` names."""
    full = os.path.abspath(base / os.path.expanduser(pattern))
    if os.path.isfile(full):  # first, so that a name with brackets in it is itself
        return [Path(full)]
    if os.path.isdir(full):
        raise UserError(
            f"corpus: {pattern} is a folder; name its text files, "
            f"such as {pattern.rstrip('/')}/**/*.txt"
        )
    if not glob.has_magic(pattern):
        raise UserError(f"corpus: {pattern}: no such file in {base.absolute()}; check the path")
    paths = [Path(p) for p in glob.glob(full, recursive=True) if os.path.isfile(p)]
    if not paths:
        raise UserError(
            f"corpus: {pattern} matches no file in {base.absolute()}; "
            "check the pattern (** goes into folders)"
        )
    return paths


def _stdlib(root: Path) -> Iterator[Path]:
    # The interpreter's own list of names leaves out the build's _sysconfigdata, a
    # distribution's sitecustomize and whatever else was put into the folder.
    for module in sys.stdlib_module_names - STDLIB_WITHOUT:
        if (single := root / f"{module}.py").is_file():
            yield single
        for folder, inner, files in os.walk(root / module):
            inner[:] = [name for name in inner if name not in TEST_FOLDERS]
            yield from (Path(folder, file) for file in files if file.endswith((".py", ".rst")))


def _file_digest(path: Path) -> str:
    """SHA-256 of one file, which must be UTF-8."""
    digest = hashlib.sha256()
    decode: Callable[[bytes, bool], str] = codecs.getincrementaldecoder("utf-8")().decode
    with path.open("rb") as file:
        try:
            while block := file.read(BLOCK):
                digest.update(block)
                decode(block, False)
            decode(b"", True)
        except UnicodeDecodeError:
            raise UserError(
                f"{path}: not UTF-8 text; convert it (iconv -t UTF-8) or leave it out of the corpus"
            ) from None
    return digest.hexdigest()


def _load(cache: Path | None) -> dict[str, list[int | str]]:
    try:
        data = json.loads(cache.read_text(encoding="utf-8")) if cache else {}
    except (OSError, ValueError):
        return {}
    if not isinstance(data, dict):
        return {}
    return {k: v for k, v in data.items() if isinstance(v, list) and len(v) == 3}


def _save(cache: Path | None, entries: dict[str, list[int | str]]) -> None:
    if cache is not None:
        # Only a cache: the files that are gone leave it, and a read-only disk is no error.
        try:
            write_json(cache, {p: e for p, e in sorted(entries.items()) if os.path.exists(p)})
        except (OSError, UserError):
            return
