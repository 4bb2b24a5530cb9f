"""A contest of laws: which one predicts best the rows that were held out, split by split."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.fitting.compare import Fitted, fit_each, own_entry, rank
from moelaws.fitting.cores import unseen
from moelaws.fitting.errors import r2
from moelaws.fitting.report import LawScore, SplitScores, Step
from moelaws.fitting.rollout import ROWS_PER_PARAMETER, Progress, thresholds, within
from moelaws.fitting.variables import column_sources, numbers
from moelaws.laws.base import Array, Columns, Mask
from moelaws.laws.mapping import check_comparable
from moelaws.spec.errors import UserError
from moelaws.spec.fit import Contest, Split
from moelaws.spec.rows import select
from moelaws.tables.foreign import columns
from moelaws.tables.sweeps import best_trials, completed, in_sweep

MARK = "contest_split"  # a column of its own in the table: 0 for fitted rows, 1 for held-out ones
Round = tuple[list[Fitted], dict[str, str]]  # the laws that were fitted, and why others were not


class Kept(NamedTuple):
    """Which rows of the table are fitted and which are held out, masks (n,)."""

    holdout: str  # in words, which ones are held out
    fitted: Mask
    held: Mask


def contest(
    entry: Contest,
    table: pd.DataFrame,
    *,
    units: Mapping[str, str] = {},
    progress: Progress = unseen,
) -> list[SplitScores]:
    """Ranks the laws of ``entry`` at each of its splits.

    Rows are chosen by the table's own columns, so that they are the same for all laws. A roll-out
    begins at the largest value of its column and goes down, as long as all laws that were fitted at
    the largest value can be fitted. A split that fits or holds out no row refuses every law. Laws
    that cannot be compared, a column that is not in the table, or a split whose rows took part in
    the choice of its law, are a UserError.
    """
    candidates = [laws.fittable(ref) for ref in entry.laws]
    check_comparable(candidates, entry.mapping)
    used = completed(table) & select(columns(table), entry.rows)
    if entry.sweep:
        used &= in_sweep(table, entry.sweep)
    used = best_trials(table, entry.best_per, used, entry.mapping.get("L", "L"))
    scores = []
    # Rounds that are fitted already, by their rows: two splits may have the same ones.
    known = {}
    seen = {}  # split -> the rows that it fits or judges
    for split in entry.splits:

        def fitted(kept: Kept, split: Split = split) -> Round:
            mark = np.select([kept.fitted, kept.held], [0.0, 1.0], np.nan)
            if (key := mark.tobytes()) not in known:
                spec, own = entry.fit(split, MARK), entry.mappings
                known[key] = fit_each(
                    [(law, own_entry(law, spec, own.get(law.ref, {}))) for law in candidates],
                    table.assign(**{MARK: mark}),
                    units=units,
                    progress=within(progress, f"{split.name}: "),
                    calibrated=False,  # it judges draws, and reads no interval of a prediction
                )
            return known[key]

        kept = _kept(split, table, used)
        if isinstance(kept, str):  # the other splits may still be scored
            scores.append(_without_laws(split, dict.fromkeys(entry.laws, kept)))
            continue
        seen[split.name] = np.any([one.fitted | one.held for one in kept], axis=0)
        chosen_on = seen.get(split.chosen_by, np.False_)
        if any((chosen_on & one.held).any() for one in kept):
            raise UserError(
                f"contest {entry.name}: the split {split.chosen_by} has rows that "
                f"{split.name} judges, so that it cannot choose a law for them"
            )
        scores.append(_scores(entry, split, kept, fitted, table))
    return scores


def _kept(split: Split, table: pd.DataFrame, used: Mask) -> list[Kept] | str:
    """Returns the rounds of a split, first the one that fits the most rows, or why none can be.

    A round has rows to fit and rows that are held out, all of which are ``used``.
    """
    cells = columns(table)
    used = used & select(cells, split.rows)
    if not split.column:
        held = used & select(cells, split.holdout)
        for mask, what in ((held, "selects none"), (used & ~held, "selects all")):
            if not mask.any():
                return f"holdout {split.holdout!r} {what} of the {used.sum()} rows"
        return [Kept(split.holdout, used & ~held, held)]
    values = numbers(table, split.column, "the split")
    finite = values[used & np.isfinite(values)]
    cuts = thresholds(finite) if split.rollout else np.unique(finite)[-2:-1]
    if not len(cuts):
        return f"all of its {used.sum()} rows have one {split.column}"
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
    """Returns a number as people write it: 3.68e8."""
    return f"{value:.{digits}g}".replace("e+0", "e").replace("e+", "e")


def _scores(
    entry: Contest,
    split: Split,
    kept: list[Kept],
    fitted: Callable[[Kept], Round],
    table: pd.DataFrame,
) -> SplitScores:
    """Ranks the laws at one split; ``fitted`` returns their fits to the rows of a round."""
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
    # Every round has the laws in the contest's order.
    by_law = {fits[0].ref: fits for fits in zip(*(fits for _, fits in rounds), strict=True)}
    predictions = {ref: [one.held_out() for one in fits] for ref, fits in by_law.items()}
    every = [one.blocks for held_out in predictions.values() for one in held_out]
    blocks = {str(name) for names in every if names is not None for name in names}
    scores = rank(predictions, entry.level, 0) if predictions else {}
    observed = np.concatenate([own[0].rows.held_response if own else [] for _, own in rounds])
    entries = []
    for ref, own in by_law.items():
        law = own[0].law
        origins = column_sources(law, table, own[0].entry)
        names = {v.name for v in law.variables}
        names |= {need for step in origins.derivations for need in step.needs}
        entries.append(
            LawScore(
                law=law.ref,
                equation=law.equation,
                columns={name: column for name, column in origins.columns.items() if name in names},
                derived=[step.text for step in origins.derivations],
                parameters=len(law.names),
                converged=all(one.fit.converged for one in own),
                ceiling=_ceiling([one.rows.held_columns for one in own], observed),
                **scores[ref],
            )
        )
    return _without_laws(split, refused) | {
        "steps": [
            Step(holdout=k.holdout, fitted=int(k.fitted.sum()), judged=int(k.held.sum()))
            for k, _ in rounds
        ],
        "blocks": len(blocks),
        "laws": sorted(entries, key=lambda scored: scored["rmse"]),
    }


def _ceiling(rounds: Sequence[Columns], observed: Array) -> float | None:
    """Returns the R2 of the best function of a law's variables: means over runs that agree in them.

    ``rounds`` has the variables in the rows that each round judges. It is None where no two of the
    runs (n,) agree. No law of these variables alone can have a larger R2.
    """
    columns = [np.concatenate([own[name] for own in rounds]) for name in rounds[0]]
    group = np.unique(np.stack(columns), axis=1, return_inverse=True)[1].ravel()
    means = np.bincount(group, observed) / np.bincount(group)
    pure_error = observed - means[group]
    return r2(observed, pure_error) if pure_error.any() else None


def _without_laws(split: Split, refused: dict[str, str]) -> SplitScores:
    use = " ".join(split.use.split())
    return SplitScores(name=split.name, use=use, steps=[], blocks=0, laws=[], refused=refused)
