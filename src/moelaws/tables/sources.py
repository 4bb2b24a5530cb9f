"""The files of a source as tables, by the origin that a mapping names."""

import hashlib
from pathlib import Path

import pandas as pd

from moelaws.spec.errors import UserError
from moelaws.spec.from_disk import read_bytes
from moelaws.spec.importing import Origin, SourceFile
from moelaws.tables.foreign import read_any


def read_sources(
    path: Path, origin: Origin, mapping_file: Path
) -> tuple[dict[str, pd.DataFrame], dict[str, str]]:
    """Returns the tables ``source``, ``source2``, ... at ``path``, and where they are from.

    What is said of a second file has a 2 behind its key: ``sha256 2``. A file that has another
    digest than the mapping says is refused.
    """
    tables, about = dict[str, pd.DataFrame](), dict[str, str]()
    for i, (file, place) in enumerate(_places(path, origin), 1):
        tables[f"source{i}" if i > 1 else "source"], _ = read_any(place, file.part)
        said = _about(place, file, mapping_file)
        about |= {f"{key} {i}" if i > 1 else key: text for key, text in said.items()}
    return tables, about | origin.model_dump(include={"licence", "attribution"})


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
    return {"file": file.file, "url": file.url, "sha256": sha}
