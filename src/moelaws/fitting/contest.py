"""A contest of laws: which one predicts best what was kept from it, split by split."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.fitting.compare import Fitted, Progress, fit_each
from moelaws.fitting.judged import JudgedLaw, JudgedSplit, Standing, Step
from moelaws.fitting.rollout import ROWS_PER_PARAMETER, thresholds
from moelaws.fitting.standings import standings
from moelaws.fitting.variables import numbers, require_column
from moelaws.laws.base import Array, Mask
from moelaws.laws.mapping import check_comparable
from moelaws.spec.errors import UserError
from moelaws.spec.fit import Contest, Split
from moelaws.spec.rows import select
from moelaws.tables.sweeps import in_sweep

MARK = "contest_split"  # a column of its own in the table: 0 for fitted rows, 1 for judged ones
Round = tuple[list[Fitted], dict[str, str]]  # the laws that were fitted, and why others were not


def contest(
    entry: Contest,
    table: pd.DataFrame,
    *,
    seed: int = 0,
    units: Mapping[str, str] = {},
    progress: Progress = lambda stage, done, total: None,
) -> list[JudgedSplit]:
    """Judges the laws of ``entry`` at each of its splits.

    Rows are chosen by the table's own columns, so that they are the same for all laws. A roll-out
    goes from the largest value of its column down, as long as every law that was fitted at the
    largest can be fitted to the rows below.

    A split that keeps no row, or all, refuses every law with that reason.

    Raises:
        UserError: for laws that cannot be compared, and for a column that is not in the table.
    """
    candidates = [laws.fittable(ref) for ref in entry.laws]
    check_comparable(candidates, entry.mapping)
    rows = _Rows(entry, table)
    judged = []
    known: dict[bytes, Round] = {}  # two splits may keep the same rows
    for split in entry.splits:

        def fitted(kept: Kept, split: Split = split) -> Round:
            key = kept.fitted.tobytes() + kept.held.tobytes()
            if key in known:
                return known[key]

            def shown(stage: str, done: int, total: int) -> None:
                progress(f"{split.name}: {stage}", done, total)

            marked = table.assign(**{MARK: np.select([kept.fitted, kept.held], [0.0, 1.0], np.nan)})
            known[key] = fit_each(
                candidates,
                marked,
                entry.fit(split, MARK),
                entry.mappings,
                seed=seed,
                units=units,
                progress=shown,
            )
            return known[key]

        try:
            kept = rows.kept(split)
        except KeepsNothingError as error:  # such as one budget: the other splits go on
            judged.append(_without_laws(split, dict.fromkeys(entry.laws, str(error))))
        else:
            judged.append(_judged(entry, split, kept, fitted, seed))
    return judged


class KeepsNothingError(UserError):
    """A split that leaves no row to fit, or none to judge."""


class Kept(NamedTuple):
    """Which rows of the table are fitted and which are held out, masks (n,).

    ``holdout`` says in words which ones are held out.
    """

    holdout: str
    fitted: Mask
    held: Mask


class _Rows:
    """A table as a contest reads it: columns of numbers and the rows of the contest."""

    def __init__(self, entry: Contest, table: pd.DataFrame) -> None:
        self.table = table
        self.columns = {
            str(name): numbers(table, str(name), entry.name)
            for name, column in table.items()
            if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
        }
        self.used = np.broadcast_to(select(self.columns, entry.rows), len(table))
        if "status" in table.columns:
            self.used = self.used & (table["status"].astype(str) == "completed").to_numpy(bool)
        if entry.sweep:
            self.used = self.used & in_sweep(table, entry.sweep)

    def kept(self, split: Split) -> list[Kept]:
        """The hold-outs of a split, of the most fitted rows first."""
        used = self.used & select(self.columns, split.rows)
        if not split.column:
            held = used & select(self.columns, split.holdout)
            return [_not_empty(Kept(split.holdout, used & ~held, held))]
        require_column(self.table, split.column, "the split")
        values = self.columns.get(split.column, np.full(len(used), np.nan))
        finite = _finite(values[used])
        cuts = thresholds(finite) if split.rollout else np.unique(finite)[-2:-1]
        if not len(cuts):
            raise KeepsNothingError(f"all of its {used.sum()} rows have one {split.column}")
        largest = f"the largest {split.column}, {_number(finite.max(), 3)}"
        return [
            Kept(
                f"{split.column} > {_number(cut, 6)}" if split.rollout else largest,
                used & (values <= cut),
                used & (values > cut),
            )
            for cut in reversed(cuts)
        ]


def _number(value: float, digits: int) -> str:
    """As people write it: 3.68e8."""
    return f"{value:.{digits}g}".replace("e+0", "e").replace("e+", "e")


def _finite(values: Array) -> Array:
    return values[np.isfinite(values)]


def _not_empty(kept: Kept) -> Kept:
    for mask, what in ((kept.held, "selects none"), (kept.fitted, "selects all")):
        if not mask.any():
            total = int((kept.held | kept.fitted).sum())
            raise KeepsNothingError(f"holdout {kept.holdout!r} {what} of the {total} rows")
    return kept


def _judged(
    entry: Contest, split: Split, kept: list[Kept], fitted: Callable[[Kept], Round], seed: int
) -> JudgedSplit:
    """The laws at one split; ``fitted`` fits them all but for the rows of a hold-out."""
    first, refused = fitted(kept[0])
    rounds = [(kept[0], first)]
    needed = ROWS_PER_PARAMETER * max((len(one.law.names) for one in first), default=0)
    for below in kept[1:]:
        if not first or below.fitted.sum() < needed:
            break
        fits, _ = fitted(below)
        if {one.ref for one in fits} != {one.ref for one in first}:
            break
        rounds.append((below, fits))
    # The laws go in the contest's order in every round.
    by_law = {steps[0].ref: steps for steps in zip(*(fits for _, fits in rounds), strict=True)}
    rows = [np.flatnonzero(below.held) for below, _ in rounds]
    judged = {
        ref: [one.judged(own) for one, own in zip(steps, rows, strict=True)]
        for ref, steps in by_law.items()
    }
    blocks = {
        str(name)
        for steps in judged.values()
        for one in steps
        if one.blocks is not None
        for name in one.blocks
    }
    standing = standings(judged, entry.level, seed) if judged else {}
    entries = [_standing(by_law[ref], numbers) for ref, numbers in standing.items()]
    return _without_laws(split, refused) | {
        "steps": [
            Step(holdout=k.holdout, fitted=int(k.fitted.sum()), judged=int(k.held.sum()))
            for k, _ in rounds
        ],
        "blocks": len(blocks),
        "laws": sorted(entries, key=lambda law: law["rmse"]),
    }


def _without_laws(split: Split, refused: dict[str, str]) -> JudgedSplit:
    use = " ".join(split.use.split())
    return JudgedSplit(name=split.name, use=use, steps=[], blocks=0, laws=[], refused=refused)


def _standing(steps: Sequence[Fitted], numbers: Standing) -> JudgedLaw:
    law = steps[0].law
    return JudgedLaw(
        law=law.ref,
        equation=law.equation,
        columns=steps[0].columns,
        derived=steps[0].derived,
        parameters=len(law.names),
        converged=all(part.converged for one in steps for part in one.report.parts),
        **numbers,
    )
