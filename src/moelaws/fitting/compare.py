"""Laws side by side: fits to the same rows, and a ranking by errors on the same held-out rows."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moelaws.files.atomic import finite
from moelaws.fitting.caveats import require_determined
from moelaws.fitting.cores import core_count, each, unseen
from moelaws.fitting.errors import r2
from moelaws.fitting.fit import fit
from moelaws.fitting.intervals import resampled
from moelaws.fitting.prediction import Prediction, of_draws, predict
from moelaws.fitting.quantiles import percentiles
from moelaws.fitting.report import Data, FitReport, GroupFit, Score
from moelaws.fitting.rollout import Average, Progress, within
from moelaws.fitting.rows import Rows, selected_rows, split_rows
from moelaws.fitting.variables import read_variables, with_size
from moelaws.laws.base import SPARSITY, Array, FittableLaw
from moelaws.laws.mapping import check_comparable
from moelaws.laws.protocol import own_overrides
from moelaws.laws.reduced import reduced
from moelaws.laws.vocabulary import VOCABULARY
from moelaws.spec.errors import UserError
from moelaws.spec.fit import Fit

WORST = 1e100  # the error of a draw whose predictions overflow
NEARLY_CONSTANT = 0.01  # the largest relative range of a variable that counts as constant


@dataclass(frozen=True)
class HeldOut:
    """One law's predictions of rows that were held out of its fit."""

    rows: NDArray[np.intp]  # (n,) numbers in the table, since several fits may hold out one row
    observed: Array  # (n,) the response, natural unit
    predicted: Array  # (n,)
    drawn: Array  # (B, n) predictions of the fit's draws
    blocks: NDArray[np.object_] | None = None  # (n,) names of the blocks of rows that err together


class Fitted(NamedTuple):
    """A law of a comparison, as these rows are fitted by it."""

    ref: str  # of the candidate
    law: FittableLaw  # its form for these rows
    entry: Fit  # its own: what concerns it of the common entry
    rows: Rows
    report: FitReport

    @property
    def fit(self) -> GroupFit:
        return self.report.parts[0]

    @property
    def _draws(self) -> Array:
        return np.asarray(self.report.draws[list(self.law.names)])

    def held_out(self) -> HeldOut:
        """Returns the predictions of the held-out rows."""
        rows = self.rows
        with np.errstate(all="ignore"):
            predicted = self.law.predict(self.fit.estimates(), rows.held_columns)
            drawn = of_draws(self.law, self.fit, self._draws, rows.held_columns)
        return HeldOut(rows.held_rows, rows.held_response, predicted, drawn, rows.held_blocks)

    def predicted(self, columns: Mapping[str, Any], level: float) -> Prediction:
        """Returns the law at rows (n,), with the intervals of its fit."""
        with np.errstate(all="ignore"):
            return predict(self.law, self.fit, self._draws, columns, level)


def compare(
    candidates: Sequence[FittableLaw],
    table: pd.DataFrame,
    spec: Fit,
    *,
    seed: int = 0,
    units: Mapping[str, str] = {},
    progress: Progress = unseen,
    at: Mapping[str, float] = {},
) -> tuple[list[Data], dict[str, str], Data | None]:
    """Fits each of ``candidates`` to the same rows of ``table`` as ``spec`` asks.

    ``spec.law`` is not read, and a mapping concerns the laws that have the variable. The entry is
    neither split nor does it choose among forms.

    Returns an ``entry`` of each law that was fitted, best first by held-out rows, else by AICc, the
    reason why each other law was refused, and the average of the laws (``fitting.rollout``), None
    if their roll-outs give none. An entry also has the excess of the criteria over the least and,
    as ``holdout``, the result of ``rank`` and the fraction of the rows ``inside`` the interval of a
    new observation. With the variables of a point ``at``, it has the prediction there. Fewer than
    two laws, laws of different responses, and laws that are all refused are UserErrors.
    """
    check_comparable(candidates, spec.mapping)
    entrants = [(law, own_entry(law, spec)) for law in candidates]
    fitted, refused = fit_each(entrants, table, seed=seed, units=units, progress=progress)
    if not fitted:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
        raise UserError(f"no law can be fitted; {reasons}")
    scores = {}
    if spec.holdout:
        scores = rank({one.ref: [one.held_out()] for one in fitted}, spec.level, seed)
    entries = []
    for one in fitted:
        own = one.fit
        entry: Data = {
            "law": one.law.ref,
            "n": own.n,
            "n_params": len(own.params),
            "converged": own.converged,
            "params": {name: vars(p) for name, p in own.params.items()},
            **{name: own.metrics[name] for name in ("r2", "rmse", "aic", "aicc", "bic")},
            "holdout": None,
            "warnings": own.warnings,
        }
        entries.append(entry)
        for criterion in ("aic", "aicc", "bic"):
            values = [other.fit.metrics[criterion] for other in fitted]
            mine, least = entry[criterion], min(x for x in [*values, np.inf] if x is not None)
            entry[f"{criterion}_excess"] = None if mine is None else mine - least
        if spec.holdout:
            at_held = one.predicted(one.rows.held_columns, spec.level)
            entry["holdout"] = scores[one.ref] | at_held.holds(one.rows.held_response)
        if at:
            entry["at"] = _at(one.predicted(at, spec.level))

    def order(entry: Mapping[str, Any]) -> tuple[float, float]:
        held, aicc = entry["holdout"], entry["aicc"]
        return (held["rmse"] if held else 0.0, np.inf if aicc is None else aicc)

    return sorted(entries, key=order), refused, _average(fitted, spec, at)


