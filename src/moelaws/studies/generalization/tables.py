"""T1 to T4: dimensions, theory and runs."""

from typing import Any

import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures.tabular import Tabular
from moelaws.spec.from_toml import table_beside
from moelaws.studies.generalization.derived.dimension import of_models
from moelaws.studies.generalization.derived.exponents import consistency, one_row
from moelaws.studies.generalization.laws.exponents import LAW, VARIANTS

# The headings of T2, and column -> heading of T1, and of T3 and T4
THEORY, DIMENSIONS, ARCHITECTURES = table_beside(__file__).values()
SMOOTHNESS = (0.5, 1.0, 2.0)  # the paper's range is lost in its text
COUNTED = "N_act counts attention and the k active experts with biases; no router, norm, embedding."


def dimensions(inputs: Inputs) -> Tabular:
    """Sets T1: the dimension of each model's middle layers."""
    table = inputs.derived("dimension")
    notes = [
        "Of the models' own hidden states on held-out text; the paper measures those of pretrained "
        "GPT-2 models, whose values are lost in its text."
    ]
    models = of_models(table)
    if models.empty:
        notes.insert(0, "No hidden states: no completed run's weights are kept.")
    else:
        points, k = int(table["points"].min()), int(table["neighbours"].iloc[0])
        notes.append(
            f"Levina-Bickel with {k} neighbours on random halves of at least {points} distinct "
            "states; MAD: median absolute deviation over the halves; of full width: the estimate "
            "for as many normal points in as many dimensions."
        )
    return Tabular(models.rename(columns=DIMENSIONS), notes=notes)


def theory(inputs: Inputs) -> Tabular:
    """Sets T2: the exponents of the theory at each smoothness, then those measured."""
    models = of_models(inputs.derived("dimension"))
    rows: list[dict[str, Any]] = []
    for corpus, slopes in inputs.derived("slopes").groupby("corpus", sort=False):
        d = float(models.loc[models["corpus"] == corpus, "dimension"].median())
        for s in SMOOTHNESS:
            implied = LAW.evaluate({}, {"s": s, "d": d})
            own = {name: float(implied[name]) for name in ("alpha_N", "alpha_D", "alpha_C")}
            own |= {"d": d, "s from alpha_N": s, "s from alpha_D": s}
            rows.append({"": f"theory, s = {s:g}", "corpus": corpus, **own})
        for floor, words in (("none", "measured, no floor"), ("fitted", "measured, floor fitted")):
            measured = _measured(slopes[slopes["floor"] == floor], d)
            rows.append({"": words, "corpus": corpus, "d": d, **measured})
    frame = pd.DataFrame(rows).reindex(columns=THEORY)
    notes = [
        "Theory: alpha_N = 2s/d, alpha_D = 2s/(2s + d), alpha_C = s/(s + d); consistent exponents "
        "have alpha_D = alpha_N/(1 + alpha_N). Intervals at 90 %.",
        "d: the median over the models probed on each corpus, of their middle layers' states."
        if len(models)
        else "No hidden states were probed: there is no d, and no theory to compare with.",
    ]
    return Tabular(frame, notes=notes)


def _measured(slopes: pd.DataFrame, d: float) -> dict[str, Any]:
    model, data = (one_row(slopes, series=series, name="alpha") for series in ("model", "data"))
    kappa = one_row(slopes, series="both", name="kappa")
    a, b = model["value"], data["value"]
    point = consistency(a, b)
    return {
        "alpha_N": a,
        "alpha_N low": model["value_low"],
        "alpha_N high": model["value_high"],
        "alpha_D": b,
        "alpha_D low": data["value_low"],
        "alpha_D high": data["value_high"],
        # alpha_D less the predicted one, over the predicted one, is kappa less 1.
        "its low": kappa["value_low"] - 1,
        "its high": kappa["value_high"] - 1,
        "alpha_C": float(point["alpha_C"]),
        "alpha_D pred": float(point["alpha_D_predicted"]),
        "Delta_D / alpha_D pred": float(point["relative_delta_D"]),
        "s from alpha_N": float(VARIANTS["from_N"].evaluate({}, {"alpha_N": a, "d": d})["s"]),
        "s from alpha_D": float(VARIANTS["from_D"].evaluate({}, {"alpha_D": b, "d": d})["s"]),
    }


def architectures(inputs: Inputs, sweep: str) -> Tabular:
    """Sets T3 and T4: the architectures of a sweep with their mean losses over seeds."""
    runs = inputs.derived("runs", sweep=sweep)
    keys = ["corpus", "n_layers", "width", "N_act", "d_model", "n_heads", "M", "k", "D"]
    groups = runs.groupby(keys, as_index=False)
    means = groups.agg(L=("L", "mean"), sd=("L", "std"), seeds=("seed", "nunique"))
    means = means.sort_values(["corpus", "n_layers", "width", "D"], ignore_index=True)
    frame = means.rename(columns=ARCHITECTURES)
    notes = [COUNTED] if len(frame) else [f"No completed run of the sweep {sweep}."]
    return Tabular(frame, digits=6, notes=notes)
