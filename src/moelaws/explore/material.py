"""What a page is made from: the project's studies at a tier, and the files that they declare."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from moelaws.files.layout import Results, TierFolder
from moelaws.grids.sweep import Sweep
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project
from moelaws.spec.study import Study

Content = TypeVar("Content")


@dataclass(frozen=True)
class Material:
    """A tier's studies with the files that a page of it may show; runs may still be under way."""

    project: Project  # its configuration
    # The chosen ones, without the entries that the tier or simulated losses lack
    studies: tuple[Study, ...]
    # Study -> the runs that its grid lists; empty where losses are simulated
    sweeps: Mapping[str, Sweep]
    # The files of the tier that the workflow declares. Others that lie in the tier's folder belong
    # to another study or to an earlier call, and are not read.
    declared: Collection[Path]
    simulated: bool = False  # whether the losses come from laws instead of trainings
    results: Results = field(default_factory=Results)  # the tree below which everything lies
    # Sentences on what could not be read, which the page shows
    notes: list[str] = field(default_factory=list)

    @property
    def folder(self) -> TierFolder:
        """Where the tier's tables, fits and figures lie."""
        return self.results.tier(self.project.tier, self.simulated)

    def has(self, path: Path) -> bool:
        """Tells whether a file is there, and is of these studies where it lies in the tier."""
        declared = path in self.declared or not path.is_relative_to(self.folder.root)
        return declared and path.is_file()

    def read(self, reader: Callable[[Path], Content], path: Path) -> Content | None:
        """Returns what ``reader`` reads at ``path``; None where it is missing or unreadable.

        A missing file is what a sweep under way has. An unreadable one is noted.
        """
        return self.attempt(lambda: reader(path)) if self.has(path) else None

    def attempt(self, make: Callable[[], Content]) -> Content | None:
        """Returns what ``make`` returns; None, and a note, where the user must mend something."""
        try:
            return make()
        except UserError as error:
            self.notes.append(f"Left out: {error}.")
            return None
