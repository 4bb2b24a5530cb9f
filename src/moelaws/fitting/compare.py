"""Laws side by side: the same rows, the same hold-out, and their ranks with what chance leaves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from moelaws.fitting.caveats import require_determined
from moelaws.fitting.cores import core_count, each
from moelaws.fitting.estimate import Progress
from moelaws.fitting.fit import fit
from moelaws.fitting.intervals import resampled
from moelaws.fitting.multistart import batches
from moelaws.fitting.prediction import of_draws
from moelaws.fitting.quantiles import percentiles
from moelaws.fitting.report import FitReport
from moelaws.fitting.rows import Rows, selected_rows, split_rows
from moelaws.fitting.scores import Score
from moelaws.fitting.variables import column_sources, read_variables
from moelaws.laws.base import SPARSITY, Array, FittableLaw
from moelaws.laws.mapping import check_comparable
from moelaws.laws.protocol import overridden, own_overrides
from moelaws.laws.reduced import reduced
from moelaws.laws.vocabulary import VOCABULARY
from moelaws.spec.errors import UserError
from moelaws.spec.fit import Fit

WORST = 1e100  # the error of a draw whose predictions overflow
NEARLY_CONSTANT = 0.01  # the largest relative range of a variable that counts as constant


@dataclass(frozen=True)
class HeldOut:
    """One law's predictions of rows that were held out of its fit."""

    rows: NDArray[np.intp]  # (n,) numbers of the rows: the same row may be held out in several fits
    observed: Array  # (n,) the response, natural unit
    predicted: Array  # (n,)
    drawn: Array | None  # (B, n) predictions of the fit's draws
    blocks: NDArray[np.object_] | None = None  # (n,) names of the blocks of rows that err together


class Fitted(NamedTuple):
    """A law as it was fitted: ``ref`` names it, ``law`` is its form for these rows."""

    ref: str
    law: FittableLaw
    columns: dict[str, str]  # variable -> column, of what it reads of the table
    derived: list[str]  # what it derives from them, such as "C = 6 N_active D"
    rows: Rows
    report: FitReport

    def held_out(self, rows: NDArray[np.intp] | None = None) -> HeldOut:
        """Predicts the rows held out, which are numbered ``rows`` where others follow."""
        params, held = self.report.parts[0].estimates(), self.rows.held_columns
        draws = self.report.draws[list(self.law.names)].to_numpy()
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return HeldOut(
                np.arange(len(self.rows.held_response)) if rows is None else rows,
                self.rows.held_response,
                self.law.predict(params, held),
                of_draws(self.law, draws, held) if len(draws) else None,
                self.rows.held_blocks,
            )

    def entry(self) -> dict[str, Any]:
        (part,) = self.report.parts
        return {
            "law": self.law.ref,
            "n": part.n,
            "n_params": len(part.params),
            "converged": part.converged,
            "params": {name: vars(p) for name, p in part.params.items()},
            **{name: part.metrics[name] for name in ("r2", "rmse", "aic", "bic")},
            "holdout": None,
            "warnings": list(part.warnings),
        }