def _average(fitted: Sequence[Fitted], spec: Fit, at: Mapping[str, float]) -> Data | None:
    """Returns the weights of an average of laws, its held-out error and its prediction at a point.

    A law counts if a roll-out calibrates it and its fit converged: where a search stopped says
    nothing beyond the rows. It is None if fewer than two laws do.
    """
    calibrated = [one for one in fitted if (own := one.fit.calibration) and own.has_rounds]
    members = [one for one in calibrated if one.fit.converged]
    if len(members) < 2:
        return None
    average = Average.of([one.law for one in members], [one.fit for one in members])
    names = [one.law.ref for one in members]
    weights = dict(zip(names, average.weights, strict=True))
    data: Data = {"weights": weights, "holdout": None}
    if spec.holdout:
        observed = members[0].rows.held_response
        held = average.predict([one.rows.held_columns for one in members], spec.level)
        rmse = float(np.sqrt(np.mean((held.value - observed) ** 2)))
        data["holdout"] = {"rmse": rmse} | held.holds(observed)
    if at:
        points = [
            {name: np.atleast_1d(x) for name, x in one.law.columns(at).items()} for one in members
        ]
        data["at"] = _at(average.predict(points, spec.level))
    return data


def _at(prediction: Prediction) -> dict[str, float | None]:
    return {name: finite(ends[0]) for name, ends in vars(prediction).items()}


def fit_each(
    entrants: Sequence[tuple[FittableLaw, Fit]],
    table: pd.DataFrame,
    *,
    seed: int = 0,
    units: Mapping[str, str],
    progress: Progress,
    calibrated: bool = True,
) -> tuple[list[Fitted], dict[str, str]]:
    """Fits each law whose variables the table has, and returns why each other law was refused.

    The ``entrants`` are the laws, each with its own entry. A law is fitted in its reduced form
    (``laws.reduced``) if some of its variables hardly vary over all rows, held-out ones included.
    Each core takes a law.
    """
    outcomes: dict[str, Fitted | str] = {}  # law -> its fit, or why it is refused
    queue = []
    for law, entry in entrants:
        try:
            own = with_size(law, table, entry)
            queue.append((law.ref, _form(law, table, own, units), own))
        except UserError as error:
            outcomes[law.ref] = str(error)
    # The longest fits come first, which are mostly those of the most parameters.
    queue.sort(key=lambda one: -len(one[1].names))
    n = len(queue)
    stage = progress if core_count() == 1 else unseen  # another process shows nothing

    def attempt(k: int) -> tuple[Rows, FitReport] | str:
        """Returns the rows and the fit of one law, or why it is refused."""
        ref, law, entry = queue[k]  # a process cannot be sent a law
        shown = within(stage, f"{ref}: ")
        try:
            rows = split_rows(law, table, entry, units)[0]
            with np.errstate(all="ignore"):
                # Where rows hardly determine a law, descents may pass through infinite values.
                report = fit(
                    law, table, entry,
                    seed=seed, units=units, progress=shown, calibrated=calibrated,
                )  # fmt: skip
                if entry.holdout:
                    predicted = law.predict(report.parts[0].estimates(), rows.held_columns)
                    wrong = ~np.isfinite((predicted - rows.held_response) ** 2)
                    if wrong.any():
                        raise UserError(  # since it has no rank
                            "its error on the held-out rows is infinite: it predicts "
                            f"{predicted[wrong][0]:.6g} for one of them"
                        )
                    require_determined(law, rows.columns, rows.held_columns)
        except UserError as error:
            return str(error)
        return rows, report

    ended = each(attempt, range(n), n, lambda done: progress("laws", done, n))
    for one, end in zip(queue, ended, strict=True):
        outcomes[one[0]] = end if isinstance(end, str) else Fitted(*one, *end)
    ordered = {law.ref: outcomes[law.ref] for law, _ in entrants}
    fitted = [one for one in ordered.values() if isinstance(one, Fitted)]
    refused = {ref: why for ref, why in ordered.items() if isinstance(why, str)}
    for other in fitted[1:]:
        if not np.array_equal(other.rows.held_response, fitted[0].rows.held_response):
            raise UserError(
                f"{fitted[0].ref} and {other.ref} read the hold-out {other.entry.holdout!r} from "
                "different columns; write it in columns of the table that no variable of theirs is "
                "named like"
            )
    return fitted, refused


