"""The register of public runs: the mappings in config/imports that say where their files are.

The register ships mappings alone. Whoever imports a table fetches its files, under their licences.
"""

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote
from urllib.request import Request, urlopen

from moelaws.files.atomic import replacing
from moelaws.files.layout import Results
from moelaws.records.progress import Report, reporting
from moelaws.spec.errors import UserError, or_nearest, quoted
from moelaws.spec.from_disk import LARGEST, refuse_large
from moelaws.spec.importing import Mapping
from moelaws.tables.at_hand import FOLDER
from moelaws.tables.mapping import read_mapping
from moelaws.tables.sources import sha256_of

TIMEOUT = 30  # seconds without an answer or a further byte
_PIECE = 2**16  # bytes read at once
Progress = Callable[[int, int | None], None]  # takes the bytes so far and, if known, all bytes


def download(url: str, path: Path, sha256: str, progress: Progress) -> None:
    """Writes what is at ``url`` (http or https) to ``path``, atomically.

    A UserError says on one line what went wrong. Any digest is right if ``sha256`` is empty.
    """
    digest = hashlib.sha256()
    with replacing(path) as temporary, temporary.open("wb") as file:
        for piece in _pieces(url, progress):
            digest.update(piece)
            file.write(piece)
        if sha256 not in ("", digest.hexdigest()):
            raise UserError(
                f"{url}: the SHA-256 of what is there is {digest.hexdigest()}, and that of "
                f"{path.name} is {sha256}"
            )


def _pieces(url: str, progress: Progress) -> Iterator[bytes]:
    try:
        if not url.startswith(("http://", "https://")):
            raise ValueError("an address begins with http:// or https://")
        with urlopen(Request(url, headers={"User-Agent": "moelaws"}), timeout=TIMEOUT) as answer:
            size, done = answer.length, 0  # without a length it ends where the server closes
            refuse_large(size or 0, url)
            while piece := answer.read(min(_PIECE, LARGEST + 1)):
                done += len(piece)
                refuse_large(done, url)
                progress(done, size)
                yield piece
            if size is not None and done < size:
                raise OSError(f"the transfer was cut after {done:,} of {size:,} bytes")
    except (OSError, HTTPException, ValueError) as error:
        raise UserError(f"{quoted(url, 200)} cannot be fetched: {_reason(error)}") from None


def _reason(error: Any) -> str:
    if isinstance(error, HTTPError):
        return f"the server answers {error.code} {error.reason}"
    if isinstance(error, URLError):
        error = error.reason
    text = error.strerror if isinstance(error, OSError) and error.strerror else error
    return str(text) or type(error).__name__


def register(root: Path = Path()) -> dict[str, Mapping]:
    """Returns the mappings of public runs by name; patterns for a user's own runs are left out."""
    mappings = {path.stem: read_mapping(path) for path in sorted((root / FOLDER).glob("*.yaml"))}
    return {name: mapping for name, mapping in mappings.items() if mapping.public}


def mapping_of(name: str) -> Path:
    """Returns the mapping file of a name of the register."""
    known = register()
    if name not in known:
        text = or_nearest(name, known, "the register has")
        raise UserError(f"{name!r} is no file, and not in the register of public runs{text}")
    return FOLDER / f"{name}.yaml"


def source_of(name: str, mapping: Mapping, given: str) -> Path:
    """Returns the file or the folder of a table's source, which is fetched if it is not here.

    ``given`` is a file, a folder, or the address of a mirror, in place of the addresses in the
    mapping. Files that were fetched are kept and, while their digests are right, not fetched again.
    """
    if given.startswith("file://"):
        given = unquote(given.removeprefix("file://"))
    if given and not given.startswith(("http://", "https://")):
        if not Path(given).exists():
            raise UserError(f"--from is {given!r}; there is no such file or folder")
        return Path(given)
    folder = Results().fetched(name)
    is_folder = bool(given) and (len(mapping.origin.files) > 1 or given.endswith("/"))
    with reporting() as report:
        for file in mapping.origin.files:
            path = folder / file.file
            if path.is_file() and file.sha256 in ("", sha256_of(path)):
                continue
            url = (f"{given.rstrip('/')}/{file.file}" if is_folder else given) or file.url
            try:
                download(url, path, file.sha256, partial(_show, report, file.file))
            except UserError as error:
                raise UserError(
                    f"{error}. Get {file.file} from {file.url} and put it at {path}, or say where "
                    f"it is: moelaws import {name} --from PATH"
                ) from None
    return folder


def _show(report: Report, name: str, done: int, size: int | None) -> None:
    report(name, done, size, f"{done / 1e6:.1f} MB")
