"""Archives: a ZIP file that holds the checksum of each of its files, and their verification."""

from __future__ import annotations

import hashlib
import json
import struct
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Any

from moelaws.records import seal
from moelaws.records.files import json_object, replacing
from moelaws.records.progress import Report
from moelaws.spec.errors import UserError, listed

MANIFEST = "manifest.json"
FORMAT = "moelaws archive 1"
_CHUNK = 1 << 20
# The times that an entry can have, in seconds: from 1980, by ZIP's own field, to 2106.
_FIRST_SECOND, _LAST_SECOND = 315_532_800, 2**32 - 1
_PACKED = (".parquet", ".png", ".pdf", ".safetensors", ".npy")  # hardly smaller when compressed
# What Python raises for bytes of a ZIP file that are not what was written.
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


def write(
    path: Path, files: Mapping[str, Path | bytes], about: Mapping[str, Any], report: Report
) -> dict[str, Any]:
    """Writes the archive ``path`` and returns its manifest.

    The manifest holds ``about`` and the size and SHA-256 of each file. The bytes of the archive
    depend only on the files' contents and times. Where writing fails, nothing is left of it.

    Args:
        files: name in the archive -> the file that it is copied from, or its content.
        about: what the archive is; JSON data.

    Raises:
        UserError: for a file that is damaged, or an archive that cannot be written.
        OSError: for a file that vanished or cannot be read.
    """
    entries = [_entry(name, file) for name, file in sorted(files.items())]
    total = sum(entry.file_size for entry in entries)
    done, sums = 0, {}
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for entry in entries:
            name, sha, size = entry.filename, hashlib.sha256(), 0
            with archive.open(entry, "w") as copy:
                for chunk in _chunks(files[name]):
                    copy.write(chunk)
                    sha.update(chunk)
                    size += len(chunk)
                    report("archive", (done + size) / 1e6, total / 1e6, f"{(done + size) >> 20} MB")
            done += size
            sums[name] = {"bytes": size, "sha256": sha.hexdigest()}
        manifest = {"format": FORMAT, **about, "files": sums}
        text = json.dumps({seal.KEY: seal.BLANK, **manifest}, indent=1) + "\n"
        content = seal.sealed(text.encode())
        archive.writestr(_entry(MANIFEST, content), content)
    return manifest


def check(path: Path, report: Report) -> dict[str, Any]:
    """Returns the manifest of the archive ``path``, all of whose files are what was written.

    Nothing is unpacked.

    Raises:
        UserError: for a file that is no such archive, and where a file in it is damaged, missing
            or was added.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = _manifest(archive, path)
            problems = list(_problems(archive, manifest["files"], report))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except _UNREADABLE as error:
        raise UserError(f"{path} is no ZIP file, or it was cut short or damaged: {error}") from None
    if problems:
        raise UserError(f"{path} is not what was written: {listed(problems, 12)}")
    return manifest


def _manifest(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    if MANIFEST not in archive.namelist():
        raise UserError(f"{path} is no archive of moelaws: {MANIFEST} is not in it")
    content = archive.read(MANIFEST)
    if not seal.is_kept(content):
        raise UserError(f"{path}: {MANIFEST} in it is damaged, so nothing can be verified")
    manifest = json_object(content, f"{path}: {MANIFEST}")
    if manifest.get("format") != FORMAT:
        raise UserError(
            f"{path}: {MANIFEST} in it has the format {manifest.get('format')!r}; this version of "
            f"moelaws reads {FORMAT!r}"
        )
    return manifest


def _problems(
    archive: zipfile.ZipFile, files: Mapping[str, Mapping[str, Any]], report: Report
) -> Iterator[str]:
    """Yields a phrase for each difference between an archive and its manifest's ``files``."""
    entries = archive.infolist()
    names = Counter(entry.filename for entry in entries)
    yield from (f"{name} is missing" for name in sorted(files.keys() - names.keys()))
    total, done = sum(entry.file_size for entry in entries), 0
    for entry in entries:
        name = entry.filename
        done += entry.file_size
        report("check", done / 1e6, total / 1e6, f"{done >> 20} MB")
        if names[name] > 1:
            yield f"{name} is in it twice"
        elif not _is_safe(name):
            yield f"{name!r} would be unpacked elsewhere"
        elif name not in files and name != MANIFEST:
            yield f"{name} was added"
        elif name in files and not _is_kept(archive, entry, files[name]):
            yield f"{name} is damaged"


def _is_kept(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, kept: Mapping[str, Any]) -> bool:
    if entry.file_size != kept["bytes"]:  # also what would unpack to more than was written
        return False
    sha = hashlib.sha256()
    try:
        with archive.open(entry) as file:
            for chunk in _read(file):
                sha.update(chunk)
    except _UNREADABLE:
        return False
    return bool(sha.hexdigest() == kept["sha256"])


def _is_safe(name: str) -> bool:
    """Tells whether a name stays below the folder in which the archive is unpacked."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and not set("\\:") & set(name)


def _entry(name: str, file: Path | bytes) -> zipfile.ZipInfo:
    """Returns the entry of a file; times are UTC, also for who unpacks it in another time zone."""
    if isinstance(file, bytes):
        size, modified = len(file), 0.0
    else:
        size, modified = file.stat().st_size, file.stat().st_mtime
    seconds = min(max(int(modified), _FIRST_SECOND), _LAST_SECOND)
    entry = zipfile.ZipInfo(name, time.gmtime(seconds)[:6])
    entry.extra = struct.pack("<HHBI", 0x5455, 5, 1, seconds)
    entry.compress_type = zipfile.ZIP_STORED if name.endswith(_PACKED) else zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    entry.file_size = size  # before it is written: more than 2 GB need another form of entry
    return entry


def _chunks(file: Path | bytes) -> Iterator[bytes]:
    if isinstance(file, bytes):
        yield file
        return
    seal.check(file)
    with file.open("rb") as opened:
        yield from _read(opened)


def _read(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk
