"""Tables of losses over what a sub-experiment varies (F3, F10a to F16), and over training (F6)."""

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Rows, records
from moelaws.analysis.inputs import Inputs
from moelaws.figures import axes
from moelaws.spec.words import short
from moelaws.studies.leverage.derived.series import SERIES

NEAR = 0.005  # near-optimal: within 0.5 % of the least loss of the size (App M, leverage)


def compared(inputs: Inputs, sweep: str) -> pd.DataFrame:
    """Returns the runs of a sweep, and how far each is above the least mean of its budget, %."""
    runs = SERIES[sweep].compared(inputs)
    return runs.assign(excess=100 * (runs["L"] / runs["C"].map(_least(runs)["L"]) - 1))


def least(inputs: Inputs, sweep: str) -> pd.DataFrame:
    """Returns the x of the least mean loss of each budget."""
    return _least(SERIES[sweep].compared(inputs)).reset_index().assign(excess=0.0)


def by_size(inputs: Inputs, sweep: str) -> pd.DataFrame:
    """Returns the runs of each width at its largest budget, and 1 where their mean is ``least``."""
    runs = SERIES[sweep].runs(inputs)
    own = runs[runs["C"] == runs.groupby("d_model")["C"].transform("max")]
    means = own.groupby(["d_model", "x"])["L"].transform("mean")
    least = means.groupby(own["d_model"]).transform("min")
    return own.assign(least=(means == least).astype(int))


def _least(runs: pd.DataFrame) -> pd.DataFrame:
    means = runs.groupby(["C", "x"])["L"].mean().reset_index()  # over seeds
    return means.loc[means.groupby("C")["L"].idxmin()].set_index("C")


def parabola(inputs: Inputs, sweep: str) -> pd.DataFrame:
    """Returns how far the parabola that all budgets share (in ln L) lies above its least, %."""
    series = SERIES[sweep]
    shared = series.parabola(series.compared(inputs))
    if shared is None:
        return pd.DataFrame(columns=["x", "excess", "low", "high"], dtype=float)
    grid = np.linspace(shared.low, shared.high, 61)
    above = np.array([100 * shared.excess(t) for t in grid])
    known = above.shape[1] > 1
    low, high = np.quantile(above[:, 1:], [0.05, 0.95], axis=1) if known else (np.nan, np.nan)
    x = np.exp2(grid) if series.log2 else grid
    return pd.DataFrame({"x": x, "excess": above[:, 0], "low": low, "high": high})


def heads(inputs: Inputs, sweep: str) -> pd.DataFrame:
    """Returns the runs of a sweep with their ``size`` in words, and 1 where ``near`` the least."""
    runs = SERIES[sweep].runs(inputs)
    by_budget = runs.groupby("C")
    widths = by_budget["d_model"].transform(lambda d: ", ".join(map(str, sorted(d.unique()))))
    return runs.assign(
        near=(runs["L"] <= (1 + NEAR) * by_budget["L"].transform("min")).astype(int),
        size=[f"{d} ({axes.power(C)})" for d, C in zip(widths, runs["C"], strict=True)],
    )


BINS = 60  # over ln(tokens): a step's loss is noisy


def training(inputs: Inputs, sweep: str) -> Rows:
    """Yields the training losses of a sweep's runs over tokens, as means over bins."""
    yield pd.DataFrame(columns=["tokens", "loss", "model", "label"])
    for run in records(validated(inputs, sweep)):
        history = inputs.history(str(run["run_id"]))
        tokens = history["tokens"]
        late = history[tokens >= tokens.max() / 100]  # without the first hundredth of the tokens
        ends = late["tokens"].min(), late["tokens"].max() * (1 + 1e-9)
        bins = np.digitize(late["tokens"], np.geomspace(*ends, BINS + 1))
        means = late.groupby(bins)[["tokens", "loss"]].mean()
        yield means.assign(model=run["model"], label=run["label"])


def validated(inputs: Inputs, sweep: str) -> pd.DataFrame:
    """Returns the runs of a sweep with words for each."""
    return _named(inputs.sweep(sweep))


def scores(inputs: Inputs, by: str) -> pd.DataFrame:
    """Returns the scores of all tasks or of each group, with words for the runs."""
    return _named(inputs.derived("scores", by=by))


def _named(runs: pd.DataFrame) -> pd.DataFrame:
    """Returns the runs with ``model``, dense or mixture, and the ``label`` of a legend."""
    words = []
    for run in records(runs):
        total, active = (short(run[name]) for name in ("N_total", "N_active"))
        mixture = f"MoE, $A$ = {axes.percent(1 - run['S'])}:\n{active} of {total} active"
        words.append(("mixture", mixture) if run["S"] > 0 else ("dense", f"dense: {total}"))
    return runs.assign(model=[model for model, _ in words], label=[label for _, label in words])
