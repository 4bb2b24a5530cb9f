"""The material of a page: the project's studies at a tier, and the files that they declare.

Data are embedded as Base64 of packed JSON: letters that mean nothing in HTML.
"""

import base64
import gzip
import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from moelaws.files.atomic import finite
from moelaws.files.layout import Results, TierFolder
from moelaws.grids.sweep import Sweep
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project
from moelaws.spec.study import Study

Content = TypeVar("Content")
Data = dict[str, Any]  # by name, as the page reads it


@dataclass(frozen=True)
class Material:
    """A tier's studies with the files that a page of it may show; runs may still be under way."""

    project: Project
    studies: tuple[Study, ...]  # with the entries that the tier and the source of losses allow
    sweeps: Mapping[str, Sweep]  # study -> the runs of its grid; empty if losses are simulated
    # The tier's files that the workflow declares. Others in the tier's folder belong to another
    # study or to an earlier call, and are not read.
    declared: Collection[Path]
    simulated: bool = False  # whether the losses come from laws instead of trainings
    results: Results = field(default_factory=Results)  # the folder of all files
    page: Path | None = None  # its place, for its links; None for that in the tier's folder
    notes: list[str] = field(default_factory=list)  # on unreadable files, for the page to show

    @property
    def folder(self) -> TierFolder:
        return self.results.tier(self.project.tier, self.simulated)

    def has(self, path: Path) -> bool:
        """Tells whether a file exists and, if it lies in the tier, is declared."""
        declared = path in self.declared or not path.is_relative_to(self.folder.root)
        return declared and path.is_file()

    def link(self, path: Path) -> str:
        """Returns the path of a file relative to the page."""
        return Path(os.path.relpath(path, (self.page or self.folder.explore).parent)).as_posix()

    def read(self, reader: Callable[[Path], Content], path: Path) -> Content | None:
        """Returns what ``reader`` reads at ``path``; None where it is missing or unreadable.

        Files may be missing while the sweep goes on. An unreadable one is noted.
        """
        return self.attempt(reader, path) if self.has(path) else None

    def attempt(self, make: Callable[..., Content], *of: Any) -> Content | None:
        """Returns what ``make`` returns; at a UserError, which is noted, None."""
        try:
            return make(*of)
        except UserError as error:
            self.notes.append(f"Left out: {error}.")
            return None

    def each(self, make: Callable[..., Content | None], entries: Iterable[Any]) -> list[Content]:
        """Returns what ``make`` returns of this material and each of ``entries``, less None."""
        contents = (self.attempt(make, self, entry) for entry in entries)
        return [content for content in contents if content is not None]


def packed(text: str) -> str:
    """Returns ``text`` as Base64 of its gzip; the same text gives the same letters."""
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode()


def to_json(data: Any) -> str:
    """Returns JSON without spaces: numbers that are not finite are null, dates and so on texts."""
    return json.dumps(finite(data), allow_nan=False, separators=(",", ":"), default=str)


def shortened(values: Iterable[float]) -> list[float]:
    """Returns numbers with seven significant digits, more than the page shows."""
    return [float(f"{value:.7g}") for value in values]
