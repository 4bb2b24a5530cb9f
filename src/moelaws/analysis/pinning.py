"""The fitted laws of learning rate and batch, pinned for other studies to follow."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.derive import derived_table, records
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.fitting.report import FitReport, GroupFit
from moelaws.spec.base_shape import BaseShape
from moelaws.spec.errors import UserError
from moelaws.spec.grid import TableOf
from moelaws.spec.hyperparameters import (
    BaseRate,
    BestRates,
    Pinned,
    PinnedFit,
    PinnedLaw,
    Provenance,
    Transferred,
)
from moelaws.spec.run import RunConfig
from moelaws.spec.study import Study

LAW = "leverage.hyperparameters"


def pinned(
    study: Study, inputs: FittedInputs, tier: str, lr: str, batch: str, corpora: Sequence[str] = ()
) -> Pinned:
    """Returns the laws of the fits ``lr`` and ``batch`` of a search, with their provenance.

    ``corpora`` are the identities of the text of the runs. A UserError refuses a fit of another
    law, of losses that were not trained, of runs by Muon, without intervals, split, or not
    converged.
    """
    reports = {
        "lr": _checked(inputs.fit(lr), f"{LAW}:lr"),
        "batch_tokens": _checked(inputs.fit(batch), f"{LAW}:batch"),
    }
    rows = inputs.rows(lr)
    gates = set(inputs.table["gates"].fillna("selected")) - {"none"}  # a table may be older
    if len(gates) > 1:
        raise UserError("the search has two kinds of gates (normalize_top_k); search one at a time")
    fitted = inputs.table["run_id"].isin(rows.get("run_id", inputs.table["run_id"]))
    if optimizers(inputs.table[fitted]) != {"adamw"}:
        raise UserError(f"fit {lr} is of runs by Muon; the pinned laws are AdamW's, so pin --per")
    tables = {str(report.spec["table"]) for report in reports.values()}
    if len(tables) > 1 or tables == {""}:
        raise UserError(f"fits {lr} and {batch} must be fitted to one table of a search")
    table = study.derived_table(tables.pop())
    search = inputs.derived(table.name)
    # Where the near-optimal runs agree, the law has no error and its interval no width.
    laws = {name: _law(report.parts[0]) for name, report in reports.items()}
    flat = [
        f"{name}: one value is best at all budgets, so that the interval of width 0 says nothing"
        for name, law in laws.items()
        if len(set(law.exponent_interval)) == 1
    ]
    return Pinned(
        lr=laws["lr"],
        batch_tokens=laws["batch_tokens"],
        provenance=Provenance(
            study=study.study,
            tier=tier,
            lr=_fit(reports["lr"]),
            batch_tokens=_fit(reports["batch_tokens"]),
            level=reports["lr"].level,
            tolerance=float(search["tolerance"].iloc[0]),
            searched=len(search),
            C=(float(rows["C"].min()), float(rows["C"].max())),
            corpora=tuple(sorted(corpora)),
            versions=reports["lr"].versions,
            gates=gates.pop() if gates else "selected",
            notes=(*derived_table(study, table).warnings(search), *flat),
        ),
    )


def best_rates(inputs: Inputs, per: Sequence[str], corpora: Sequence[str] = ()) -> BestRates:
    """Returns the learning rate of least mean loss at each value of the columns ``per``.

    The mean is over what else varies there, such as sparsities; a rate that did not complete at all
    of these is left out. A UserError refuses losses that were not trained, and two optimizers.
    """
    if inputs.sources != ("trained",):
        raise UserError(f"the losses are {'+'.join(inputs.sources)}; only trained ones are pinned")
    runs, by = inputs.completed, list(per)
    if len(of := optimizers(runs)) > 1:
        raise UserError("the search has two optimizers, and each has rates of its own; pin one")
    if missing := [name for name in by if name not in runs]:
        raise UserError(f"--per: the study's table has no column {missing[0]!r}")
    rates = runs.groupby([*by, "lr"])["L"].agg(["mean", "size"]).reset_index()
    whole = rates[rates["size"] == rates.groupby(by)["size"].transform("max")]
    best = whole.loc[whole.groupby(by)["mean"].idxmin(), [*by, "lr"]].astype(float)
    rows = tuple(best.itertuples(index=False, name=None))
    table = TableOf(rule="table", by=tuple(by), rows=rows)
    return BestRates(lr=table, runs=len(runs), corpora=tuple(corpora), optimizer=of.pop())


def transferred(inputs: Inputs, configs: Mapping[str, RunConfig]) -> Transferred:
    """Returns the best rates of the derived table ``bases``, of runs with these ``configs``.

    Bases are left out whose best rate is not inside those tried, or not bounded by them on both
    sides. The power of training tokens is that of the derived table ``optima``, if the study has a
    ladder of tokens. A UserError refuses losses that were not trained, and a table without a rate.
    """
    if inputs.sources != ("trained",):
        raise UserError(f"the losses are {'+'.join(inputs.sources)}; only trained ones are pinned")
    pins = []
    for row in records(inputs.derived("bases", inside=True)):
        ends = ("lr_star", "lr_low", "lr_high")
        lr, *interval = (float(f"{row[name]:.6g}") for name in ends)
        if not 0 < min(interval) <= max(interval) < math.inf:
            continue
        run = configs[row["run_id"]]
        model = run.model
        pins.append(
            BaseRate(
                base=BaseShape.of(model),
                optimizer=row["optimizer"],
                lr=lr,
                lr_interval=interval,
                init_std=model.init_std,
                D=run.tokens,
                batch=run.batch,
                context=model.context,
                vocab_size=model.vocab_size,
            )
        )
    if not pins:
        raise UserError("no base has its best rate inside those tried; try others")
    corpora = {configs[run].corpus.corpus_id for run in configs}
    return Transferred(bases=tuple(pins), corpora=tuple(sorted(corpora)), **_of_tokens(inputs))


def _of_tokens(inputs: Inputs) -> dict[str, Any]:
    """Returns the power that best rates follow over training tokens, where runs bound it."""
    rungs = inputs.derived("optima", along="tokens", rule="transfer")
    for row in records(rungs[rungs["place"] == "largest"]):
        power, *interval = (row[name] for name in ("power", "power_low", "power_high"))
        if np.isfinite([power, *interval]).all():
            return {
                "exponent": float(f"{power:.3g}"),
                "exponent_interval": [float(f"{end:.3g}") for end in interval],
                "exponent_from": f"best rates of {rungs['size'].min():g} to {row['size']:g} "
                "training tokens by the study transfer",
            }
    return {}


def optimizers(runs: pd.DataFrame) -> set[str]:
    """Returns the optimizers of a study's runs; older tables have AdamW alone."""
    return set(runs["optimizer"].fillna("adamw")) if "optimizer" in runs else {"adamw"}


