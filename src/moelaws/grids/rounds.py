"""Rounds of a sweep: which of a grid's runs are asked for, one round after the other.

``moelaws next`` appends them to ``STUDY.rounds.yaml`` beside the study's file. With ``runs:
rounds`` in the configuration a sweep has these runs alone.
"""

from pathlib import Path
from typing import Literal

import yaml

from moelaws.files.atomic import write_text
from moelaws.spec.base import Count, Frozen, Positive, parse
from moelaws.spec.from_yaml import read_yaml
from moelaws.spec.project import Project
from moelaws.spec.study import Study
from moelaws.spec.tier import Tier

HEAD = "# Written by `moelaws next`: the runs of each round, which `--config runs=rounds` trains.\n"


class ChosenRun(Frozen):
    """A run of a round: what it costs in FLOPs, and why it was chosen."""

    run: str
    name: str
    cost: Positive
    reason: str


class Round(Frozen):
    """The runs that were chosen together."""

    round: Count
    tier: Tier
    source: Literal["trained", "simulated"] = "trained"  # of the losses that chose them
    target: str
    pool: str = ""  # a tier or a study whose grid the runs are of, beside the study's own
    registered: str = ""  # digest of the registration that fixed by which rule they are chosen
    runs: tuple[ChosenRun, ...]


class Rounds(Frozen):
    """All rounds of a study, of all tiers and targets."""

    rounds: tuple[Round, ...] = ()
    failed: tuple[str, ...] = ()  # runs that left no record, and are not asked for again

    def of(self, project: Project) -> list[Round]:
        """Returns the rounds of the project's tier, chosen by losses of its source."""
        where = project.tier, project.source
        return [own for own in self.rounds if (own.tier, own.source) == where]

    def run_ids(self, project: Project) -> set[str]:
        """Returns the runs of the project's rounds that have not failed."""
        return {one.run for own in self.of(project) for one in own.runs} - set(self.failed)

    def registered(self, digest: str) -> set[str]:
        """Returns the runs that were chosen by the rule of a registration."""
        return {one.run for own in self.rounds if own.registered == digest for one in own.runs}

    def pools(self, project: Project) -> set[str]:
        """Returns the wider grids from which the project's rounds were chosen."""
        return {own.pool for own in self.of(project)} - {""}


def path_of(study: Study, root: Path = Path()) -> Path:
    """Returns the file of the study's rounds, whether it exists or not."""
    return (root / study.file).with_suffix(".rounds.yaml")


def read_rounds(path: Path) -> Rounds:
    """Returns the rounds of a file; none without it. A UserError refuses others."""
    return parse(Rounds, read_yaml(path), path) if path.exists() else Rounds()


def write_rounds(path: Path, rounds: Rounds) -> None:
    """Replaces the file, whole."""
    data = rounds.model_dump(mode="json", exclude_defaults=True)
    text = yaml.safe_dump(data, sort_keys=False, default_flow_style=None, width=200)
    write_text(path, HEAD + text)
