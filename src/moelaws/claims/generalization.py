"""Claims of the paper `generalization`, judged on the study's slopes, routing runs and states."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.generalization.amplification import LAWS
from moelaws.analysis.generalization.dimension import of_models
from moelaws.analysis.generalization.draws import estimates, with_interval
from moelaws.analysis.generalization.identities import OWN
from moelaws.analysis.generalization.routing import FEW, MANY
from moelaws.analysis.inputs import Inputs
from moelaws.claims.base import (
    CANNOT_TELL,
    NOT_SUPPORTED,
    SUPPORTED,
    Claim,
    Finding,
    Verdict,
    by_interval,
)

R2 = 0.9  # of the line in ln-ln, for the loss to be a power law
FACTOR = 2.0  # within which exponents are "of comparable magnitude"
SHARE = 0.25  # of the width, below which a dimension is small
LEAST_WIDTH = 128  # of states whose dimension is not large for want of room
LEAST_LAYERS = 8  # of a model whose depth has a profile; the paper's have 12 and more
LEAST_EXPERTS = 4  # numbers of experts for a trend of kappa
MAD_TO_90 = 1.645 * 1.4826  # half a 90 % interval of a normal spread, in median deviations

GPU = "the gpu tier on a text of some billions of tokens"


def active_parameters(inputs: Inputs) -> Finding:
    """The exponent of ln L over ln N_act, and how straight the line is."""
    (fit,) = estimates(inputs, "model_line")
    alpha = with_interval("alpha", fit.params["alpha"], fit.draws["alpha"], fit.level)
    r2 = fit.part.metrics.get("r2") or 0.0
    verdict = by_interval(alpha["alpha_low"], alpha["alpha_high"])
    if verdict is SUPPORTED and r2 < R2:
        verdict = CANNOT_TELL
    return Finding(
        verdict,
        f"alpha of L = a/N_act^alpha, without a floor, is {_number(alpha, 'alpha')}, "
        f"R2 = {r2:.3f}, n = {fit.part.n}",
        value=alpha["alpha"],
        low=alpha["alpha_low"],
        high=alpha["alpha_high"],
        needed="" if verdict is not CANNOT_TELL else f"more sizes or less noise: {GPU}",
    )


def exponent_identity(inputs: Inputs) -> Finding:
    """kappa of the slopes above fitted floors: within a factor of two of 1."""
    slopes = inputs.derived("slopes")
    rows = slopes[(slopes["series"] == "both") & (slopes["floor"] == "fitted")]
    row = rows.iloc[0].to_dict()
    kappa = {"kappa": row["value"], "kappa_low": row["value_low"], "kappa_high": row["value_high"]}
    exponents = slopes[(slopes["floor"] == "fitted") & (slopes["name"] == "alpha")]
    found = exponents.set_index("series")["value"]
    return Finding(
        (verdict := _within(row["value_low"], row["value_high"], 1 / FACTOR, FACTOR)),
        f"alpha_D over alpha_N/(1 + alpha_N) is {_number(kappa, 'kappa')}, from alpha_N = "
        f"{found['model']:.3g} and alpha_D = {found['data']:.3g} above fitted floors, "
        f"n = {row['n']}",
        value=_optional(row["value"]),
        low=_optional(row["value_low"]),
        high=_optional(row["value_high"]),
        needed="" if verdict is not CANNOT_TELL else f"exponents known within a factor of 2: {GPU}",
    )


def routing_regimes(inputs: Inputs) -> Finding:
    """Slopes of the loss over ln M below and above the middle M of each series."""
    table = inputs.derived("routing")
    pooled = table[table["D"].isna()].set_index("part")
    few, many = pooled.loc[FEW].to_dict(), pooled.loc[MANY].to_dict()
    rises = by_interval(few["slope_low"], few["slope_high"])
    falls = by_interval(-many["slope_high"], -many["slope_low"])
    verdict = SUPPORTED
    if NOT_SUPPORTED in (rises, falls):
        verdict = NOT_SUPPORTED
    elif CANNOT_TELL in (rises, falls):
        verdict = CANNOT_TELL
    words = [
        f"{name}: {_number(part, 'slope')} nats for each e-fold of M (n = {part['n']})"
        for name, part in ((FEW, few), (MANY, many))
    ]
    return Finding(
        verdict,
        f"change of the loss with ln M at fixed k, budget and compute: {'; '.join(words)}",
        value=_optional(few["slope"]),
        low=_optional(few["slope_low"]),
        high=_optional(few["slope_high"]),
        unit="nats/token",
        needed=""
        if verdict is not CANNOT_TELL
        else "seeds enough to tell a slope of 0.01 nats from none, and larger M: the gpu tier",
    )


def small_dimension(inputs: Inputs) -> Finding:
    """The dimension of each model's middle layers against a quarter of its width."""
    models = of_models(inputs.derived("dimension"))
    if models.empty:
        return _no_states()
    share = models["dimension"] / models["d_model"]
    error = MAD_TO_90 * models["mad"] / models["d_model"]
    low, high = float((share - error).max()), float((share + error).max())
    narrow = int(models["d_model"].min())
    verdict = by_interval(-high, -low, -SHARE)
    if verdict is NOT_SUPPORTED and narrow < LEAST_WIDTH:
        verdict = CANNOT_TELL
    return Finding(
        verdict,
        f"middle layers of {len(models)} models have dimension "
        f"{models['dimension'].min():.1f} to {models['dimension'].max():.1f} at width "
        f"{narrow}: at most {float(share.max()):.2f} of it ({low:.2f} to {high:.2f})",
        value=float(share.max()),
        low=low,
        high=high,
        needed=""
        if verdict is not CANNOT_TELL
        else f"states of at least {LEAST_WIDTH} dimensions: the gpu tier's are 512 wide",
    )


