"""What a page is made from: the project's studies at a tier, and where their files lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from moelaws.records.layout import Results, TierFolder
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project
from moelaws.spec.study import Study

Content = TypeVar("Content")


@dataclass(frozen=True)
class Material:
    """What is there of a tier, which may be a part: its runs may still be under way.

    Attributes:
        project: its configuration.
        studies: the chosen ones, without the entries that the tier or simulated losses lack.
        simulated: whether the losses come from laws instead of trainings.
        results: the tree below which everything lies.
        notes: sentences on what could not be read, which the page shows.
    """

    project: Project
    studies: tuple[Study, ...]
    simulated: bool = False
    results: Results = field(default_factory=Results)
    notes: list[str] = field(default_factory=list)

    @property
    def folder(self) -> TierFolder:
        """Where the tier's tables, fits and figures lie."""
        return self.results.tier(self.project.tier, self.simulated)

    def read(self, reader: Callable[[Path], Content], path: Path) -> Content | None:
        """Returns what ``reader`` reads at ``path``; None where it is missing or unreadable.

        A missing file is what a sweep under way has. An unreadable one is noted.
        """
        if not path.is_file():
            return None
        return self.attempt(lambda: reader(path))

    def attempt(self, make: Callable[[], Content]) -> Content | None:
        """Returns what ``make`` returns; None, and a note, where the user must mend something."""
        try:
            return make()
        except UserError as error:
            self.notes.append(f"Left out: {error}.")
            return None
