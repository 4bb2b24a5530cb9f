"""What the sparsity paper stands on, judged by slopes of the optima and by held-out errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array, percentile_interval
from moelaws.claims.base import (
    CANNOT_TELL,
    NOT_SUPPORTED,
    SUPPORTED,
    Claim,
    Finding,
    Verdict,
    by_interval,
)
from moelaws.fitting.rows import selected_rows
from moelaws.fitting.variables import read_variables

MEAN_RULE = (
    "The slope is drawn through the optima of the isoFLOP surfaces (Eq 8) that lie inside what was "
    "measured and averaged over {over}; supported where the whole 90 % interval of the surfaces' "
    "draws is {side} 0, not supported where it is {other} 0."
)
EVERY_RULE = (
    "At each budget a slope of L* over -ln(1-S) through the optima inside what was measured; "
    "supported where the 90 % interval is below 0 at every budget, not supported where it is above "
    "0 at one."
)
MORE = (
    "more budgets, sizes around each optimum, and seeds: tier gpu (3e16 to 3e17 FLOPs, five "
    "sparsities) or, at demo scale, a second and third seed of every run"
)


def trend(inputs: Inputs, name: str, sign: int) -> Finding:
    """The mean slope of a trend, which the paper says has the sign ``sign``."""
    rows = _trend(inputs, name)
    mean = rows[rows["at"] == "mean"].iloc[0]
    if not np.isfinite(mean["low"]):
        return Finding(CANNOT_TELL, _missing(rows), needed=MORE)
    low, high = sorted((sign * mean["low"], sign * mean["high"]))
    verdict = by_interval(low, high)
    return Finding(
        verdict,
        f"slope {_interval(mean)} {mean['unit']}, the mean of {mean['n']} ({_each(rows)})",
        float(mean["slope"]),
        float(mean["low"]),
        float(mean["high"]),
        str(mean["unit"]),
        MORE if verdict == CANNOT_TELL else "",
    )


def loss_falls(inputs: Inputs) -> Finding:
    """Whether L* falls with S at every budget."""
    rows = _trend(inputs, "L_over_S")
    mean, each = rows[rows["at"] == "mean"].iloc[0], rows[rows["at"] != "mean"]
    if not np.isfinite(mean["low"]):
        return Finding(CANNOT_TELL, _missing(rows), needed=MORE)
    if (each["low"] > 0).any():
        verdict = NOT_SUPPORTED
    else:
        verdict = SUPPORTED if (each["high"] < 0).all() else CANNOT_TELL
    return Finding(
        verdict,
        f"slope {_interval(mean)} {mean['unit']} on average; at each budget: {_each(rows)}",
        float(mean["slope"]),
        float(mean["low"]),
        float(mean["high"]),
        str(mean["unit"]),
        MORE if verdict == CANNOT_TELL else "",
    )


def predicts_unseen(inputs: Inputs) -> Finding:
    """Excess of Chinchilla's error over Eq 6's on the sparsest runs, which both hold out."""
    holdout = inputs.spec("loss").holdout
    errors = {fit: _held_out_errors(inputs, fit) for fit in ("loss", "chinchilla")}
    (own, own_draws), (other, other_draws) = errors["loss"], errors["chinchilla"]
    n = len(own)
    more = "runs of at least six sparsities, the sparsest held out, at three budgets (tier gpu)"
    if n < 2 or not min(len(own_draws), len(other_draws)):
        return Finding(CANNOT_TELL, f"{n} runs are held out ({holdout or 'nothing'})", needed=more)
    value = float(_rmse(other) - _rmse(own))
    B = min(len(own_draws), len(other_draws))
    resample = np.random.default_rng(0).integers(n, size=(B, n))
    excess = _rmse(np.take_along_axis(other_draws[:B], resample, 1)) - _rmse(
        np.take_along_axis(own_draws[:B], resample, 1)
    )
    low, high = percentile_interval(excess, inputs.fit("loss").level)
    verdict: Verdict = by_interval(low, high)
    return Finding(
        verdict,
        f"RMSE on the {n} runs with {holdout}: {_rmse(own):.3g} nats/token by Eq 6, "
        f"{_rmse(other):.3g} by Chinchilla in N_a and D; difference {value:.2g} [{low:.2g}, "
        f"{high:.2g}]",
        value,
        low,
        high,
        "nats/token",
        more if verdict == CANNOT_TELL else "",
    )


def _trend(inputs: Inputs, name: str) -> pd.DataFrame:
    table = inputs.derived("trends")
    return table[table["trend"] == name]


def _interval(row: pd.Series[float]) -> str:
    return f"{row['slope']:.2g} [{row['low']:.2g}, {row['high']:.2g}]"


def _each(rows: pd.DataFrame) -> str:
    each = rows[rows["at"] != "mean"]
    return "; ".join(f"{row['at']}: {row['note'] or _interval(row)}" for _, row in each.iterrows())


def _missing(rows: pd.DataFrame) -> str:
    each = rows[(rows["at"] != "mean") & (rows["note"] != "")]
    found = [f"{row['at']}: {row['note']}" for _, row in each.iterrows()]
    return "; ".join(found) or "the surfaces have no draws: too few runs for an interval"


def _held_out_errors(inputs: Inputs, fit: str) -> tuple[Array, Array]:
    """Errors of the held-out rows (n,) by the estimates and (B, n) by the draws."""
    report, spec = inputs.fit(fit), inputs.spec(fit)
    law = laws.fittable(report.law)
    rows = inputs.table[selected_rows(inputs.table, law, spec, {})[1]]
    L = rows["L"].to_numpy(float)
    if not len(rows):
        return np.empty(0), np.empty((0, 0))
    values = read_variables(law, rows, spec).values
    drawn = inputs.draws(fit)[list(law.names)].to_dict("records")
    theta = np.array([law.vector({str(k): v for k, v in row.items()}) for row in drawn])
    theta = theta.reshape(len(drawn), len(law.names))
    predicted = law.predict(report.part({}).estimates(), values)
    return predicted - L, law.predict_batch(theta, values) - L


def _rmse(errors: Array) -> Array:
    return np.asarray(np.sqrt(np.mean(errors**2, axis=-1)))


def _mean_rule(sign: int, over: str) -> str:
    sides = ("above", "below") if sign > 0 else ("below", "above")
    return MEAN_RULE.format(over=over, side=sides[0], other=sides[1])


def _slope(name: str, sign: int) -> Callable[[Inputs], Finding]:
    return partial(trend, name=name, sign=sign)


CLAIMS = {
    "loss_falls_with_sparsity": Claim(
        "At every budget the loss at the optimal size falls as the model gets sparser.",
        "sparsity, sec 3, Fig 3c",
        EVERY_RULE,
        loss_falls,
    ),
    "total_size_rises_with_sparsity": Claim(
        "At a fixed budget the optimal number of total parameters rises with sparsity.",
        "sparsity, sec 2.1, Fig 2b and 3a",
        _mean_rule(+1, "budgets"),
        _slope("N_over_S", +1),
    ),
    "active_size_falls_with_sparsity": Claim(
        "At a fixed budget the optimal number of active parameters falls with sparsity.",
        "sparsity, sec 2.1, Fig 2c and 3b",
        _mean_rule(-1, "budgets"),
        _slope("N_active_over_S", -1),
    ),
    "active_size_rises_with_budget": Claim(
        "At a fixed sparsity the optimal number of active parameters rises with the budget.",
        "sparsity, D.1, Fig 9 (sec 6 prints the opposite: E2.2)",
        _mean_rule(+1, "sparsities"),
        _slope("N_active_over_C", +1),
    ),
    "sparsity_rises_with_size": Claim(
        "At a fixed budget the optimal sparsity rises with the total number of parameters.",
        "sparsity, sec 2.2 and D.2, Fig 4",
        _mean_rule(+1, "budgets"),
        _slope("S_over_N", +1),
    ),
    "sparsity_falls_with_budget": Claim(
        "At a fixed total number of parameters the optimal sparsity falls as the budget grows.",
        "sparsity, sec 3 and D.2, Fig 4 (sec 6 prints the opposite: E2.1)",
        _mean_rule(-1, "pairs of neighbouring budgets"),
        _slope("S_over_C", -1),
    ),
    "eq_6_predicts_the_sparsest": Claim(
        "A law that knows sparsity (Eq 6), fitted to denser runs, predicts the sparsest better "
        "than one that knows active parameters and tokens alone (Chinchilla).",
        "sparsity, sec 5, Fig 6b",
        "Chinchilla's RMSE on the held-out runs less that of Eq 6; its 90 % interval resamples "
        "these runs and the draws of both fits. Supported where it is above 0, not supported where "
        "it is below 0.",
        predicts_unseen,
    ),
}
