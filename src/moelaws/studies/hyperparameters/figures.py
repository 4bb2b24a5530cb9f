"""Tables of laws over compute (F2a, F2b, F7, F9), and of maps over rate and batch (F8)."""

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Rows
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import at
from moelaws.analysis.minimum import Array
from moelaws.figures import axes
from moelaws.fitting.quantiles import percentiles
from moelaws.laws.base import Law
from moelaws.laws.leverage import allocation, hyperparameters
from moelaws.studies.hyperparameters.derived.near_optimal import end_of_search

LABELS = {"moe": "mixture of experts", "dense": "dense"}
# Quantity -> the laws in print by kind of model: those of Eq 5 are of mixtures alone
PUBLISHED = {
    "batch_tokens": {"moe": hyperparameters.VARIANTS["batch"]},
    "lr": {"moe": hyperparameters.VARIANTS["lr"]},
    "M": {"moe": allocation.VARIANTS["M"], "dense": allocation.VARIANTS["dense_M"]},
    "D": {"moe": allocation.VARIANTS["D"], "dense": allocation.VARIANTS["dense_D"]},
}


def laws(inputs: FittedInputs, fits: dict[str, str], table: str) -> Rows:
    """Yields the fitted laws over compute with intervals, by ``quantity`` and kind of model.

    ``fits`` has the fit of each quantity to the mixtures of the ``table``; that to dense models has
    a name ending in _dense.
    """
    C = budgets(inputs, table)
    kinds = set(inputs.derived(table)["kind"])
    for quantity, name in fits.items():
        for kind in (kind for kind in LABELS if kind in kinds):
            fit = name if kind == "moe" else f"{name}_dense"
            report = inputs.fit(fit)
            law = report.parts[0].estimates()
            if table == "best_sizes":
                drawn = inputs.draws(fit)
            else:
                drawn = inputs.derived("noise", kind=kind, setting=quantity).query("draw > 0")
            # In logarithms, as draws reach beyond what a float can hold
            log_k, powers = np.log(drawn["coefficient"].to_numpy()), drawn["exponent"]
            log_values = log_k[:, None] + np.outer(powers, np.log(C))
            low, high = np.exp(percentiles(log_values, report.level))
            line = {"value": law["coefficient"] * C ** law["exponent"], "low": low, "high": high}
            yield pd.DataFrame({"quantity": quantity, "kind": kind, "C": C, **law, **line})


def published_laws(inputs: FittedInputs, fits: dict[str, str], table: str) -> Rows:
    """Returns the laws in print over compute, by ``quantity`` and kind of model."""
    C = budgets(inputs, table)
    return (
        pd.DataFrame({"quantity": quantity, "kind": kind, "C": C, "value": published(law, C)})
        for quantity in fits
        for kind, law in PUBLISHED[quantity].items()
    )


def best_runs(inputs: FittedInputs, fits: dict[str, str], table: str) -> pd.DataFrame:
    """Returns the best run of each budget by ``quantity``, and whether it is ``at_end``."""
    rows = []
    for quantity in fits:
        for _, group in inputs.derived(table).groupby(["A", "C"]):
            best = group.iloc[int(np.argmin(group["L"]))]
            at_end = bool(end_of_search(group, quantity))
            row = {"quantity": quantity, "value": best[quantity], "at_end": at_end}
            rows.append({**best[["kind", "C"]], **row})
    return pd.DataFrame(rows)


def budgets(inputs: FittedInputs, table: str) -> Array:
    """Returns budgets (40,) for drawing lines, which reach a little beyond those measured."""
    C = inputs.derived(table)["C"]
    return np.geomspace(C.min() / 1.25, C.max() * 1.25, 40)


def published(law: Law, C: Array) -> Array:
    """Returns the only result of a law at ``C`` (n,) with its published coefficients."""
    (values,) = law.evaluate(law.published or {}, {"C": C}).values()
    return values


# Percent above the least loss. Runs of the first step are those that the paper calls near-optimal.
STEPS = np.array([0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0])
PANELS = 4  # at most this many are drawn


def search(inputs: FittedInputs, kind: str = "") -> pd.DataFrame:
    """Returns the runs of the search for maps over rate and batch, each with its ``title``.

    The maps are of the largest budget, one for each activation ratio (dense is A = 1), or of one
    ``kind`` at several budgets, mixtures at the paper's ratio. ``what`` says whether a row is a
    run, near-optimal, best, or what the fitted and the published law give.
    """
    every = inputs.derived("near_optimal")
    step = STEPS[np.searchsorted(STEPS, 100 * every["excess"], "right") - 1]
    every = every.assign(step=step)
    if kind:
        every = every[every["kind"] == kind]
    if not len(every):
        return every
    if kind:  # all other ratios were searched at the largest budget alone
        every = every[every["A"] == every.groupby("A")["C"].nunique().idxmax()]
        groups = [rows for _, rows in every.groupby("C")]
        places = np.linspace(0, len(groups) - 1, min(PANELS, len(groups))).round().astype(int)
        groups = [groups[place] for place in np.unique(places)]
    else:
        groups = [rows for _, rows in at(every, "C", every["C"].max()).groupby("A")][-PANELS:]
    titles = [_title(rows.iloc[0]) for rows in groups]
    tables = []
    for title, rows in zip(titles, groups, strict=True):
        best = rows.iloc[[int(np.argmin(rows["L"]))]]
        marks = {"run": rows, "near": rows[rows["near"] == 1], "best": best}
        marks |= _by_laws(inputs, rows["C"].to_numpy(float)[:1])
        tables += [own.assign(what=what, title=title) for what, own in marks.items()]
    maps = pd.concat(tables)
    return maps.assign(title=pd.Categorical(maps["title"], titles))


def _title(run: pd.Series) -> str:
    experts = f"{run['k']:.0f} of {run['E']:.0f}, $A$ = {run['A']:.3f}"
    return f"{'dense' if run['A'] == 1 else experts}\n$C$ = {axes.power(run['C'])}"


def _by_laws(inputs: FittedInputs, C: Array) -> dict[str, pd.DataFrame]:
    """Returns the learning rate and batch of the fitted laws and of Eq 5 at this budget."""
    fitted, printed = pd.DataFrame(), pd.DataFrame()
    for column, fit in (("lr", "lr"), ("batch_tokens", "batch")):
        law = inputs.fit(fit).parts[0].estimates()
        fitted[column] = law["coefficient"] * C ** law["exponent"]
        printed[column] = published(PUBLISHED[column]["moe"], C)
    return {"fitted": fitted, "published": printed}
