"""Claims of the generalization paper: what its slopes, routing runs and hidden states show."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd

from moelaws.analysis.derive import records
from moelaws.analysis.effect import Effect
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.regression import of_mean
from moelaws.claims.base import Evidence
from moelaws.laws.joint.loss import compute_optimal
from moelaws.studies.generalization.derived import exponents
from moelaws.studies.generalization.derived.dimension import of_models
from moelaws.studies.generalization.derived.runs import FEW, MANY

MIN_R2 = 0.9  # of the line in ln-ln: below it the loss is no power law
MIN_WIDTH = 128  # below it a dimension may be a large fraction of the width for lack of room
MIN_LAYERS = 8  # that give a model a profile over depth; the paper's have 12 and more
MIN_MODELS = 2  # where layers differ by chance, one in four is a profile
MIN_CORPORA = 4  # chance puts 3 in a given order once in 6, and 4 once in 24
REFUTING = 1.2  # half of a 95 % interval over half of a 90 % one, for some twenty runs
MIN_EXPERT_COUNTS = 4  # numbers of experts that show a trend of kappa
MAD_TO_90 = 1.645 * 1.4826  # half a 90 % interval of a normal spread, in median deviations

NO_STATES = Evidence(
    "no hidden states: no completed run's weights are kept",
    needed="runs that the study's keep_weights selects",
)


def active_parameters(inputs: Inputs) -> Evidence:
    """Returns the exponent of ln L over ln N_act; a bent line refutes it but never supports it."""
    rows = inputs.derived("slopes", floor="none", series="model", name="alpha")
    slopes = effects(rows)
    r2s = ", ".join(f"{r2:.3f}" for r2 in rows["r2"])
    every = _on_each(f"alpha of L = a/N_act^alpha, without a floor and with R2 = {r2s},", slopes)
    decides = [
        one if r2 >= MIN_R2 else replace(one, low=-math.inf)
        for one, r2 in zip(slopes, rows["r2"], strict=True)
    ]
    return replace(every, decides=decides)


def routing_regimes(inputs: FittedInputs) -> Evidence:
    """Returns the slope of the loss over ln M below the middle M; the one above decides too."""
    table = inputs.derived("routing")
    few, many = (
        Effect.of_row(exponents.one_row(table[table["D"].isna()], part=half), "slope", half)
        for half in (FEW, MANY)
    )
    slopes = "; ".join(
        f"{one.of}: {one} nats for each e-fold of M (n = {one.n})" for one in (few, many)
    )
    measured = f"change of the loss with ln M at fixed k, budget and compute: {slopes}"
    # Either slope can refute the claim by chance, so the end that does lies further out.
    decides = [
        replace(one, high=one.value + REFUTING * (one.high - one.value)) for one in (few, many * -1)
    ]
    return Evidence(measured, few, "nats/token", decides)


def small_dimension(inputs: FittedInputs) -> Evidence:
    """Returns the largest dimension of the models' middle layers over that of states of full width.

    Few points seem to have fewer dimensions than they have, so the estimator's own value for points
    that fill the width is what a dimension is compared with. Narrow states have little room: they
    can show that a dimension is small, not that it is large.
    """
    models = of_models(inputs.derived("dimension"))
    if models.empty:
        return NO_STATES
    ratio = models["dimension"] / models["full"]
    error = MAD_TO_90 * models["mad"] / models["full"]
    value, low, high = (float(x.max()) for x in (ratio, ratio - error, ratio + error))
    largest = Effect(value, low, high)
    narrowest = int(models["d_model"].min())
    measured = (
        f"middle layers of {len(models)} models have dimension "
        f"{models['dimension'].min():.1f} to {models['dimension'].max():.1f} at width "
        f"{narrowest}: at most {largest} of what the estimator gives for as many points that fill "
        "the width"
    )
    told = largest if narrowest >= MIN_WIDTH else replace(largest, low=0.0)
    return Evidence(measured, largest, decides=[told])


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
    least = float(low.min(skipna=False)) if len(ends) >= MIN_MODELS else -math.inf
    together = Effect(least, least, float(high.max(skipna=False)))
    measured = (
        f"first block less the middle: {first.min():+.2f} to {first.max():+.2f}; last less the "
        f"middle: {last.min():+.2f} to {last.max():+.2f}; of {len(ends)} models, up to {deepest} "
        f"layers, {int((low > 0).sum())} follow the profile, {int((high < 0).sum())} do not"
    )
    middle = Effect(float(first.median()), float(first.min()), float(first.max()))
    return Evidence(measured, middle, decides=[together] if deepest >= MIN_LAYERS else [])


def dimension_and_exponents(inputs: Inputs) -> Evidence:
    """Returns the smoothness that the model exponent implies at the measured dimension."""
    models = of_models(inputs.derived("dimension"))
    if models.empty:
        return NO_STATES
    smooth = []
    rows = inputs.derived("slopes", floor="fitted", series="model", name="alpha")
    for alpha in effects(rows):
        d = models.loc[models["corpus"] == alpha.of, "dimension"].median()
        # An exponent whose interval reaches its bound of 0 was not determined.
        smooth.append(alpha * (d / 2 if alpha.low > 0 else math.nan))
    return _on_each("the smoothness s = d alpha_N/2, with alpha_N above a fitted floor,", smooth)


def kappa_grows(inputs: FittedInputs) -> Evidence:
    """Returns the exponent of kappa in the number of experts, by one law for all of them."""
    rho = exponents.growth(inputs, exponents.kappa_of)
    n = len(exponents.experts(inputs))
    return Evidence(
        f"rho of kappa ~ E^rho is {rho} over {n} numbers of experts; published: 0.126",
        rho,
        decides=None if n >= MIN_EXPERT_COUNTS else [],
    )


def ratio_rises(inputs: FittedInputs) -> Evidence:
    """Returns the exponent of D*/N* in the number of experts at the middle of three budgets."""
    budgets, n = np.geomspace(*exponents.budgets(inputs), 3), len(exponents.experts(inputs))

    def growth(F: float) -> Effect:
        return exponents.growth(inputs, lambda reduced: compute_optimal(reduced, F).ratio)

    slopes = [growth(F) for F in budgets]
    texts = (f"{slope} at {F:.2g} FLOPs" for slope, F in zip(slopes, budgets, strict=True))
    measured = f"D*/N* grows as E to the power {', '.join(texts)}, over {n} numbers of experts"
    # Of three budgets one alone can refute the claim, for any of three would by chance more often.
    decides = [slopes[1], *(replace(slope, high=math.inf) for slope in slopes[::2])]
    return Evidence(measured, slopes[1], decides=decides if n >= MIN_EXPERT_COUNTS else [])


def effects(slopes: pd.DataFrame) -> list[Effect]:
    """Returns one number on each corpus."""
    return [Effect.of_row(row, "value", row["corpus"]) for row in records(slopes)]


def _on_each(what: str, every: list[Effect]) -> Evidence:
    """Returns the evidence of one number on each corpus, all of which decide."""
    texts = (f"{one} on {one.of} (n = {one.n})" for one in every)
    return Evidence(f"{what} is {', '.join(texts)}", every[0], decides=every)


def simplest_corpus(inputs: FittedInputs) -> Evidence:
    """Returns how far the next corpus' dimension lies above that of the one of fewest bits a byte.

    Models of one shape, length and seed are paired; the spread of the differences between pairs
    gives Student's t. The order of the further corpora can support the claim, not refute it.
    """
    models = of_models(inputs.derived("dimension"))
    if models.empty:
        return NO_STATES
    shape = ["n_layers", "d_model", "width", "D", "seed"]
    pairs: pd.DataFrame = models.pivot_table(["dimension", "bpb"], shape, "corpus").dropna()
    if len(pairs) < 2 or models["corpus"].nunique() < 2:
        return Evidence(f"{models['corpus'].nunique()} corpora have {len(pairs)} models in common")
    d, order = pairs["dimension"], sorted(pairs["bpb"], key=lambda name: pairs["bpb"][name].mean())

    def above(low: str, high: str) -> Effect:
        return of_mean(d[high] - d[low])

    least = [above(order[0], other) for other in order[1:]]
    rises = [replace(above(*two), high=math.inf) for two in pairwise(order[1:])]
    enough = [] if len(order) >= MIN_CORPORA else [Effect(0.0, -math.inf, math.inf)]
    means = ", ".join(f"{d[name].mean():.2f} on {name}" for name in order)
    return Evidence(
        f"the dimension of the middle layers of {len(d)} models of each corpus is, from the fewest "
        f"bits a byte to the most, {means}",
        least[0],
        decides=[*least, *rises, *enough],
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
