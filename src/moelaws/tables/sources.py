"""The files of a source as one table, by the origin that a mapping names."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from moelaws.spec.errors import UserError, or_nearest, quoted
from moelaws.spec.from_disk import read_bytes
from moelaws.spec.importing import Origin, OtherFile, SourceFile
from moelaws.tables.foreign import read_any, refuse_twice

UNKNOWN = "no digest known"  # of a file of another place: it is taken as it is
WHOSE = "file"  # the column that says which file a row is of, where rows follow


def read_source(
    path: Path, origin: Origin, mapping_file: Path
) -> tuple[pd.DataFrame, dict[str, str], dict[str, str]]:
    """Returns the rows of the source at ``path``, units of its columns, and where they are from.

    What is said of a second file has a 2 behind its key: ``sha256 2``. The index names rows as
    messages do. A file that has another digest than the mapping says is refused.
    """
    frame, units, about = pd.DataFrame(), dict[str, str](), dict[str, str]()
    for i, (file, place) in enumerate(_places(path, origin), 1):
        rows, own = read_any(place, file.part)
        said = _about(place, file, mapping_file)
        about |= {f"{key} {i}" if i > 1 else key: text for key, text in said.items()}
        rows.index = pd.RangeIndex(1, len(rows) + 1)
        if isinstance(file, OtherFile) and file.join:
            rows = _renamed(rows, file, place)
            own = {file.columns.get(name, name): unit for name, unit in own.items()}
            frame = frame.join(_partners(frame, rows, file, place), on=file.join)
        else:
            if any(not getattr(other, "join", "") for other in origin.others):
                if WHOSE in rows:
                    raise UserError(f"{place} has a column {WHOSE!r} already; rename it")
                rows = rows.assign(**{WHOSE: file.file})
                rows.index = pd.Index([f"{row} ({file.file})" for row in rows.index])
            frame = pd.concat([frame, rows]) if len(frame) else rows
        units |= own
    return frame, units, about | origin.model_dump(include={"licence", "attribution"})


def sha256_of(path: Path) -> str:
    return hashlib.sha256(read_bytes(path)).hexdigest()


def _places(path: Path, origin: Origin) -> Iterator[tuple[SourceFile, Path]]:
    if not path.is_dir():
        if origin.others:
            names = ", ".join(file.file for file in origin.files)
            raise UserError(f"{path} is one file, and the mapping is of {names}: name their folder")
        yield origin, path
        return
    for file in origin.files:
        yield file, path / file.file


def _about(place: Path, file: SourceFile, mapping_file: Path) -> dict[str, str]:
    sha = sha256_of(place)
    if file.sha256 not in ("", sha):
        raise UserError(
            f"{place}: its SHA-256 is {sha}, and {mapping_file} is for {file.file} of "
            f"{file.sha256}; get that file" + (f" from {file.url}" if file.url else "")
        )
    known = {} if file.sha256 or not file.url else {"digest": UNKNOWN}
    part = {"part": file.part} if file.part else {}
    return {"file": file.file, "url": file.url, "sha256": sha, **part, **known}


def _renamed(rows: pd.DataFrame, file: OtherFile, place: Path) -> pd.DataFrame:
    """Returns the columns that join, under their new names, and the column by which they do."""
    for name in (file.join, *file.columns):
        if name not in rows:
            known = or_nearest(name, map(str, rows), "it has")
            raise UserError(f"{place} has no column {name!r} to join{known}")
    taken = [file.join, *file.columns] if file.columns else list(rows)
    return rows[taken].rename(columns=file.columns)


def _partners(
    frame: pd.DataFrame, rows: pd.DataFrame, file: OtherFile, place: Path
) -> pd.DataFrame:
    """Returns the columns that join, by the values of the column ``join``.

    A row of ``frame`` without a partner is refused.
    """
    if file.join not in frame:
        raise UserError(f"the first file has no column {file.join!r}, by which {place} joins it")
    if twice := [name for name in rows if name in frame and name != file.join]:
        raise UserError(
            f"{place}: both files have a column {twice[0]!r}; take it under another name by "
            "`columns`, or leave it out there"
        )
    refuse_twice(rows[file.join], lambda key: f"of {place} both have {file.join} {key}")
    alone = ~frame[file.join].isin(rows[file.join])
    if alone.any():
        first = frame.index[alone][0]
        key = quoted(frame[file.join][first])
        raise UserError(f"row {first}: {place} has no row whose {file.join} is {key}")
    return rows.set_index(file.join)
