"""Atomic writes beside the file's place and a rename into it, so no reader sees half a file."""

import ctypes
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from moelaws.files import leftovers, seal
from moelaws.spec.errors import UserError
from moelaws.spec.from_json import parse_json

_HERE, _EXCHANGE = -100, 2  # Linux's AT_FDCWD and RENAME_EXCHANGE


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary path that takes the place of ``path`` when the block ends well.

    It has the suffix of ``path``, for writers that go by that. On any error it is removed, and
    ``path`` stays as it was. Raises UserError on a full disk or a folder that cannot be written.
    """
    temporary = leftovers.temporary(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        leftovers.sweep(path.parent)
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        # Errors on other files are not about this write, so they pass unchanged.
        if str(error.filename) in map(str, (None, path, temporary, path.parent)):
            raise UserError(f"{path}: cannot be written: {error.strerror or error}") from error
        raise
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """Yields a new folder that takes the place of ``folder`` when the block ends well.

    A kill leaves one of them whole in its place. Where the file system cannot exchange folders in
    one step, as NFS, a kill between two renames leaves none; the next call puts the old one back.
    """
    work, before = leftovers.temporary(folder), folder.with_name(f".{folder.name}.moelaws-before")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        leftovers.sweep(folder.parent)
        if before.exists() and not folder.exists():
            os.rename(before, folder)
        work.mkdir()
        yield work
        if not (folder.exists() and _exchanged(work, folder)):
            leftovers.discard(before)
            if folder.exists():
                os.rename(folder, before)
            os.rename(work, folder)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror or error}") from error
    finally:
        leftovers.discard(work)
    leftovers.discard(before)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchanges two folders in one step if the file system can, and returns whether it did."""
    renameat2 = getattr(ctypes.CDLL(None), "renameat2", None)
    paths = (_HERE, os.fsencode(one), _HERE, os.fsencode(other))
    return renameat2 is not None and renameat2(*paths, _EXCHANGE) == 0


def remove(path: Path) -> None:
    """Removes ``path``, what killed writers left beside it, and its folder if that is empty then.

    The caller must hold the lock under which the folder is written. Other files stay, because the
    folder may be a user's own, and so does what cannot be removed.
    """
    leftovers.sweep(path.parent, locked=True)
    with suppress(OSError):
        path.unlink(missing_ok=True)
        path.parent.rmdir()


def write_text(path: Path, text: str, sealed: bool = False) -> None:
    """Writes ``text`` to ``path`` atomically, as UTF-8; ``sealed`` fills the seal that it has."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
        if sealed:
            seal.apply(temporary)


def write_page(path: Path, text: str) -> None:
    """Writes a page atomically, with a seal if its suffix has a place for one."""
    page = seal.with_line(text, path)
    write_text(path, page, sealed=page != text)


def read_page(path: Path) -> str:
    """Returns a text without its seal, which must be whole if it has one, and UTF-8."""
    try:
        return seal.without_line(_content(path)).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text: byte {error.start}") from None


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Writes ``data`` as indented JSON, sealed, atomically; NaN and inf are refused."""
    text = json.dumps({seal.KEY: seal.blank(path), **data}, indent=1, allow_nan=False)
    write_text(path, f"{text}\n", sealed=True)


def finite(data: Any) -> Any:
    """Returns JSON data: NumPy's numbers as Python's, those that are not finite as null."""
    if isinstance(data, dict):
        return {str(key): finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [finite(value) for value in data]
    if hasattr(data, "tolist"):
        return finite(data.tolist())
    return None if isinstance(data, float) and not math.isfinite(data) else data


def read_json(path: Path) -> dict[str, Any]:
    """Returns the object that a JSON file holds, without its seal."""
    return json_object(_content(path), path)


def _content(path: Path) -> bytes:
    try:
        return seal.read(path)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None


def json_object(content: bytes, path: Path | str) -> dict[str, Any]:
    """Returns the object that the ``content`` of the JSON file ``path`` is, without its seal."""
    data = parse_json(content, path)
    if not isinstance(data, dict):
        raise UserError(f'{path} holds no JSON object, such as {{"key": 1}}')
    data.pop(seal.KEY, None)
    return data


if __name__ == "__main__":  # for a page that Snakemake writes: its draft, and its place
    draft, place = map(Path, sys.argv[1:])
    write_page(place, draft.read_text(encoding="utf-8"))
    draft.unlink()