def depth_profile(inputs: Inputs) -> Finding:
    """The first block's dimension less the last's, and the middle's, in units of their spread."""
    table = inputs.derived("dimension")
    table = table[table["layer"] > 0]
    if table.empty:
        return _no_states()
    deepest = int(table["n_layers"].max())
    table = table[table["n_layers"] >= min(deepest, LEAST_LAYERS)]
    differences = [_ends(rows) for _, rows in table.groupby("run_id")]
    first, last = (pd.DataFrame(differences)[name] for name in ("first", "last"))
    error = pd.DataFrame(differences)["error"]
    signs = [
        SUPPORTED if a - e > 0 and b + e < 0 else NOT_SUPPORTED if a + e < 0 or b - e > 0 else None
        for a, b, e in zip(first, last, error, strict=True)
    ]
    verdict = CANNOT_TELL
    if deepest >= LEAST_LAYERS and len(set(signs)) == 1:
        verdict = signs[0] or CANNOT_TELL
    return Finding(
        verdict,
        f"first block less the middle: {first.min():+.2f} to {first.max():+.2f}; last less the "
        f"middle: {last.min():+.2f} to {last.max():+.2f}; of {len(signs)} models, up to {deepest} "
        f"layers, {signs.count(SUPPORTED)} follow the profile, {signs.count(NOT_SUPPORTED)} do not",
        value=float(first.median()),
        low=float(first.min()),
        high=float(first.max()),
        needed=""
        if verdict is not CANNOT_TELL
        else f"models of at least {LEAST_LAYERS} layers: the gpu tier has one",
    )


def dimension_and_exponents(inputs: Inputs) -> Finding:
    """The smoothness that the model exponent implies at the measured dimension."""
    models = of_models(inputs.derived("dimension"))
    if models.empty:
        return _no_states()
    (fit,) = estimates(inputs, "model_floor")
    d = float(models["dimension"].median())
    # An exponent at its bound of 0 is none.
    alpha = fit.params["alpha"] if fit.params["alpha"] > 0 else math.nan
    drawn = np.where(fit.draws["alpha"] > 0, fit.draws["alpha"], np.nan)
    s = with_interval("s", d * alpha / 2, d * drawn / 2, fit.level)
    verdict = _within(s["s_low"], s["s_high"], 1 / FACTOR, FACTOR)
    return Finding(
        verdict,
        f"alpha_N = {fit.params['alpha']:.3g} above a fitted floor and d = {d:.1f} imply a "
        f"smoothness of {_number(s, 's')}, n = {fit.part.n}",
        value=_optional(s["s"]),
        low=_optional(s["s_low"]),
        high=_optional(s["s_high"]),
        needed="" if verdict is not CANNOT_TELL else f"a narrower exponent: {GPU}",
    )


def kappa_grows(inputs: Inputs) -> Finding:
    """The exponent of kappa in the number of experts."""
    table = inputs.derived("amplification")
    own = table[(table["origin"] == OWN) & (table["law"] == LAWS[0])].set_index("name")
    rho = own.loc["rho"].to_dict()
    verdict = by_interval(rho["value_low"], rho["value_high"])
    if rho["points"] < LEAST_EXPERTS:
        verdict = CANNOT_TELL
    named = {"rho": rho["value"], "rho_low": rho["value_low"], "rho_high": rho["value_high"]}
    return Finding(
        verdict,
        f"rho of kappa ~ E^rho is {_number(named, 'rho')} over {rho['points']} numbers of experts; "
        "the paper's Table 5 gives 0.126",
        value=_optional(rho["value"]),
        low=_optional(rho["value_low"]),
        high=_optional(rho["value_high"]),
        needed=""
        if verdict is not CANNOT_TELL
        else f"at least {LEAST_EXPERTS} numbers of experts, each over some 20 sizes and token "
        "budgets: the paper tier's sweep `experts`",
    )


