"""Tables of the runs (T1) and of the fits: coefficients (T3), errors, degrees of surfaces."""

import numpy as np
import pandas as pd

from moelaws.analysis.fitted import ERRORS, FittedInputs
from moelaws.analysis.inputs import Inputs, at
from moelaws.figures.general import listed
from moelaws.figures.tabular import Tabular
from moelaws.spec.from_toml import table_beside
from moelaws.studies.sparsity.laws import loss

# Table 1 by the table's column, and errors of the fitted and held-out runs (App F)
SEARCHED, PUBLISHED_ERRORS = table_beside(__file__).values()
MAX_LISTED = 8  # at most this many values of a column are listed one by one


def coefficients(inputs: FittedInputs) -> Tabular:
    """Sets T3: the fitted coefficients with their intervals beside the published ones."""
    report = inputs.fit("loss")
    result = report.group({})
    loose = result.diagnostics.unidentified
    headings = {
        "name": "Coefficient",
        "unit": "Unit",
        "published": "Published",
        "estimate": "Estimate",
        "low": f"Low ({report.level:.0%})",
        "high": f"High ({report.level:.0%})",
        "identified": "Identified",
    }
    frame = inputs.coefficients("loss")[[*headings]].rename(columns=headings)
    notes = [
        f"{result.n} fitted runs; intervals: {result.intervals}.",
        "Coefficients compare only on the same corpus, tokenizer and range of sizes: a published "
        "loss is of 3e19 to 1e21 FLOPs on RedPajama.",
    ]
    if loose:
        notes.append(
            "Not identified: an interval that reaches a bound, spans a factor of 100 or twice the "
            "estimate. Predictions can be sound where single coefficients are not."
        )
    return Tabular(frame, notes=notes)


def goodness(inputs: FittedInputs) -> Tabular:
    """Sets the errors of Eq 6 and two baselines on fitted and held-out runs, and those printed."""
    printed = pd.DataFrame.from_dict(PUBLISHED_ERRORS, orient="index")
    printed = printed.assign(rmse=np.sqrt(printed["mse"])).rename(columns=ERRORS)
    printed = printed.assign(Fit="published (Eq 6)", Runs=printed.index)
    errors = [heading for heading in ERRORS.values() if heading != "BIC"]
    frame = pd.concat([inputs.errors(), printed])[
        ["Fit", "Law", "Runs", "n", "Parameters", *errors]
    ]
    holdout = inputs.spec("loss").holdout or "nothing"
    implied = {
        which: float(loss.implied_rows(printed["huber_sum"], printed["mse"]))
        for which, printed in PUBLISHED_ERRORS.items()
    }
    notes = (
        f"Held out: {holdout}; in the paper S = 0.98. Huber losses of the residuals of ln L at "
        "delta = 0.001.",
        "The paper prints a Huber error of .0036 above its MSE of .00056, which no mean of Huber "
        "losses can be: it is read as a sum, as which the errors imply "
        f"{implied['fitted']:.0f} fitted and {implied['held out']:.0f} held-out runs.",
    )
    return Tabular(frame, notes=notes)


def surfaces(inputs: FittedInputs) -> Tabular:
    """Sets how well each budget's isoFLOP surface fits its runs and predicts runs left out."""
    unseen = inputs.derived("subsamples")
    rows = []
    for size in ("total", "active"):
        for result in inputs.fit(f"isoflop_{size}").parts:
            C = result.where["C"]
            own = at(unseen[(unseen["size"] == size) & (unseen["times"] > 0)], "C", C)
            r2, fitted = (np.float64(result.metrics.get(name)) for name in ("r2", "mse"))
            mse = float(np.average(own["mse"], weights=own["times"])) if len(own) else np.nan
            r = own["predicted"].corr(own["L"]) if len(own) > 2 else np.nan
            rows.append(("N" if size == "total" else "N_a", C, result.n, r2, fitted, mse, r))
    notes = (
        "Held out: a random 20 % of the budget's runs, 100 times; MSE over all such predictions, r "
        "between a run's loss and its mean prediction. The paper reports an MSE of 0.0001.",
    )
    heads = ["Size", "C, FLOPs", "Runs", "R2", "MSE, fitted"]
    heads += ["MSE, held out", "Pearson r, held out"]
    return Tabular(pd.DataFrame(rows, columns=heads), notes=notes)


def degrees(inputs: FittedInputs) -> Tabular:
    """Sets the ten forms of Eq 8 of least held-out error over all budgets (App B)."""
    rows = []
    for name, symbol in (("isoflop_total", "N"), ("isoflop_active", "N_a")):
        selection = inputs.fit(name).selection or {"ranked": ()}
        for rank, form in enumerate(selection["ranked"], 1):
            errors = [form[name] for name in ("n_params", "mse", "standard_error", "pearson")]
            errors.append(selection["weights"].get(form["name"], 0.0))
            simplest = form["name"] == selection["simplest_within_one_standard_error"]
            used = "used" if rank == 1 else "simplest within one standard error" if simplest else ""
            rows.append((symbol, rank, ", ".join(form["name"]), *errors, used))
    note = (
        "The paper chose degrees 2, 2, 2 of u = ln N, v = -ln(1-S) and uv. The surfaces in figures "
        "and the optima are the average of the forms by the weights of their AICc, and draws are "
        "of one form each, so that intervals hold the choice of degrees."
    )
    heads = ["Size", "Rank", "Degrees", "Coefficients", "MSE, held out", "Its standard error"]
    heads += ["Pearson r, held out", "Weight", ""]
    return Tabular(pd.DataFrame(rows, columns=heads), notes=[note])


def search_space(inputs: Inputs) -> Tabular:
    """Sets the search space beside the values of the runs."""
    runs = inputs.table
    rows = [
        {"Hyperparameter": name, "Paper": paper, "These runs": _values(runs[column])}
        for column, (name, paper) in SEARCHED.items()
        if column in runs
    ]
    notes = (
        "Constant in the paper: jitter 0, z-loss 0, router z-loss 0.001, QK norm. The study's grid "
        "states what these runs take.",
        f"{len(runs)} runs, of which {len(inputs.completed)} completed.",
    )
    return Tabular(pd.DataFrame(rows), notes=notes)


def _values(column: pd.Series) -> str:
    """Returns the values of a column, or their range where they are many."""
    values = sorted({float(f"{value:.4g}") for value in column.dropna().astype(float)})
    if len(values) <= MAX_LISTED:
        return listed(values) or "none"
    return f"{values[0]:.4g} to {values[-1]:.4g} ({len(values)} values)"