def compare(
    candidates: Sequence[FittableLaw],
    table: pd.DataFrame,
    spec: Fit,
    *,
    seed: int = 0,
    units: Mapping[str, str] = {},
    progress: Progress = lambda stage, done, total: None,
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Fits each of ``candidates`` to the same rows of ``table`` as ``spec`` asks.

    ``spec.law`` is not read; a mapping holds for those laws that have the variable.

    Returns ``Fitted.entry`` of the laws that were fitted, best held-out (else AIC) first, with the
    excess of AIC and BIC over the least, and as ``holdout`` what ``rank`` says of held-out rows;
    and for each law that was refused, why. Fewer than two laws, laws of different responses, and
    that every law is refused are UserErrors.
    """
    check_comparable(candidates, spec.mapping)
    if spec.split_by or spec.select or spec.rollout:
        raise UserError("a comparison takes no split_by, select or rollout")
    fitted, refused = fit_each(candidates, table, spec, seed=seed, units=units, progress=progress)
    if not fitted:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
        raise UserError(f"no law can be fitted; {reasons}")
    entries = [one.entry() for one in fitted]
    for criterion in ("aic", "bic"):
        values = [entry[criterion] for entry in entries if entry[criterion] is not None]
        for entry in entries:
            value = entry[criterion]
            entry[f"{criterion}_excess"] = None if value is None else value - min(values)
    if spec.holdout:
        scores = rank({one.ref: [one.held_out()] for one in fitted}, spec.level, seed)
        for one, entry in zip(fitted, entries, strict=True):
            entry["holdout"] = scores[one.ref]

    def order(entry: Mapping[str, Any]) -> tuple[float, float]:
        held, aic = entry["holdout"], entry["aic"]
        return (held["rmse"] if held else 0.0, np.inf if aic is None else aic)

    return sorted(entries, key=order), refused


def fit_each(
    candidates: Sequence[FittableLaw],
    table: pd.DataFrame,
    spec: Fit,
    mappings: Mapping[str, Mapping[str, str]] = {},
    *,
    seed: int = 0,
    units: Mapping[str, str] = {},
    progress: Progress = lambda stage, done, total: None,
) -> tuple[list[Fitted], dict[str, str]]:
    """Fits each law that the table can feed, and says of the others why it cannot.

    ``mappings`` are what single laws, by their names, map otherwise than ``spec`` does. A law of
    whose variables some hardly vary over all rows, the held-out ones among them, is fitted in its
    reduced form (``laws.reduced``). Several cores take a law each, unless one law keeps them busy.
    """
    owns = [own_entry(law, spec, mappings) for law in candidates]
    apart = core_count() > 1 and _are_short(candidates, owns, len(table))

    def attempt(k: int) -> tuple[Rows, FitReport] | str:
        """Returns the rows and the fit of one law, or why the table cannot feed it."""
        law, own = candidates[k], owns[k]

        def shown(stage: str, done: int, total: int) -> None:
            if not apart:
                progress(f"{law.ref}: {stage}", done, total)

        try:
            form = _form(law, table, own, units)
            rows = split_rows(form, table, own, units)[0]
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                # Rows that hardly determine a law lead its starts anywhere.
                report = fit(form, table, own, seed=seed, units=units, progress=shown)
            if own.holdout:
                params = report.parts[0].estimates()
                _require_finite(form, params, rows)
                require_determined(form, params, rows.columns, rows.held_columns)
        except UserError as error:
            return str(error)
        return rows, report

    # The longest first, which as a rule have the most parameters.
    order = sorted(range(len(candidates)), key=lambda k: -len(candidates[k].names))
    if apart:
        ended = each(attempt, order, len(order), lambda n: progress("laws", n, len(order)))
    else:
        ended = [attempt(k) for k in order]
    fitted: list[Fitted] = []
    refused: dict[str, str] = {}
    for k, outcome in sorted(zip(order, ended, strict=True), key=lambda pair: pair[0]):
        if isinstance(outcome, str):
            refused[candidates[k].ref] = outcome
        else:
            form = _form(candidates[k], table, owns[k], units)  # no other process can send it
            fitted.append(Fitted(candidates[k].ref, form, *_read(form, table, owns[k]), *outcome))
    for one in fitted[1:]:
        if not np.array_equal(one.rows.held_response, fitted[0].rows.held_response):
            raise UserError(
                f"{fitted[0].ref} and {one.ref} read the hold-out {spec.holdout!r} from different "
                "columns; write it in columns of the table that no variable of theirs is named like"
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


def _are_short(candidates: Sequence[FittableLaw], owns: Sequence[Fit], rows: int) -> bool:
    """Tells whether no fit has so many batches of work that it would keep the cores busy."""
    descents = [
        max(overridden(law, own.protocol, own.name).n_run, 0 if own.resample_by else own.bootstrap)
        for law, own in zip(candidates, owns, strict=True)
    ]
    return len(batches(max(descents), max(1, rows))) <= 2 * core_count()


def _read(law: FittableLaw, table: pd.DataFrame, spec: Fit) -> tuple[dict[str, str], list[str]]:
    """Returns the columns behind the law's variables, and the derivations."""
    origins = column_sources(law, table, spec)
    names = {v.name for v in law.variables} | {n for d in origins.derivations for n in d.needs}
    columns = {name: column for name, column in origins.columns.items() if name in names}
    return columns, [step.text for step in origins.derivations]


def _require_finite(law: FittableLaw, params: Mapping[str, float], rows: Rows) -> None:
    """Refuses a law of infinite error on the held-out rows, which no ranking can hold."""
    with np.errstate(all="ignore"):
        predicted = law.predict(params, rows.held_columns)
        wrong = ~np.isfinite((predicted - rows.held_response) ** 2)
    if wrong.any():
        raise UserError(
            "its error on the held-out rows is infinite: it predicts "
            f"{predicted[wrong][0]:.6g} for one of them"
        )


def own_entry(law: FittableLaw, spec: Fit, mappings: Mapping[str, Mapping[str, str]] = {}) -> Fit:
    """Returns the entry for one of the laws: what of the mapping and the protocol concerns it."""
    known = {v.name for v in (*law.variables, law.response)} | set(VOCABULARY)
    columns = {**spec.mapping, **mappings.get(law.ref, {})}
    mapping = {name: column for name, column in columns.items() if name in known}
    units = {name: word for name, word in spec.units.items() if name in known}
    protocol = own_overrides(law, spec.protocol)
    own = {"law": law.ref, "mapping": mapping, "units": units, "protocol": protocol}
    return spec.model_copy(update=own)


Predictions = Mapping[str, Sequence[HeldOut]]  # law -> its predictions in each of several rounds


def rank(predictions: Predictions, level: float, seed: int) -> dict[str, Score]:
    """Ranks laws by the root mean square error over all their held-out rows, the same for all.

    Intervals resample the rows, the same for all laws, and take the draws of each fit. A draw
    predicts a little worse than the fit itself, so that an interval may lie above its error. The
    ends of intervals are draws: none lies between a finite error and an overflowing one.
    """
    residuals = {
        law: np.concatenate([one.predicted - one.observed for one in rounds])
        for law, rounds in predictions.items()
    }
    rmse = {law: float(np.sqrt((residual**2).mean())) for law, residual in residuals.items()}
    best = min(rmse, key=lambda law: rmse[law])
    ranks = rankdata(list(rmse.values()), method="min")
    drawn = _drawn_errors(predictions, seed)
    drawn_ranks = rankdata(list(drawn.values()), method="min", axis=0) if drawn else []
    place = dict(zip(drawn, drawn_ranks, strict=True))
    # Responses are the same for all laws.
    observed = np.concatenate([one.observed for one in predictions[best]])
    spread = float(((observed - observed.mean()) ** 2).sum()) if np.ptp(observed) > 0 else None
    scores: dict[str, Score] = {}
    for law, own in zip(predictions, ranks, strict=True):
        score = scores[law] = {
            "n": len(observed),
            "rmse": rmse[law],
            "r2": 1 - float((residuals[law] ** 2).sum()) / spread if spread else None,
            "rmse_excess": rmse[law] - rmse[best],
            "rank": int(own),
        }
        if law in drawn:
            score["rmse_interval"] = _finite(_ends(drawn[law], level))
            low, high = _ends(place[law], level)
            score["rank_interval"] = [int(low), int(high)]
            score["first"] = float((place[law] == 1).mean())
        if law in drawn and best in drawn:
            ends = _ends(drawn[law] - drawn[best], level)
            score["rmse_excess_interval"] = _finite(ends)
            if law != best:
                score["told_apart"] = ends[0] > 0
    return scores


def _drawn_errors(predictions: Predictions, seed: int) -> dict[str, Array]:
    """Returns the root mean square errors (draws,) of the laws that have draws in every round.

    A row that is held out in several rounds is drawn for all of them at once, and rows of a block
    together.
    """
    known = {
        law: [one.drawn for one in rounds if one.drawn is not None]
        for law, rounds in predictions.items()
    }
    known = {law: draws for law, draws in known.items() if len(draws) == len(predictions[law])}
    count = min((len(draw) for draws in known.values() for draw in draws), default=0)
    if not count:
        return {}
    rounds = next(iter(predictions.values()))
    rows, first, place = np.unique(
        np.concatenate([one.rows for one in rounds]), return_index=True, return_inverse=True
    )
    groups = None
    blocks = [one.blocks for one in rounds if one.blocks is not None]
    if blocks:
        groups = np.unique(np.concatenate(blocks)[first].astype(str), return_inverse=True)[1]
        if not groups.any():  # there is no other block to draw
            groups = None
    rng = np.random.default_rng([seed, 1])  # not the stream that drew the fitted rows
    weights = resampled(len(rows), groups, count, rng)[:, place]
    errors = {}
    for law, draws in known.items():
        residuals = [
            draw[:count] - one.observed for draw, one in zip(draws, predictions[law], strict=True)
        ]
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
