"""Registrations: sealed files in config/preregistered, which nobody edits afterwards.

One holds what a sweep will be judged by, fixed before it trains: the identities of its runs, the
study's entries with the digests of their code, and what given fits predict.
"""

from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from moelaws.files import seal
from moelaws.files.atomic import read_json
from moelaws.records.ancestry import added
from moelaws.records.code import Entries
from moelaws.spec.base import Frozen, parse
from moelaws.spec.errors import UserError

FOLDER = Path("config/preregistered")
# A loss, and the ends of the interval of one run; None where the fit has no intervals
Loss = tuple[float, float | None, float | None]


class Predicted(Frozen):
    """What a fit predicts of the runs."""

    fit: str  # the report's file
    law: str
    digest: str  # of the report
    level: float
    losses: dict[str, Loss]  # by run


class Registration(Frozen):
    """What was fixed of a study's sweep at one tier, at one commit."""

    digest: str = ""  # of the file, once it is written
    format: Literal["moelaws registration 1"] = "moelaws registration 1"
    study: str
    tier: str
    title: str
    stages: tuple[str, ...] = ()  # of the grid, whose runs alone are registered; none: all
    time: datetime
    commit: str
    moelaws: str
    python: str
    packages: dict[str, str]
    seen: tuple[str, ...]  # runs that had ended already: what of the data existed
    table: bool  # whether the tier's table existed
    runs: dict[str, tuple[float | None, tuple[str, ...]]]  # run -> its budget and its sweeps
    stopping: str = "All runs are trained, and none is added; by a rule, those that it chooses."
    exclusions: str = "Runs that do not complete are counted, and left out of fits."
    entries: Entries
    predictions: tuple[Predicted, ...] = ()
    advice: dict[str, dict[str, Any]] = {}  # budget -> what the fits advise, as of `moelaws advise`
    power: dict[str, Any] | None = None  # counts of an earlier trial of the rules
    amends: str = ""  # digest of an older registration
    why: str = ""
    # The options of `moelaws next`, by which rounds are chosen from the runs; none: all are trained
    rule: dict[str, Any] | None = None


def read(path: Path) -> Registration:
    """Returns what a file holds.

    Raises a UserError if it was changed since it was written, and if it has no seal, for anybody
    may have written it then.
    """
    data = read_json(path)
    state, digest = seal.inspect(path)
    if state != "whole":
        raise UserError(f"{path} has no seal; `moelaws preregister` writes registrations")
    return parse(Registration, {**data, "digest": digest}, path)


def files_of(study: str = "", tier: str = "") -> list[Path]:
    """Returns the registrations of a study's sweep, or of all, sorted."""
    return sorted(FOLDER.glob(f"{study or '[!.]*'}.{tier or '*'}.*.json"))


def committed(study: str, tier: str) -> list[Registration]:
    """Returns the registrations that a commit has, the newest one last."""
    own = [read(path) for path in files_of(study, tier) if added(path)]
    return sorted(own, key=lambda one: one.time)