def _within(low: float, high: float, least: float, most: float) -> Verdict:
    """Whether an interval lies inside, outside or across the ends of another."""
    if low >= least and high <= most:
        return SUPPORTED
    return NOT_SUPPORTED if high < least or low > most else CANNOT_TELL


def _ends(rows: pd.DataFrame) -> dict[str, float]:
    """First and last block's dimension less the median of the middle's, and the error of both."""
    rows = rows.sort_values("layer")
    middle = rows[rows["middle"]]
    inner = float(middle["dimension"].median())
    return {
        "first": float(rows["dimension"].iloc[0]) - inner,
        "last": float(rows["dimension"].iloc[-1]) - inner,
        "error": MAD_TO_90 * math.hypot(float(rows["mad"].max()), float(middle["mad"].max())),
    }


def _no_states() -> Finding:
    return Finding(
        CANNOT_TELL,
        "no hidden states: no completed run's weights are kept",
        needed="runs that the study's keep_weights selects",
    )


def _number(values: Mapping[Any, Any], name: str) -> str:
    """A value with its interval, of a mapping or a row that has name, name_low and name_high."""
    value, low, high = (float(values[f"{name}{end}"]) for end in ("", "_low", "_high"))
    ends = f"{low:.3g} to {high:.3g}" if math.isfinite(low + high) else "interval not known"
    return f"{value:.3g} ({ends})" if math.isfinite(value) else "not known"


def _optional(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


CLAIMS = {
    "active_parameters": Claim(
        "The loss falls as a power law of the active parameters.",
        "generalization, Eq 6, sec 5.1 and Fig 4",
        "Supported where the exponent of ln L over ln N_act is above 0 with its whole interval and "
        f"the line explains at least {R2:g} of the variance; not supported where it is below 0.",
        active_parameters,
    ),
    "exponent_identity": Claim(
        "Data and model exponents are consistent: alpha_D is about alpha_N/(1 + alpha_N).",
        "generalization, Eq 24, sec 5.1 and Table 2",
        "Supported where the interval of alpha_D (1 + alpha_N)/alpha_N, both above fitted floors, "
        f"lies within 1/{FACTOR:g} and {FACTOR:g}; not supported where it lies outside.",
        exponent_identity,
    ),
    "routing_regimes": Claim(
        "At fixed compute the loss rises with the routing term while experts are few, and falls "
        "again when they are many.",
        "generalization, sec 5.2 and Fig 1",
        "Each series of one k and budget is cut at its middle M. Supported where the slope over "
        "ln M is above 0 below it and below 0 above it, both with their whole intervals; not "
        "supported where one of them has the other sign.",
        routing_regimes,
    ),
    "small_dimension": Claim(
        "Hidden states lie near a manifold whose dimension is small against their width.",
        "generalization, sec 5, App A.2 and Table 1",
        "Supported where the largest dimension of the models' middle layers, with its error, is "
        f"below {SHARE:g} of the width; not supported where it is above, at a width of at least "
        f"{LEAST_WIDTH}.",
        small_dimension,
    ),
    "depth_profile": Claim(
        "The dimension is inflated in shallow layers and collapses in deep ones.",
        "generalization, App A.2 and Fig 2, 3",
        "Supported where in every model probed the first block's dimension is above the middle's "
        "and the last block's below it, by more than their 90 % errors; not supported where every "
        f"model breaks one of the two. Models of fewer than {LEAST_LAYERS} layers decide nothing.",
        depth_profile,
    ),
    "dimension_and_exponents": Claim(
        "The intrinsic dimension gives the size of the model exponent, alpha_N = 2s/d, at a "
        "smoothness s of order 1.",
        "generalization, Eq 6, sec 5.1 and Table 2",
        f"Supported where the interval of s = d alpha_N/2 lies within 1/{FACTOR:g} and {FACTOR:g}; "
        "not supported where it lies outside. d is the median over the models probed.",
        dimension_and_exponents,
    ),
    "kappa_grows": Claim(
        "The data exponent exceeds the one that the model exponent implies by a factor that grows "
        "with the number of experts.",
        "generalization, App B.2, Table 5 and Fig 6",
        "Supported where the exponent of kappa = alpha_D (1 + alpha_N)/alpha_N in E is above 0 "
        f"with its whole interval, over at least {LEAST_EXPERTS} numbers of experts; not supported "
        "where it is below 0.",
        kappa_grows,
    ),
}
