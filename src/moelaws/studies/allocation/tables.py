"""T1 sets the fits of Eq 2 and of Eq 1; T2 sets how the runs were trained."""

import pandas as pd

from moelaws.analysis.derive import Row, records
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.tabular import Tabular
from moelaws.spec.from_toml import table_beside

LAWS = {
    "loss": "Eq 2, R = |ln(r/r*)|, active N",
    "loss_published": "Eq 2 with the published r*, active N",
}
# The columns of T1 and T2 with their headings, and Table 2 of the paper
COEFFICIENTS, HYPERPARAMETERS, PAPER = table_beside(__file__).values()
RANGES = ("d_model", "sequences", "lr", "steps")


def coefficients(inputs: FittedInputs) -> Tabular:
    """Sets Eq 2 with the own and with the published r*, and Eq 1, beside the paper's Table 1."""
    laws = [inputs.coefficients(x).assign(law=LAWS[x]) for x in LAWS]
    stages = inputs.derived("stages")
    words = "Eq 1, " + stages["coefficient"] + " over 1-S, " + stages["selection"] + " r*"
    identified = ["yes" if _identified(row) else "no" for row in records(stages)]
    stages = stages.assign(law=words, name=stages["parameter"], identified=identified)
    frame = pd.concat([*laws, stages])[[*COEFFICIENTS]].rename(columns=COEFFICIENTS)
    level = inputs.fit("loss").level
    notes = [
        f"Intervals are {level:.0%}. Identified: the interval reaches no bound and spans neither a "
        "factor of 100 (coefficients) nor twice the estimate (exponents).",
        "The published coefficients give losses of 19.5 to 21 nats/token, which no language model "
        "has: compare exponents and the share of each term rather than values.",
    ]
    notes += sorted(set(stages["note"]) - {""})
    return Tabular(frame, notes=notes)


def _identified(row: Row) -> bool:
    """Returns whether the interval bounds a coefficient of Eq 1; an end of NaN bounds nothing."""
    low, high = float(row["low"]), float(row["high"])
    if row["parameter"] in ("alpha0", "beta0"):
        return high <= 100 * low
    return high - low <= 2 * abs(float(row["estimate"]))


def hyperparameters(inputs: Inputs) -> Tabular:
    """Sets how the runs were trained, a row for each size, beside the paper's Table 2."""
    runs = inputs.completed[inputs.completed["C"].notna()]
    runs = runs.assign(sequences=runs["batch_tokens"] / runs["context"])
    sizes = runs.groupby(["n_layers", "n_heads", "C"], as_index=False)
    own = sizes.agg({"N_active_nonemb": "median"} | dict.fromkeys(RANGES, _range))
    own = own.assign(N_active_nonemb=own["N_active_nonemb"].map(style.short), runs="own")
    paper = pd.DataFrame(PAPER).assign(runs="paper", d_model="", steps="")
    frame = pd.concat([own.sort_values("C"), paper])[[*HYPERPARAMETERS]]
    frame = frame.rename(columns=HYPERPARAMETERS)
    notes = (
        "Ranges are over ratios, sparsities and seeds of a budget. The paper names six sizes "
        "and prints five rows, without widths and budgets.",
        f"These runs have {style.short(runs['N_total'].min())} to "
        f"{style.short(runs['N_total'].max())} parameters. The paper says 100M to 5B, which "
        "its Table 2 and its E = 129 exceed: see docs/coverage.md.",
    )
    return Tabular(frame, notes=notes)


def _range(values: pd.Series) -> str:
    ends = (float(values.min()), float(values.max()))
    low, high = (f"{end:.0f}" if end >= 1000 else f"{end:.4g}" for end in ends)
    return low if low == high else f"{low} to {high}"