def _checked(report: FitReport, law: str) -> FitReport:
    where = f"fit {report.name}"
    if report.law != law:
        raise UserError(f"{where} fits {report.law}; only a fit of {law} can be pinned here")
    if report.source != "trained":
        raise UserError(f"{where} rests on {report.source} losses; only trained ones are pinned")
    if by := report.split_by:
        raise UserError(f"{where} is split by {by}, so it holds several laws; pin a fit of one")
    (fitted,) = report.parts
    if not fitted.converged:
        raise UserError(f"{where} did not converge, so it cannot be pinned")
    if any(None in (p.low, p.high) for p in fitted.params.values()):
        raise UserError(
            f"{where} has no intervals: {fitted.n} near-optimal runs determine the line and "
            "nothing more; search more budgets"
        )
    return report


def _law(fitted: GroupFit) -> PinnedLaw:
    """Returns the law to six digits, so that orders of summation change no identities of runs."""
    values: dict[str, Any] = {}
    for name, p in fitted.params.items():
        # The exponent of equal values at all budgets, such as one batch, is a rounding error.
        least = 1e-12 if name == "exponent" else 0
        ends = (end if abs(end) > least else 0.0 for end in (p.estimate, p.low or 0, p.high or 0))
        values[name], *interval = (float(f"{end:.6g}") for end in ends)
        values[f"{name}_interval"] = interval
    return PinnedLaw(**values)


def _fit(report: FitReport) -> PinnedFit:
    return PinnedFit(name=report.name, runs=report.parts[0].n, digest=report.table["digest"])
