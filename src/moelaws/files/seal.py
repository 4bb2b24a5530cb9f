"""Seals: each file that this package writes and reads again carries a digest of its own content.

A seal is the text ``sha256-of-this-file:`` and 64 hexadecimal digits: the SHA-256 of the file's
bytes with these digits counted as zeros. Behind them stands where the file belongs, such as ``of
demo/fits/sparsity/loss.json``, if it is one of the results. The seal has one place in each format,
so that the same words in a file's data mean nothing: the first key of a JSON file, the metadata of
a Parquet or safetensors file, the last line of a page. Other files are known by their surroundings:
a figure's files and a corpus' shards by the digests in a sealed file beside them, a run's
configuration by the run's id. A file of neither kind comes from elsewhere, or is of an earlier
version. It is read as it is.
"""

import hashlib
import mmap
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from moelaws.files.layout import CONFIG, META, TOKENIZER, place_of, recovery
from moelaws.spec.errors import UserError
from moelaws.spec.from_disk import LARGEST, read_bytes
from moelaws.spec.from_json import parse_json

KEY = "seal"
_MARK = b"sha256-of-this-file:"
_ZEROS = b"0" * 64
BLANK = (_MARK + _ZEROS).decode()

_FIRST_KEY = len(f'{{\n "{KEY}": "')  # where it begins in JSON as ``atomic.write_json`` sets it
_OF_TENSORS = f'"{KEY}":"'.encode() + _MARK  # in the header, where a quote in a text is escaped
# A pair of the footer: the key and the value, each with its type and its length
_OF_PARQUET = re.compile(b"\x18\x04" + KEY.encode() + b"\x18.{1,2}?" + _MARK, re.DOTALL)
_OF = rb" of ([\w./-]+)"
# Suffix of a page -> what stands around the seal in its last line, which no reader is shown
LINES = {
    **dict.fromkeys((".md", ".html"), ("<!-- ", " -->")),
    ".rst": ("\n.. ", ""),  # a comment only after an empty line
    ".jsonl": (f'{{"{KEY}": "', '"}'),
}
_SEALED = (".json", ".parquet", ".safetensors", *LINES)
_LAST_LINE = re.compile(
    rb'(?:\A|\n)(?:<!-- |\.\. |\{"seal": ")%b([0-9a-f]{64})(?:%b)?(?: -->|"\})?\n\Z' % (_MARK, _OF)
)

_LONGEST_LINE = 400  # bytes
_RECORD = 10**7  # bytes of a record beside a file; a larger file there is somebody else's

State = Literal["whole", "damaged", "unverified"]
Bytes = bytes | mmap.mmap


class DamagedError(UserError):
    """A file is not what was written: its content changed since, or it is another run's."""


def apply(path: Path) -> str:
    """Fills the blank seal of a newly written file; returns the digest (64 hex digits)."""
    with path.open("r+b") as file:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            start = _start(data)
            sha = _digest(data, start)
        file.seek(start)
        file.write(sha.encode())
    return sha


def blank(path: Path) -> str:
    """Returns the text of a new seal, whose digits are zeros, of the file at ``path``."""
    place = place_of(path)
    return f"{BLANK} of {place}" if place else BLANK


def with_line(text: str, path: Path) -> str:
    """Returns a text with a blank seal as its last line if files of that suffix have one."""
    if path.suffix not in LINES:
        return text
    before, after = LINES[path.suffix]
    return f"{text.rstrip()}\n{before}{blank(path)}{after}\n"


def without_line(data: bytes) -> bytes:
    """Returns what a page holds before its seal."""
    return _LAST_LINE.sub(b"\n", data)


def digest(path: Path) -> str:
    """Returns the SHA-256 of a file with its seal's digits counted as zeros.

    Without a seal this is that of ``sha256sum``. Raises DamagedError if the file is not whole.
    """
    state, sha = inspect(path)
    if state == "damaged":
        raise damaged(path)
    return sha


def made_of(files: Iterable[Path], code: str) -> dict[str, Any]:
    """Returns what a file records of its origin: the digests of ``files`` and of the code."""
    return {"code": code, "files": {path.as_posix(): digest(path) for path in files}}


