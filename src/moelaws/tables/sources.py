"""The files of a source as one table, by the origin that a mapping names."""

import hashlib
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
            frame = _joined(frame, rows, file, place)
            own = {file.columns.get(name, name): unit for name, unit in own.items()}
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


def _places(path: Path, origin: Origin) -> list[tuple[SourceFile, Path]]:
    if path.is_dir():
        return [(file, path / file.file) for file in origin.files]
    if origin.others:
        names = ", ".join(file.file for file in origin.files)
        raise UserError(f"{path} is one file, and the mapping is of {names}: name their folder")
    return [(origin, path)]


def _about(place: Path, file: SourceFile, mapping_file: Path) -> dict[str, str]:
    sha = sha256_of(place)
    if file.sha256 not in ("", sha):
        raise UserError(
            f"{place}: its SHA-256 is {sha}, and {mapping_file} is for {file.file} of "
            f"{file.sha256}; get that file" + (f" from {file.url}" if file.url else "")
        )
    known = {} if file.sha256 or not file.url else {"digest": UNKNOWN}
    return {"file": file.file, "url": file.url, "sha256": sha, **known}


def _joined(frame: pd.DataFrame, rows: pd.DataFrame, file: OtherFile, place: Path) -> pd.DataFrame:
    """Returns ``frame`` with columns of the ``rows`` of another file; each row has a partner."""
    columns = file.columns or {name: name for name in map(str, rows) if name != file.join}
    for where, table, names in (
        ("the first file", frame, [file.join]),
        (place, rows, [file.join, *columns]),
    ):
        if lost := [name for name in names if name not in table]:
            known = or_nearest(lost[0], map(str, table), "it has")
            raise UserError(f"{where} has no column {lost[0]!r} to join{known}")
    new = list(columns.values())
    if twice := [name for name in new if name in frame or new.count(name) > 1]:
        raise UserError(
            f"{place}: with it there are two columns {twice[0]!r}; `columns` says which columns "
            "join, and under which names"
        )
    refuse_twice(rows[file.join], lambda key: f"of {place} both have {file.join} {key}")
    alone = ~frame[file.join].isin(rows[file.join])
    if alone.any():
        first = frame.index[alone][0]
        key = quoted(frame[file.join][first])
        raise UserError(f"row {first}: {place} has no row whose {file.join} is {key}")
    partners = rows.set_index(file.join, drop=False).rename_axis(None)[[*columns]]
    return frame.join(partners.rename(columns=columns), on=file.join)
