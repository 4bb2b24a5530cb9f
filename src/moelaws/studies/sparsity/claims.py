"""Claims of the sparsity paper, measured by slopes of the optima and by held-out errors."""

import numpy as np
import pandas as pd

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs, having
from moelaws.analysis.predictions import predicted, rmse
from moelaws.analysis.scores import GROUP
from moelaws.claims.base import Evidence
from moelaws.fitting.quantiles import jackknife
from moelaws.laws.base import Mask

READING = "reading comprehension"  # a group of tasks
FEWEST = 3  # fitted runs for each coefficient, below which a fit's errors say nothing of its law
NO_DRAWS = "the surfaces have no draws: too few runs for an interval"
EXAMPLE = "olmo:boolq/rc_0shot"  # a task of that group


def trend(inputs: Inputs, name: str, all_decide: bool = False) -> Evidence:
    """Returns what is left of the mean slope of the trend ``name`` beyond that of its null.

    A slope that its null has too is no effect, and one that is only smaller than its null's is not
    absent. So an interval that decides holds both the slope and the rest: that of the mean, or
    those of all budgets if ``all_decide``. Without an interval the evidence says why.
    """
    average, each = _slopes(inputs, name)
    if not np.isfinite(average["beyond_low"]):
        reasons = [f"{row['at']}: {row['note']}" for row in each if row["note"]]
        return Evidence("; ".join(reasons) or NO_DRAWS)
    value, low, high = (float(average[f"beyond{end}"]) for end in ("", "_low", "_high"))
    listed = "; ".join(
        f"{row['at']}: {row['note'] or _interval(row) + ', null ' + _interval(row, 'null')}"
        for row in each
    )
    measured = (
        f"slope {_interval(average)} {average['unit']}, of the null {_interval(average, 'null')}, "
        f"beyond it {_interval(average, 'beyond')}; the mean of {average['n']} ({listed})"
    )
    both = [
        (min(row["low"], row["beyond_low"]), max(row["high"], row["beyond_high"]))
        for row in (each if all_decide else [average])
    ]
    return Evidence(measured, value, low, high, str(average["unit"]), both)


def same_slope(inputs: Inputs) -> Evidence:
    """Returns how the slope of L* over sparsity changes with the budget, over the mean slope."""
    row, _ = _slopes(inputs, "L_over_S_over_C")
    if not np.isfinite(row["low"]):
        return Evidence(row["note"] or NO_DRAWS)
    slope, low, high = (float(row[name]) for name in ("slope", "low", "high"))
    return Evidence(f"{_interval(row)} {row['unit']}", slope, low, high, str(row["unit"]))


def six_n(inputs: Inputs) -> Evidence:
    """Returns the training FLOPs by Eq 9 over 6 N_a D: the farthest from 1, and all of them."""
    runs = inputs.completed
    ratio = runs["C_sparsity"] / runs["C_6N"]
    low, high = float(ratio.min()), float(ratio.max())
    router = 6 * runs["n_layers"] * runs["d_model"] * runs["E"] * runs["D"] / runs["C_sparsity"]
    farthest = max(low, high, key=lambda end: abs(end - 1))
    measured = (
        f"Eq 9 counts {low:.3g} to {high:.3g} times 6 N_a D; routers, which it leaves out, would "
        f"add {router.min():.1%} to {router.max():.1%}"
    )
    decides = [(each, each) for each in ratio]
    return Evidence(measured, farthest, low, high, "times 6 N_a D", decides)


def predicts_unseen(inputs: FittedInputs) -> Evidence:
    """Returns Chinchilla's error less that of Eq 6 on the runs that both hold out.

    The fits stay as they are: some refits of Eq 6 to drawn rows miss by nats, and with them no
    interval would tell anything. Runs of one budget and width are left out together.
    """
    holdout = inputs.spec("loss").holdout
    own, other = (predicted(inputs, fit, inputs.table) for fit in ("loss", "chinchilla"))
    held = own.held & other.held
    n, runs = int(held.sum()), inputs.table[held]
    fitted, free = inputs.fit("loss").parts[0].n, inputs.law("loss").n_free
    if fitted < FEWEST * free:
        few = f"fewer than {FEWEST} for each of Eq 6's {free} coefficients"
        return Evidence(f"{fitted} runs were fitted, {few}")
    blocks = runs.groupby(["C", "D"], dropna=False).ngroup().to_numpy() if n else np.empty(0)
    if len(np.unique(blocks)) < 2:
        return Evidence(f"{n} runs are held out ({holdout or 'nothing'})")

    def more(kept: Mask) -> float:
        mask = held.copy()
        mask[held] = kept
        return rmse(other, mask) - rmse(own, mask)

    value = more(np.ones(n, bool))
    left_out = np.array([[more(blocks != block)] for block in np.unique(blocks)])
    (low,), (high,) = jackknife(np.array([value]), left_out, inputs.fit("loss").level)
    measured = (
        f"RMSE on the {n} runs with {holdout}: {rmse(own, held):.3g} nats/token by Eq 6, "
        f"{rmse(other, held):.3g} by Chinchilla in N_a and D; difference {value:.2g} "
        f"[{low:.2g}, {high:.2g}], by {len(left_out)} blocks of one budget and width"
    )
    return Evidence(measured, value, float(low), float(high), "nats/token")


def equal_at_equal_loss(inputs: Inputs, reading: bool) -> Evidence:
    """Returns the effect of sparsity on scores at equal loss, as a rise of the loss.

    Each group of tasks decides by itself: reading comprehension, or all others.
    """
    groups = having(inputs.derived("relation"), by=GROUP, measure="bits_per_byte")
    groups = groups[(groups["group"] == READING) == reading]
    if not len(groups):
        return Evidence(
            f"no task of {READING} was asked" if reading else "no task was asked",
            needed="tasks of that kind in config.yaml, such as tasks: "
            f"[held-out, {EXAMPLE if reading else 'olmo:hellaswag/rc_0shot'}]",
        )
    known = groups[groups["equivalent"].notna()]
    measured = "; ".join(
        f"{row['skill']}: {row['note']}"
        if row["note"]
        else f"{row['skill']}: {row['equivalent']:.2g} [{row['equivalent_low']:.2g}, "
        f"{row['equivalent_high']:.2g}] nats from S = {row['S_densest']:.3g} to "
        f"{row['S_sparsest']:.3g} ({row['n']} runs)"
        for _, row in groups.iterrows()
    )
    if len(known) < len(groups):
        return Evidence(measured)
    ends = known[["equivalent", "equivalent_low", "equivalent_high"]].to_numpy(float)
    value, low, high = ends[np.abs(ends[:, 0]).argmax()].tolist()  # of the group farthest from 0
    decides = [(float(a), float(b)) for a, b in ends[:, 1:]]
    return Evidence(measured, value, low, high, "nats/token", decides)


def _slopes(inputs: Inputs, trend: str) -> tuple[pd.Series, list[pd.Series]]:
    """Returns the mean slope of a ``trend``, and each of the slopes behind it."""
    rows = [row for _, row in having(inputs.derived("trends"), trend=trend).iterrows()]
    (average,) = (row for row in rows if row["at"] == "mean")
    return average, [row for row in rows if row["at"] != "mean"]


def _interval(row: pd.Series, of: str = "slope") -> str:
    before = "" if of == "slope" else f"{of}_"
    return f"{row[of]:.2g} [{row[f'{before}low']:.2g}, {row[f'{before}high']:.2g}]"
