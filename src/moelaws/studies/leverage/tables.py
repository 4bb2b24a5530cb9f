"""The leverage paper's tables of runs (T1, T8 to T15), scores (T2, T7) and fits (T6, T16, T17)."""

from typing import Any

import pandas as pd

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.scores import ALL, TASK
from moelaws.figures.tabular import Tabular
from moelaws.spec.from_toml import table_beside
from moelaws.studies.leverage.derived import series
from moelaws.studies.leverage.laws import joint

# Column -> its heading, and whether all tables of runs show it
COLUMNS = table_beside(__file__)
NO_RUNS = "This tier trains no run of this sub-experiment, or none completed."


def configurations(inputs: Inputs, sweep: str) -> Tabular:
    """Sets a row for each configuration of a sweep, with its loss, the mean over seeds (T1, T8 on).

    Beside what all tables show stand the columns that differ between the runs.
    """
    runs = inputs.sweep(sweep)
    if not len(runs):
        headings = [heading for heading, _ in COLUMNS.values()]
        return Tabular(pd.DataFrame(columns=headings), notes=[NO_RUNS], warnings=[NO_RUNS])
    runs = runs.assign(
        runs=1,
        A_routed=1 - runs["S"],
        shared_ratio=series.shared_ratio(runs),
        attention_share=series.attention_fraction(runs),
    )
    differ = runs.round(2).nunique() > 1
    shown = {x: heading for x, (heading, always) in COLUMNS.items() if always or differ[x]}
    means = {"L": "mean", "balance_cv": "mean", "runs": "sum"}
    keys = [name for name in shown if name not in means]
    frame = runs.groupby(keys, dropna=False, as_index=False).agg(means)
    frame = frame[[*shown]].rename(columns=shown)
    return Tabular(
        frame, notes=["N_a and N count embeddings; C counts neither logits nor routers."]
    )


def scores(inputs: Inputs, by: str) -> Tabular:
    """Sets T2 (``by`` group of tasks) and T7 (by task): the pair's scores after its last step."""
    table = inputs.derived("scores")
    last = table[table["step"] == table.groupby("run_id")["step"].transform("max")]
    columns = {"error": "error", "its standard error": "error_se", "bits/byte": "bits_per_byte"}
    rows: list[dict[str, Any]] = []
    for (group, skill), own in last[last["by"].isin([by, ALL])].groupby(["group", "skill"]):
        kind = {"group": group} if by == TASK else {}
        row = {**kind, by: skill, "items": own["items"].iloc[0], "guessing": own["chance"].iloc[0]}
        for _, run in own.sort_values("N_total").iterrows():
            name = "MoE" if run["S"] > 0 else "dense"
            row |= {f"{name}: {heading}": run[column] for heading, column in columns.items()}
        rows.append(row)
    rows.sort(key=lambda row: row[by] == ALL)
    notes = (
        "An error is the share of wrong answers; bits/byte are those of the right answer. The last "
        "line is the mean over tasks.",
        "Published: 44.0 for Dense-6.1B and 45.5 for MoE-mini, accuracies in percent averaged over "
        "other tasks (Table 2).",
    )
    warnings = [] if rows else ["no completed run of the pair was scored"]
    return Tabular(pd.DataFrame(rows), 3, notes, warnings)


def compare(inputs: FittedInputs) -> Tabular:
    """Sets T6: Eq 4's coefficients as published, fitted to points of leverage and to losses."""
    best, names = "best G", list(joint.LAW.names)
    published = joint.LAW.published
    frame = pd.DataFrame({"coefficient": [*names, best]}, index=[*names, best])
    frame["published"] = pd.Series({**published, best: joint.optimal_granularity(published)})
    for fit, label, slope in (("joint", "EL points", "beta"), ("loss", "losses", "beta_G")):
        chosen = [slope if name == "beta" else name for name in names]
        own = inputs.coefficients(fit).loc[chosen].set_axis(names)
        best_G = joint.optimal_granularity(dict(zip(names, own["estimate"], strict=True)))
        own = pd.concat([own, pd.DataFrame({"estimate": best_G}, [best])])
        for column, words in (("estimate", ""), ("low", ", low"), ("high", ", high")):
            frame[label + words] = own[column]
    level = 100 * inputs.fit("joint").level
    notes = (
        "A is E_a/E, log C of base 10 and log G of base 2, with which the published "
        "coefficients give the paper's numbers.",
        f"Low and high are {level:g} % intervals. Those of the EL points resample whole "
        "architectures and leave out the dense curve's own error, which all points share; "
        "those of the losses hold it.",
        "A_max far above 1 is without effect: Ahat = A + A_start. If it has no high end, it is "
        "above the low one.",
    )
    return Tabular(frame, notes=notes)


def goodness_of_fit(inputs: Inputs, law: str) -> Tabular:
    """Sets T16 and T17: how well each form of ``law`` explains the leverage, beside the paper."""
    forms = inputs.derived("forms")
    forms = forms[forms["law"].str.partition(":")[0] == law]
    columns = {
        "parameters": ("parameters", "first"),
        "budgets fitted": ("R2", "count"),
        "points a budget": ("n", "median"),
        "R2, median": ("R2", "median"),
        "R2, least": ("R2", "min"),
        "R2, published": ("published", "first"),
    }
    frame = forms.groupby("form", sort=False, as_index=False).agg(**columns)
    notes = ["One fit a budget, least squares on ln EL; R2 is of EL."]
    missing = forms[forms["note"] != ""]
    notes += [f"{ref}: {rows['note'].iloc[0]}." for ref, rows in missing.groupby("law")]
    return Tabular(frame, notes=notes)
