"""The best architecture at each budget, with what the runs leave open of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from moelaws.explore.isoflop import Curve, IsoFlop, Optimum
from moelaws.explore.runs import Runs
from moelaws.explore.words import amount, answer, interval, table
from moelaws.fitting.quantiles import percentiles


@dataclass(frozen=True)
class Best:
    """The best of the curves of one budget.

    Attributes:
        flops: the budget.
        name: the variable that tells the curves apart, such as S; empty for a single curve.
        value, low, high: its value of the least loss, and the interval of the draws' choices among
            the measured values.
        edge: whether it is the least or the largest value that was measured.
        optimum: the best size there.
    """

    flops: float
    name: str
    value: float
    low: float
    high: float
    edge: bool
    optimum: Optimum


def bests(isoflop: IsoFlop) -> list[Best]:
    """Returns the best of each budget that has an optimum, by rising budget."""
    budgets = groupby(sorted(isoflop.curves, key=lambda c: c.C), key=lambda c: c.C)
    found = (_best(list(curves), isoflop.fit.report.level) for _, curves in budgets)
    return [each for each in found if each is not None]


def best(runs: Runs, curves: Sequence[IsoFlop]) -> dict[str, Any]:
    """Returns the answer: of fitted curves where there are any, else the best runs as measured."""
    heading = "The best architecture at each budget"
    found = [(each, bests(each)) for each in curves]
    found = [(each, rows) for each, rows in found if rows]
    if not found:
        return _measured(heading, runs)
    paragraphs = [
        "At a fixed training budget a larger model reads less text, so that there is a best size. "
        "It was read off a curve that was fitted to all runs of a budget, and compared between "
        "sparsities. Brackets hold the interval "
        f"({found[0][0].fit.report.level:.0%}) that the fit's redrawn runs leave open. A size or "
        "sparsity marked as a bound lies at the edge of what was trained: the true best one may "
        "lie beyond it."
    ]
    points = [sentence for each, rows in found for sentence in _sentences(each, rows)]
    columns = ("study", "size counted", "budget (FLOPs)", "best size", "architecture", "loss")
    return answer(heading, paragraphs, points, table(columns, _rows(found), text=2))


def _best(curves: list[Curve], level: float) -> Best | None:
    """Returns the best of one budget's curves; None where none has an optimum."""
    known = [(curve, curve.optimum) for curve in curves if curve.optimum]
    if not known:
        return None
    curve, optimum = min(known, key=lambda each: each[1].L)
    name = next(iter(curve.others), "")
    if not name:
        return Best(curve.C, "", np.nan, np.nan, np.nan, False, optimum)
    values = np.array([each.others[name] for each, _ in known])
    low = high = np.nan
    drawn = np.array([each.L_draws for _, each in known])
    if drawn.shape[1]:
        chosen = values[drawn.argmin(axis=0)]
        low, high = map(float, percentiles(chosen, level, "inverted_cdf"))
    value = curve.others[name]
    # Nothing lies below a sparsity of 0: a dense model is no bound.
    least = value == values.min() and value > 0
    edge = len(values) > 1 and (least or value == values.max())
    return Best(curve.C, name, value, low, high, bool(edge), optimum)


def _rows(found: Sequence[tuple[IsoFlop, list[Best]]]) -> Iterator[list[str]]:
    for each, rows in found:
        for row in rows:
            yield [
                each.fit.study.study,
                each.column,
                f"{row.flops:.3g}",
                _size(row.optimum),
                _choice(row),
                f"{row.optimum.L:.4g}",
            ]


def _size(optimum: Optimum) -> str:
    bound = " (a bound)" if optimum.bound else ""
    return amount(optimum.x) + interval(optimum.low, optimum.high) + bound


def _choice(row: Best) -> str:
    if not row.name:
        return ""
    known = np.isfinite(row.low)
    ends = f" [{row.low:.4g}, {row.high:.4g}]" if known else ""
    return f"{called(row.name)} {row.value:.4g}{ends}" + (" (a bound)" if row.edge else "")


def called(name: str) -> str:
    """Returns what a sentence calls a variable."""
    return {"S": "sparsity", "E": "number of experts"}.get(name, name)


def _sentences(isoflop: IsoFlop, rows: list[Best]) -> Iterator[str]:
    """Yields what is best at the largest budget, and how the best size grows with the budget."""
    last, kind = rows[-1], "total" if "total" in isoflop.column else "active"
    sparsity = f" at {_choice(last)}" if last.name else ""
    yield (
        f"{isoflop.fit.study.study}: at the largest budget, {last.flops:.3g} FLOPs, the best model "
        f"has {_size(last.optimum)} {kind} parameters{sparsity}, with a loss of "
        f"{last.optimum.L:.4g} nats per token."
    )
    inside = [row for row in rows if not row.optimum.bound]
    if len(inside) > 1:
        first, last = inside[0], inside[-1]
        grown = np.log(last.optimum.x / first.optimum.x) / np.log(last.flops / first.flops)
        yield (
            f"{isoflop.fit.study.study}: from {first.flops:.3g} to {last.flops:.3g} FLOPs the best "
            f"number of {kind} parameters goes from {amount(first.optimum.x)} to "
            f"{amount(last.optimum.x)}, as the budget to the power {grown:.2f}."
        )


def _measured(heading: str, runs: Runs) -> dict[str, Any]:
    """Returns the runs of least loss at each budget, where no curve is fitted."""
    frame = runs.frame
    known = {"C", "L", "N_active", "S", "status"} <= set(frame)
    rows = frame[frame["C"].notna() & frame["L"].notna()] if known else frame.iloc[:0]
    if not len(rows):
        text = "No budget of this tier has a completed run yet, so that nothing can be compared."
        return answer(heading, [text])
    paragraphs = [
        "No curve of the loss over size at a fixed budget is fitted here. The table shows the runs "
        "of least loss as they were measured: chance, learning rate and the choice of what was "
        "tried all count in it, and there is no interval."
    ]
    columns = ("study", "budget (FLOPs)", "total parameters", "active parameters", "S", "loss")
    least = rows.loc[rows.groupby(["study", "C"])["L"].idxmin()]
    body = [
        [
            str(row["study"]),
            f"{row['C']:.3g}",
            amount(row["N_total"]),
            amount(row["N_active"]),
            f"{row['S']:.4g}",
            f"{row['L']:.4g}",
        ]
        for row in least.to_dict("records")
    ]
    return answer(heading, paragraphs, table=table(columns, body))
