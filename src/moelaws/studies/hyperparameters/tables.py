"""T5 and T_eq5 set the laws from these runs beside those of Table 5 and Eq 5."""

import pandas as pd

from moelaws.analysis.derive import Row
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.minimum import percentile_interval
from moelaws.figures.tabular import Tabular
from moelaws.studies.hyperparameters.figures import LABELS

SETTINGS = {"lr": ("lr", "learning rate"), "batch": ("batch_tokens", "batch (tokens)")}
KINDS = {"moe": "", "dense": "_dense", "both": "_both"}


def equation_5(inputs: FittedInputs) -> Tabular:
    """Sets the laws of learning rate and batch for mixtures, dense models and both."""
    draws = inputs.derived("noise")
    drawn = draws[draws["draw"] > 0]
    rows = []
    for fit, (column, words) in SETTINGS.items():
        for kind, suffix in KINDS.items():
            own = drawn[(drawn["setting"] == column) & (drawn["kind"] == kind)]
            low, high = percentile_interval(own["exponent"].to_numpy(float), 0.9)
            law, published = _law(inputs, fit + suffix)
            row = {"of": words, "models": LABELS.get(kind, kind), **law}
            row |= {"low, seeds and steps": low, "high, seeds and steps": high}
            rows.append(row | (published if kind == "moe" else {}))
    notes = (
        "x = coefficient C^exponent, C in FLOPs, by least squares in logarithms over runs within "
        "0.25 % of the least loss of their budget. Coefficients are values at 1 FLOP, far outside "
        "any budget: they move with the exponent and mean little alone.",
        "Low and high: 90 %, Student t, as if near-optimal runs of one budget were independent. "
        "Seeds and steps: 5 and 95 % of the laws that come of adding the seeds' spread to every "
        "loss and of moving the best values of a budget within a step of those tried; blank where "
        "no run was repeated. Neither covers what lies beyond the ends of the search (F7).",
        "Published: Eq 5, for mixtures; of dense models the paper prints no coefficients.",
    )
    return Tabular(pd.DataFrame(rows), notes=notes)


def table_5(inputs: FittedInputs) -> Tabular:
    """Sets the laws of the best scale M and data D, of dense models and mixtures."""
    rows = []
    for kind, suffix in (("dense", "_dense"), ("moe", "")):
        fits = ("M", "", "least loss"), ("M", "_parabola", "parabola"), ("D", "", "least loss")
        for x, end, method in fits:
            law, published = _law(inputs, x + suffix + end)
            rows.append({"models": LABELS[kind], "of": x, "by": method, **law, **published})
    notes = (
        "M (FLOP per token, without logits) and D (tokens) = coefficient C^exponent, C = M D in "
        "FLOPs, by least squares in logarithms over the best size of each budget: the run of least "
        "loss, as in the paper, or the minimum of a parabola in ln M through all of its runs.",
        "Low and high: 90 %, Student t. With sizes a factor apart, a best run is known to that "
        "factor and no better.",
    )
    return Tabular(pd.DataFrame(rows), notes=notes)


def _law(inputs: FittedInputs, fit: str) -> tuple[Row, Row]:
    """Returns the cells of a fitted law, and those of what is published of it."""
    law: Row = {"n": inputs.fit(fit).group({}).n}
    published = {}
    for name, row in inputs.coefficients(fit).iterrows():
        law |= {f"{name}": row["estimate"], f"{name} low": row["low"], f"{name} high": row["high"]}
        published[f"published {name}"] = row["published"]
    return law, published
