"""Seals: each file that this package writes and reads again carries a digest of its own content.

A seal is the text ``sha256-of-this-file:`` and 64 hexadecimal digits: the SHA-256 of the file's
bytes with these digits counted as zeros. It stands where the format has room for a text: in the
first key of a JSON file, or in the metadata of a Parquet or safetensors file. A file without a seal
comes from elsewhere, or was written before there were seals; it is read as it is. The digest of a
file that is never read again, such as a figure's CSV, is recorded in a sealed file beside it.
"""

import hashlib
import mmap
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from moelaws.files.layout import recovery
from moelaws.spec.errors import UserError

KEY = "seal"
_MARK = b"sha256-of-this-file:"
_ZEROS = b"0" * 64
BLANK = (_MARK + _ZEROS).decode()

State = Literal["whole", "damaged", "unverified"]


class DamagedError(UserError):
    """A file does not match its seal: its content changed after it was written."""


def apply(path: Path) -> str:
    """Fills the blank seal of a newly written file; returns the digest (64 hex digits)."""
    with path.open("r+b") as file:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            start = _start(data)
            sha = _digest(data, start)
        file.seek(start)
        file.write(sha.encode())
    return sha


def digest(path: Path) -> str:
    """Returns the SHA-256 of a file with its seal's digits counted as zeros.

    Without a seal this is that of ``sha256sum``. Raises DamagedError if the seal does not match.
    """
    state, sha = inspect(path)
    if state == "damaged":
        raise _damaged(path)
    return sha


def made_of(files: Iterable[Path], code: str) -> dict[str, Any]:
    """Returns what a file records of its origin: the digests of ``files`` and of the code."""
    return {"code": code, "files": {path.as_posix(): digest(path) for path in files}}


def inspect(path: Path) -> tuple[State, str]:
    """Returns whether a file matches its seal, or has none, and its digest."""
    if not path.stat().st_size:
        return "unverified", hashlib.sha256().hexdigest()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _inspect(data)


def check(path: Path) -> None:
    """Raises DamagedError, which says how to make the file again, if it does not match its seal."""
    digest(path)


def read(path: Path | str) -> bytes:
    """Returns the bytes of a file; raises DamagedError if it does not match its seal."""
    with open(path, "rb", buffering=0) as file:
        data: bytes = file.read()
    if _inspect(data)[0] == "damaged":
        raise _damaged(Path(path))
    return data


def _start(data: bytes | mmap.mmap) -> int:
    """Returns where the digits of the seal begin, or -1 if there is none."""
    place = data.find(_MARK)
    return place + len(_MARK) if place >= 0 else -1


def _inspect(data: bytes | mmap.mmap) -> tuple[State, str]:
    start = _start(data)
    sha = _digest(data, start)
    if start < 0:
        return "unverified", sha
    kept = data[start : start + len(_ZEROS)] == sha.encode()
    return ("whole" if kept else "damaged"), sha


def _digest(data: bytes | mmap.mmap, start: int) -> str:
    with memoryview(data) as view:
        if start < 0:
            return hashlib.sha256(view).hexdigest()
        sha = hashlib.sha256(view[:start])
        sha.update(_ZEROS)
        sha.update(view[start + len(_ZEROS) :])
    return sha.hexdigest()


def _damaged(path: Path) -> DamagedError:
    kind, command = recovery(path)
    return DamagedError(
        f"{path}: {kind} is damaged: it is not what moelaws wrote. To make it again: {command}"
    )