def _form(law: FittableLaw, table: pd.DataFrame, own: Fit, units: Mapping[str, str]) -> FittableLaw:
    """Returns the law's form without exponents of variables that hardly vary over all rows."""
    fitted, held = selected_rows(table, law, own, {})
    given, constant = read_variables(law, table, own, units).values, set()
    for variable in (v for v in law.variables if v.name in given):
        x = given[variable.name][fitted | held]
        x = 1 - x if variable.domain is SPARSITY else x
        if len(x) and np.ptp(x) <= NEARLY_CONSTANT * np.abs(x).max():
            constant.add(variable.name)
    return reduced(law, constant)


def own_entry(law: FittableLaw, spec: Fit, mapping: Mapping[str, str] = {}) -> Fit:
    """Returns the entry with what concerns ``law`` of the mapping, the units and the protocol.

    Its own ``mapping`` precedes that of ``spec``.
    """
    known = {v.name for v in (*law.variables, law.response)} | set(VOCABULARY)

    def of(values: Mapping[str, Any], names: Collection[str]) -> Data:
        return {name: value for name, value in values.items() if name in names}

    own = {
        "law": law.ref,
        "mapping": of({**spec.mapping, **mapping}, known),
        "units": of(spec.units, known),
        "protocol": own_overrides(law, spec.protocol),
        "fixed": of(spec.fixed, law.names),
        "priors": of(spec.priors, law.names),
    }
    return spec.model_copy(update=own)


Predictions = Mapping[str, Sequence[HeldOut]]  # law -> its predictions in each round of fits


def rank(predictions: Predictions, level: float, seed: int) -> dict[str, Score]:
    """Ranks laws by the root mean square error over their held-out rows, which are the same rows.

    Intervals combine resampled rows, the same for all laws, with the draws of each fit. A draw
    predicts a little worse than the fit itself, so that an interval may lie above its error. The
    ends of an interval are draws, so that none is a mean of a finite and an infinite error.
    """
    residuals = {
        law: np.concatenate([one.predicted - one.observed for one in rounds])
        for law, rounds in predictions.items()
    }
    rmse = {law: float(np.sqrt((residual**2).mean())) for law, residual in residuals.items()}
    best = min(rmse, key=lambda law: rmse[law])
    ranks = _ranks(np.array([*rmse.values()]))
    drawn = _drawn_errors(predictions, seed)
    rank_draws = dict(zip(drawn, _ranks(np.array([*drawn.values()])), strict=True))
    observed = np.concatenate([one.observed for one in predictions[best]])  # the same for all laws
    scores: dict[str, Score] = {}
    for law, own in zip(predictions, ranks, strict=True):
        score = scores[law] = {
            "n": len(observed),
            "rmse": rmse[law],
            "r2": r2(observed, residuals[law]),
            "rmse_excess": rmse[law] - rmse[best],
            "rank": int(own),
        }
        if law in drawn:
            score["rmse_interval"] = _finite(_ends(drawn[law], level))
            low, high = _ends(rank_draws[law], level)
            score["rank_interval"] = [int(low), int(high)]
            score["first"] = float((rank_draws[law] == 1).mean())
        if law in drawn and best in drawn:
            ends = _ends(drawn[law] - drawn[best], level)
            score["rmse_excess_interval"] = _finite(ends)
            if law != best:
                score["told_apart"] = ends[0] > 0
    return scores


def _ranks(errors: Array) -> Array:
    """Returns the rank of each law's error (laws, ...); equal errors share the best of theirs."""
    return np.asarray(1 + (errors[None] < errors[:, None]).sum(axis=1))


def _drawn_errors(predictions: Predictions, seed: int) -> dict[str, Array]:
    """Returns the root mean square errors (draws,) of the laws that have draws in every round.

    A draw takes a row that is held out in several rounds in all of them, and all rows of a block.
    """
    known = {
        law: rounds for law, rounds in predictions.items() if all(len(one.drawn) for one in rounds)
    }
    count = min((len(one.drawn) for rounds in known.values() for one in rounds), default=0)
    if not count:
        return {}
    any_law = next(iter(predictions.values()))
    rows, first, place = np.unique(
        np.concatenate([one.rows for one in any_law]), return_index=True, return_inverse=True
    )
    blocks = None
    if names := [one.blocks for one in any_law if one.blocks is not None]:
        blocks = np.unique(np.concatenate(names)[first].astype(str), return_inverse=True)[1]
        if not blocks.any():  # all rows are one block, so they are drawn one by one
            blocks = None
    rng = np.random.default_rng([seed, 1])  # not the stream that drew the fitted rows
    weights = resampled(len(rows), blocks, count, rng)[:, place]
    errors = {}
    for law, rounds in known.items():
        residuals = [one.drawn[:count] - one.observed for one in rounds]
        with np.errstate(invalid="ignore", over="ignore"):
            squares = weights * np.concatenate(residuals, axis=1) ** 2
        mean = squares.sum(axis=1) / weights.sum(axis=1)
        errors[law] = np.nan_to_num(np.sqrt(mean), nan=WORST, posinf=WORST)
    return errors


def _ends(draws: Array, level: float) -> tuple[float, float]:
    low, high = percentiles(draws, level, "inverted_cdf")
    return float(low), float(high)


def _finite(ends: tuple[float, float]) -> list[float | None]:
    return [end if abs(end) < WORST / 2 else None for end in ends]
