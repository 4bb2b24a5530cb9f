"""Claims of the generalization paper: what its slopes, routing runs and hidden states show."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.fitted import FittedInputs
from moelaws.claims.base import Evidence
from moelaws.studies.generalization.derived.dimension import of_models
from moelaws.studies.generalization.derived.exponents import (
    OWN,
    estimates,
    interval_text,
    one_row,
    with_interval,
)
from moelaws.studies.generalization.derived.runs import FEW, MANY
from moelaws.studies.generalization.laws.kappa import LAW as KAPPA

MIN_R2 = 0.9  # of the line in ln-ln: below it the loss is no power law
MIN_WIDTH = 128  # below it a dimension may be a large fraction of the width for lack of room
MIN_LAYERS = 8  # that give a model a profile over depth; the paper's have 12 and more
MIN_EXPERT_COUNTS = 4  # numbers of experts that show a trend of kappa
MAD_TO_90 = 1.645 * 1.4826  # half a 90 % interval of a normal spread, in median deviations

NO_STATES = Evidence(
    "no hidden states: no completed run's weights are kept",
    needed="runs that the study's keep_weights selects",
)


def active_parameters(inputs: FittedInputs) -> Evidence:
    """Returns the exponent of ln L over ln N_act; a bent line refutes it but never supports it."""
    (fit,) = estimates(inputs, "model_line")
    alpha = fit.with_interval("alpha")
    r2 = fit.result.metrics.get("r2") or 0.0
    low = alpha["value_low"] if r2 >= MIN_R2 else -math.inf
    return Evidence(
        f"alpha of L = a/N_act^alpha, without a floor, is {_text(alpha)}, "
        f"R2 = {r2:.3f}, n = {fit.result.n}",
        *_number(alpha),
        decides=[(low, alpha["value_high"])],
    )


def exponent_identity(inputs: FittedInputs) -> Evidence:
    """Returns kappa of the slopes above fitted floors: 1 where the exponents are consistent."""
    slopes = inputs.derived("slopes")
    kappa, alpha_N, alpha_D = (
        one_row(slopes, floor="fitted", series=series, name=name)
        for series, name in (("both", "kappa"), ("model", "alpha"), ("data", "alpha"))
    )
    return Evidence(
        f"alpha_D over alpha_N/(1 + alpha_N) is {_text(kappa)}, from alpha_N = "
        f"{alpha_N['value']:.3g} and alpha_D = {alpha_D['value']:.3g} above fitted floors, "
        f"n = {kappa['n']}",
        *_number(kappa),
    )


def routing_regimes(inputs: FittedInputs) -> Evidence:
    """Returns the slope of the loss over ln M below the middle M; the one above decides too."""
    table = inputs.derived("routing")
    few, many = (one_row(table[table["D"].isna()], part=half) for half in (FEW, MANY))
    slopes = "; ".join(
        f"{name}: {_text(row, 'slope')} nats for each e-fold of M (n = {row['n']})"
        for name, row in ((FEW, few), (MANY, many))
    )
    return Evidence(
        f"change of the loss with ln M at fixed k, budget and compute: {slopes}",
        *_number(few, "slope"),
        unit="nats/token",
        decides=[(few["slope_low"], few["slope_high"]), (-many["slope_high"], -many["slope_low"])],
    )


def small_dimension(inputs: FittedInputs) -> Evidence:
    """Returns the largest dimension of the models' middle layers as a fraction of their width.

    Narrow states have little room: they can show that a dimension is small, not that it is large.
    """
    models = of_models(inputs.derived("dimension"))
    if models.empty:
        return NO_STATES
    ratio = models["dimension"] / models["d_model"]
    error = MAD_TO_90 * models["mad"] / models["d_model"]
    largest, low, high = (float(x.max()) for x in (ratio, ratio - error, ratio + error))
    narrowest = int(models["d_model"].min())
    return Evidence(
        f"middle layers of {len(models)} models have dimension "
        f"{models['dimension'].min():.1f} to {models['dimension'].max():.1f} at width "
        f"{narrowest}: at most {largest:.2f} of it ({low:.2f} to {high:.2f})",
        value=largest,
        low=low,
        high=high,
        decides=[(low if narrowest >= MIN_WIDTH else 0.0, high)],
    )


def depth_profile(inputs: FittedInputs) -> Evidence:
    """Returns the first block's dimension less the middle's, over the models that are deep enough.

    A model follows the profile by the smaller of two margins: this difference, and the middle's
    dimension less the last block's. The margins of all models together decide.
    """
    table = inputs.derived("dimension")
    blocks = table[table["layer"] > 0]
    if blocks.empty:
        return NO_STATES
    deepest = int(blocks["n_layers"].max())
    deep = blocks[blocks["n_layers"] >= min(deepest, MIN_LAYERS)]
    ends = pd.DataFrame([_ends(rows) for _, rows in deep.groupby("run_id")])
    first, last, error = (ends[name] for name in ("first", "last", "error"))
    margin = np.minimum(first, -last)
    low, high = margin - error, margin + error
    return Evidence(
        f"first block less the middle: {first.min():+.2f} to {first.max():+.2f}; last less the "
        f"middle: {last.min():+.2f} to {last.max():+.2f}; of {len(ends)} models, up to {deepest} "
        f"layers, {int((low > 0).sum())} follow the profile, {int((high < 0).sum())} do not",
        value=float(first.median()),
        low=float(first.min()),
        high=float(first.max()),
        decides=[(low.min(skipna=False), high.max(skipna=False))] if deepest >= MIN_LAYERS else [],
    )


def dimension_and_exponents(inputs: FittedInputs) -> Evidence:
    """Returns the smoothness that the model exponent implies at the measured dimension."""
    models = of_models(inputs.derived("dimension"))
    if models.empty:
        return NO_STATES
    (fit,) = estimates(inputs, "model_floor")
    d = float(models["dimension"].median())
    # An exponent at its bound of 0 was not determined.
    alpha = fit.params["alpha"] if fit.params["alpha"] > 0 else math.nan
    drawn = np.where(fit.draws["alpha"] > 0, fit.draws["alpha"], np.nan)
    s = with_interval("value", d * alpha / 2, d * drawn / 2, fit.level)
    return Evidence(
        f"alpha_N = {fit.params['alpha']:.3g} above a fitted floor and d = {d:.1f} imply a "
        f"smoothness of {_text(s)}, n = {fit.result.n}",
        *_number(s),
    )


def kappa_grows(inputs: FittedInputs) -> Evidence:
    """Returns the exponent of kappa in the number of experts."""
    rho = one_row(inputs.derived("amplification"), origin=OWN, law=KAPPA.ref, name="rho")
    return Evidence(
        f"rho of kappa ~ E^rho is {_text(rho)} over {rho['points']} numbers of experts; "
        "the paper's Table 5 gives 0.126",
        *_number(rho),
        decides=None if rho["points"] >= MIN_EXPERT_COUNTS else [],
    )


def _ends(rows: pd.DataFrame) -> dict[str, float]:
    """Returns how far the first and the last block lie above the middle, and the error of both."""
    rows = rows.sort_values("layer")
    middle = rows[rows["middle"]]
    inner = float(middle["dimension"].median())
    return {
        "first": float(rows["dimension"].iloc[0]) - inner,
        "last": float(rows["dimension"].iloc[-1]) - inner,
        "error": MAD_TO_90 * math.hypot(float(rows["mad"].max()), float(middle["mad"].max())),
    }


def _text(row: Mapping[Any, Any], name: str = "value") -> str:
    value, low, high = _number(row, name)
    ends = interval_text(low, high, "interval not known")
    return f"{value:.3g} ({ends})" if math.isfinite(value) else "not known"


def _number(row: Mapping[Any, Any], name: str = "value") -> tuple[float, float, float]:
    """Returns the row's number ``name`` with the ends of its interval."""
    value, low, high = (float(row[f"{name}{end}"]) for end in ("", "_low", "_high"))
    return value, low, high
