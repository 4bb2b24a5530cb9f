"""Claims on the best learning rate, batch and model size (leverage, sec 2.2, 2.3, App E)."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from moelaws.analysis.effect import Effect
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array
from moelaws.analysis.regression import of_draws, of_mean
from moelaws.claims.base import Evidence
from moelaws.claims.measure import parameter
from moelaws.spec.measure import Parameter
from moelaws.studies.hyperparameters.derived.near_optimal import WORDS
from moelaws.studies.hyperparameters.derived.noise import SEED, within_tolerance

FEW_BUDGETS = "mixtures were searched at fewer than two budgets"
# FLOPs at which the two lines of Table 5 cross: C = (.1915 / .0655)^(1 / (.5422 - .5095)).
CROSSING = 1.77e14


def trend(inputs: Inputs, setting: str) -> Evidence:
    """Measures the exponent of compute in the law of a mixture's ``setting``."""
    draws = inputs.derived("trends")
    exponent = of_draws(_law(draws, "moe", setting, "exponent"))
    if not np.isfinite(exponent.value):
        return Evidence(FEW_BUDGETS)
    law = draws[(draws["kind"] == "moe") & (draws["draw"] == 0)].iloc[0]
    return Evidence(
        f"the exponent of C in the best {WORDS[setting]} is {exponent}, from {law['n']} "
        f"near-optimal runs at budgets from {law['C_low']:.2g} to {law['C_high']:.2g} FLOPs, of "
        "values tried at every budget",
        exponent,
    )


def moe_against_dense(inputs: Inputs) -> Evidence:
    """Measures a mixture's batch over a dense model's, and the inverse ratio of learning rates."""
    draws = inputs.derived("ratios")
    ratios = {}
    for setting in WORDS:
        moe, dense = (_law(draws, kind, setting, "at_high") for kind in ("moe", "dense"))
        n = min(len(moe), len(dense))
        ratios[setting] = of_draws(moe[:n] / dense[:n])
    batch, lr = ratios["batch_tokens"], ratios["lr"]
    if not np.isfinite([batch.value, lr.value]).all():
        return Evidence("mixtures and dense models were not both searched at two budgets")
    return Evidence(
        f"at C = {draws['C_high'].max():.2g} FLOPs mixtures' batch is {batch} of dense models', "
        f"their learning rate {lr}",
        batch,
        decides=[batch, lr.map(np.reciprocal)],
    )


def across_activation(inputs: Inputs) -> Evidence:
    """Measures how many steps of the search the laws are from the best runs of each ratio."""
    search, draws = inputs.derived("near_optimal"), inputs.derived("noise")
    search = search[search["kind"] == "moe"]
    top = search[search["C"] == search["C"].max()]
    if top["A"].nunique() < 2:
        return Evidence("one activation ratio was searched")
    if top["seed_sd"].isna().any():
        return Evidence("no run was repeated with another seed: what is chance is not known")
    C = float(top["C"].iloc[0])
    predicted = {}  # what each law predicts: first by its estimates, then by its draws, (1 + B,)
    for setting in WORDS:
        k, a = (_law(draws, "moe", setting, x) for x in ("coefficient", "exponent"))
        predicted[setting] = k * C**a
    if not np.isfinite([values[0] for values in predicted.values()]).all():
        return Evidence(FEW_BUDGETS)
    steps = [_steps_away(rows, predicted) for _, rows in top.groupby("A")]
    inside = [away[0] <= 0.5 for away in steps]
    A = ", ".join(f"{A:.3f}" for A in sorted(top["A"].unique()))
    measured = f"among the near-optimal runs at {sum(inside)} of {len(inside)} ratios (A = {A})"
    decides = [of_draws(away) for away in steps]
    return Evidence(measured, Effect(float(np.mean(inside))), decides=decides)


def scale_exponents(inputs: FittedInputs) -> Evidence:
    """Measures the exponent of compute in the best scale M, for mixtures and for dense models."""
    fits = ("M_parabola", "M_dense_parabola")
    says = "the exponent of C in the best scale M of mixtures, and then of dense models, is {each}"
    rule = Parameter(rule="parameter", parameter="exponent", fits=fits, says=says)
    evidence = parameter(rule, inputs)
    if bounds := int((~inputs.derived("best_sizes")["inside"]).sum()):
        more = f"; {bounds} of their minima are bounds, at an end of the sizes tried"
        return replace(evidence, measured=evidence.measured + more, decides=[])
    return evidence


def smaller_model(inputs: Inputs) -> Evidence:
    """Measures a mixture's best M over a dense model's, the mean of the parabolas' over budgets."""
    best = inputs.derived("best_sizes")
    M = best[best["inside"]].pivot_table(index="C", columns="kind", values="M_star")
    both = M.dropna() if {"moe", "dense"} <= set(M.columns) else M.iloc[:0]
    n, budgets = len(both), best["C"].nunique()
    if n < 3:
        return Evidence(f"both minima lie inside the sizes tried at {n} of {budgets} budgets")
    logs = np.log(both["moe"].to_numpy(float)) - np.log(both["dense"].to_numpy(float))
    ratio = of_mean(logs).map(np.exp)
    measured = (
        f"the best mixture's M is {ratio} of the best dense model's, at {n} of {budgets} budgets"
    )
    if best["C"].max() >= CROSSING:
        return Evidence(measured, ratio)
    measured += "; below 1.8e14 FLOPs Table 5 itself makes the mixture's the larger"
    needed = "budgets above 1.8e14 FLOPs: the gpu tier's"
    return Evidence(measured, ratio, decides=[], needed=needed)


def _law(draws: pd.DataFrame, kind: str, setting: str, column: str) -> Array:
    """Returns a number of the measured law and of its draws, (1 + B,); NaN without a law."""
    own = draws[(draws["kind"] == kind) & (draws["setting"] == setting)]
    return own[column].to_numpy(float) if len(own) else np.full(1, np.nan)


def _steps_away(rows: pd.DataFrame, laws: Mapping[str, Array]) -> Array:
    """Returns the distance (1 + B,) of laws from near-optimal ``rows`` in steps; 0 among them.

    The setting that is farther away counts. Draws add the seeds' spread to the losses. They are
    unknown where near-optimal runs reach from one end of the values tried to the other: there no
    law could miss them.
    """
    rows, away = rows.reset_index(drop=True), []
    noise = np.random.default_rng(SEED).standard_normal((len(laws["lr"]), len(rows)))
    noise[0] = 0
    near = within_tolerance(rows, rows["L"].to_numpy(float) + rows["seed_sd"].iloc[0] * noise)
    for setting, values in laws.items():
        logs, law = np.log(rows[setting].to_numpy(float)), np.log(values)
        low, high = (np.where(near, logs, end).T for end in (np.inf, -np.inf))
        beyond = np.maximum(low.min(axis=0) - law, law - high.max(axis=0))
        away.append(np.maximum(0.0, beyond) / np.median(np.diff(np.unique(logs))))
        if np.ptp(logs[near[0]]) == np.ptp(logs):
            away[-1][1:] = np.nan
    return np.asarray(np.max(away, axis=0))
