"""What to do next: the plan for larger budgets, wider grids, and runs to try again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

import pandas as pd

from moelaws.analysis.advice.outlook import COLUMNS
from moelaws.explore.answers.best import bests, called
from moelaws.explore.fits import LossFit
from moelaws.explore.isoflop import IsoFlop
from moelaws.explore.material import Material
from moelaws.explore.runs import Runs
from moelaws.explore.words import amount, answer, count, hours, listed, table
from moelaws.records.runs import UNSUCCESSFUL
from moelaws.tables.parquet import read_table

ROBUST = "robust"


def further(
    material: Material, runs: Runs, fits: Sequence[LossFit], curves: Sequence[IsoFlop]
) -> dict[str, Any]:
    """Returns the answer."""
    path = material.folder.outlook.with_suffix(".parquet")
    outlook = material.read(lambda file: read_table(file, COLUMNS), path)
    paragraphs, plans = [], None
    if outlook is not None and len(robust := outlook[outlook["plan"] == ROBUST]):
        largest = _largest(runs, outlook)
        paragraphs = [
            "Every law was taken as the truth in turn. The robust plan is the one that loses least "
            "under the law that suits it worst. Its regret under a law is how much higher its loss "
            "is than that of the best plan by that law; in brackets stands its interval. The "
            "budgets lie far above what was trained: take the plans as a direction.",
            *_plans(robust, largest),
        ]
        columns = ("law taken as the truth", "budget (FLOPs)", "regret (nats/token)")
        plans = table(columns, _regrets(robust))
        paragraphs += _uncounted(robust, fits)
    points = [*_retries(runs), *_wider(curves), *_unfinished(runs)]
    if outlook is None:
        paragraphs.append(
            "There is no outlook to larger budgets. Snakemake makes one, of fits of the loss to "
            "runs that were trained here."
        )
    return answer("What to do next", paragraphs, points, plans)


def _largest(runs: Runs, outlook: pd.DataFrame) -> float:
    """Returns the largest budget that was trained, 6 N_active D."""
    own = runs.frame[runs.frame["source"] == "trained"] if "source" in runs.frame else runs.frame
    return float(own["C_6N"].max()) if "C_6N" in own else float("nan")


def _plans(robust: pd.DataFrame, largest: float) -> Iterator[str]:
    """Yields the robust plan of each budget in a sentence."""
    for row in robust.drop_duplicates("budget").to_dict("records"):
        times = row["budget"] / largest
        above = f", {times:.3g} times the largest that was trained" if isfinite(times) else ""
        hour = row["hours"]
        lasts = f"; at the speed of these runs that takes {hours(3600 * hour)}" * isfinite(hour)
        yield (
            f"With {row['budget']:.3g} FLOPs{above}, the robust plan is a model of "
            f"{amount(row['N'])} parameters, of which each token uses {amount(row['N_active'])} "
            f"(sparsity {row['S']:.3g}), on {amount(row['D'])} tokens{lasts}."
        )


def _regrets(robust: pd.DataFrame) -> Iterator[list[str]]:
    for row in robust.to_dict("records"):
        ends = row["regret_low"], row["regret_high"]
        within = f" [{ends[0]:.3f}, {ends[1]:.3f}]" if all(map(isfinite, ends)) else ""
        yield [row["judge"], f"{row['budget']:.3g}", f"{row['regret']:.3f}{within}"]


def _uncounted(robust: pd.DataFrame, fits: Sequence[LossFit]) -> Iterator[str]:
    """Yields which laws of the plan do not count, for their fits are not determined."""
    poor = {
        f"{fit.study.study}/{fit.spec.name}"
        for fit in fits
        if not fit.report.parts[0].converged or fit.report.parts[0].diagnostics.at_bounds
    }
    if names := sorted(poor & set(robust["judge"])):
        yield (
            f"{listed(names)} did not decide the plan: the fit did not converge, or a coefficient "
            "lies at its bound. The regret under it says little."
        )


def _retries(runs: Runs) -> Iterator[str]:
    failed = runs.frame[runs.frame["status"].isin(UNSUCCESSFUL)]
    if len(failed):
        names = listed([str(run) for run in failed["run_id"].head(5)])
        more = f" and {len(failed) - 5} more" if len(failed) > 5 else ""
        yield (
            f"Failed: {count(len(failed), 'run')} ({names}{more}). `moelaws runs --retry` asks for "
            "them again, and the next call of snakemake trains them. A run that diverged will "
            "diverge again unless its learning rate is lowered in the study's file."
        )


def _unfinished(runs: Runs) -> Iterator[str]:
    waiting = runs.frame[runs.frame["status"].isin(("running", "interrupted"))]
    if len(waiting):
        yield (
            f"Not finished: {count(len(waiting), 'run')}. Call snakemake again once none is "
            "running: it takes up each where it stopped, and makes this page anew."
        )


def _wider(curves: Sequence[IsoFlop]) -> Iterator[str]:
    """Yields where the best size or sparsity lies at the edge of what was trained."""
    for isoflop in curves:
        where = f"{isoflop.fit.study.study} ({isoflop.column})"
        file = isoflop.fit.study.file
        rows = bests(isoflop)
        if sizes := [f"{row.flops:.3g}" for row in rows if row.optimum.bound]:
            yield (
                f"{where}: at {listed(sizes)} FLOPs the best size is the smallest or the largest "
                f"that was trained. Add sizes beyond it to the grid in {file}."
            )
        if edges := [row for row in rows if row.edge]:
            named = listed([f"{row.flops:.3g}" for row in edges])
            yield (
                f"{where}: at {named} FLOPs the best {called(edges[0].name)} is "
                f"{listed(sorted({f'{row.value:.4g}' for row in edges}))}, an end of what was "
                f"trained. Add values beyond it to the grid in {file}, where there are any."
            )
