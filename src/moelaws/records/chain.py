"""The chain from what is shown back to what was trained.

Each file of a tier records the digests of what it was made of: a figure those of its table, fits
and derived tables; a fit that of its table; a table those of its runs' summaries and losses by
document. ``link`` follows these records.
"""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from moelaws.files import seal
from moelaws.files.atomic import read_json
from moelaws.files.layout import DOCUMENTS, Results
from moelaws.spec.base import Frozen, parse

DRAWS = ".bootstrap.parquet"


class Origin(Frozen):
    """What a file says that it was made of."""

    files: dict[str, str] = {}  # path -> digest
    code: str = ""  # digest of the code that made it; empty if that is not on record
    runs: dict[str, str] = {}  # of a study's table: run -> digest of the summary that it holds
    documents: dict[str, str] = {}  # run -> digest of the losses by document behind paired errors
    imported: dict[str, str] = {}  # of an imported table: the source's name, digest, licence, ...


@dataclass(frozen=True)
class Link:
    """One file of the chain."""

    path: Path
    # It is ``changed`` if the file above was made of another content
    state: Literal["whole", "unverified", "damaged", "changed", "missing"]
    digest: str = ""  # SHA-256 of its present content; empty if it is missing
    origin: Origin = field(default_factory=Origin)
    inputs: tuple["Link", ...] = ()  # the files that it was made of

    def as_dict(self) -> dict[str, Any]:
        """Returns the chain below this file as JSON data."""
        inputs = [link.as_dict() for link in self.inputs]
        own = {"path": str(self.path), "state": self.state, "digest": self.digest}
        return {**own, **self.origin.model_dump(exclude={"files"}), "inputs": inputs}


def link(path: Path, recorded: str = "") -> Link:
    """Returns the chain below ``path``; the file above has ``recorded`` its digest."""
    if not path.is_file():
        return Link(path, "missing")
    state, digest = inspect(path)
    said = {} if state == "damaged" or path.name.endswith(DRAWS) else made_of(path)
    known = {key: value for key, value in said.items() if key in Origin.model_fields}
    origin = parse(Origin, known, f"{path}: made_of")
    inputs = tuple(link(Path(name), sha) for name, sha in origin.files.items())
    changed = state != "damaged" and recorded not in ("", digest)
    return Link(path, "changed" if changed else state, digest, origin, inputs)


def made_of(path: Path) -> dict[str, Any]:
    """Returns what a file says of its origin; empty if its format has no place for that."""
    if path.suffix == ".parquet":
        from moelaws.files.parquet import read_origin

        return read_origin(path)
    origin = read_json(path).get("made_of") if path.suffix == ".json" else None
    return origin if isinstance(origin, dict) else {}


def inspect(path: Path) -> tuple[seal.State, str]:
    """Returns a file's state and digest like ``seal.inspect``, but reads each file only once."""
    stat = path.stat()
    return _inspect(path, stat.st_size, stat.st_mtime_ns)


@cache
def _inspect(path: Path, size: int, modified: int) -> tuple[seal.State, str]:
    return seal.inspect(path)


def changed_runs(table: Link, results: Results) -> list[str]:
    """Returns the runs of a table whose summary or losses by document are gone or changed."""

    def differs(path: Path, digest: str | None) -> bool:
        return digest is not None and (not path.is_file() or inspect(path)[1] != digest)

    return [
        run
        for run, digest in table.origin.runs.items()
        if differs(results.summary(run), digest)
        or differs(results.run(run) / DOCUMENTS, table.origin.documents.get(run))
    ]