def digests(files: Iterable[Path]) -> dict[str, str]:
    """Returns name -> digest, for a sealed record beside ``files`` (under ``files``).

    An older record there may name others: what was drawn anew, or half of it before a kill.
    """
    return {path.name: inspect(path)[1] for path in files}


def inspect(path: Path) -> tuple[State, str]:
    """Returns whether a file is what was written, or nothing says so, and its digest."""
    if not path.stat().st_size:
        return _inspect(b"", path)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _inspect(data, path)


def check(path: Path) -> None:
    """Raises DamagedError, which says how to make the file again, if it is not whole."""
    digest(path)


def read(path: Path | str, largest: int = LARGEST) -> bytes:
    """Returns the bytes of a file with at most ``largest``; raises DamagedError if not whole."""
    data = read_bytes(path, largest)
    if _inspect(data, path)[0] == "damaged":
        raise damaged(Path(path))
    return data


def _start(data: Bytes) -> int:
    """Returns where the digits of the seal begin, or -1 if there is none in its place."""
    if data[:4] == b"PAR1":
        footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        # The pairs of the footer come last; the values of cells may stand before them.
        pairs = [*_OF_PARQUET.finditer(data, max(footer, 0))]
        return pairs[-1].end() if pairs else -1
    if data[_FIRST_KEY : _FIRST_KEY + len(_MARK)] == _MARK:
        place, mark = _FIRST_KEY, _MARK
    elif data[8:9] == b"{" and (length := int.from_bytes(data[:8], "little")) < len(data):
        place, mark = data.find(_OF_TENSORS, 8, 8 + length), _OF_TENSORS
    else:
        line = _LAST_LINE.search(data[-_LONGEST_LINE:])
        return max(0, len(data) - _LONGEST_LINE) + line.start(1) if line else -1
    return place + len(mark) if place >= 0 else -1


def _inspect(data: Bytes, path: Path | str) -> tuple[State, str]:
    start, place = _start(data), Path(path)
    sha = _digest(data, start)
    if start >= 0 and place.suffix in _SEALED and place.name not in (CONFIG, TOKENIZER):
        kept: bool | None = data[start : start + len(_ZEROS)] == sha.encode()
        kept = kept and not _elsewhere(data, start, place)
    else:  # a sealed file in its place would be another file
        kept = _is_as_known(place, data, sha)
    return ("unverified" if kept is None else "whole" if kept else "damaged"), sha


def _elsewhere(data: Bytes, start: int, path: Path) -> str:
    """Returns where a seal says that its file belongs, if that is another place than ``path``'s."""
    said = re.compile(_OF).match(data, start + len(_ZEROS))
    own = place_of(path)
    return said[1].decode() if start >= 0 and said and own and said[1] != own.encode() else ""


def _digest(data: Bytes, start: int) -> str:
    with memoryview(data) as view:
        if start < 0:
            return hashlib.sha256(view).hexdigest()
        sha = hashlib.sha256(view[:start])
        sha.update(_ZEROS)
        sha.update(view[start + len(_ZEROS) :])
    return sha.hexdigest()


def _is_as_known(path: Path, data: Bytes, sha: str) -> bool | None:
    """Returns whether a file without a seal is what its surroundings say, None if they do not."""
    if path.name == CONFIG and re.fullmatch("[0-9a-f]{16}", path.parent.name):
        return hashlib.sha256(data[:].rstrip(b"\n")).hexdigest()[:16] == path.parent.name
    for record in {path.with_suffix(".json"), path.with_name(META)} - {path}:
        try:
            about = read_bytes(record, _RECORD)
        except (OSError, UserError):
            continue
        state, _ = _inspect(about, record)
        if state == "damaged":
            return False
        known = parse_json(about, record).get("files") if state == "whole" else None
        if isinstance(known, dict) and (said := known.get(path.name)):
            return bool(sha == (said.get("sha256") if isinstance(said, dict) else said))
    return None


def damaged(path: Path) -> DamagedError:
    """Returns the error to raise for a file that is not what was written."""
    kind, command = recovery(path)
    with path.open("rb") as file:
        data = file.read()
    other = _elsewhere(data, _start(data), path)
    why = f"it is {other}" if other else "it is not what moelaws wrote"
    return DamagedError(f"{path}: {kind} is damaged: {why}. To make it again: {command}")
