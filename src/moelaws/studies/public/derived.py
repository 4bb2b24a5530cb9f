"""Optima, leverage and best rates of published runs, each data set by itself."""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Row, Rows, of_runs, records, table
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array, parabola_minima
from moelaws.analysis.regression import LEVEL, of_draws
from moelaws.fitting.quantiles import least_squares
from moelaws.laws import deepseek, marin, step_law
from moelaws.laws.joint import hyperparameters as joint
from moelaws.laws.leverage import hyperparameters as leverage_paper
from moelaws.tables.column import COVERAGE, INSIDE, NOTE, RUNS, Column, estimated

# What may differ between the runs of a data set, beside size and tokens, and changes the loss
RECIPE = ("kind", "variant", "router", "E", "k", "unique_tokens")
SIZE = "{:.2e}".format  # sizes of the same three digits are one size
SAME = 0.01  # decades of compute, up to which runs are of one budget
NEAR, FEWEST = math.log(4.0), 5  # a parabola's runs: to a factor of 4 in size, or five
# Name in columns -> a published law of the peak learning rate
RATES = {
    "step_law": step_law.LAW,
    "leverage": leverage_paper.LAW,
    "marin": marin.VARIANTS["lr"],
    "joint": joint.LAW,
    "deepseek": deepseek.LAW,
}
BATCHES = ("step_law", "leverage", "deepseek")  # those that give a batch as well
SIZE_COLUMN = Column("N", "float", "active ones, without embeddings where known", "parameters")
GROUP = (
    Column("dataset", "string", "table of the register that the run is of"),
    Column("group", "string", "the data set and, where it has several, the recipe"),
)


@table(
    *GROUP,
    *of_runs("run_id", "C"),
    SIZE_COLUMN,
    *of_runs("D", "L", "bpb"),
    Column("E", "float?", "routed experts a layer, where they are known", "experts"),
    Column("loss", "float", "L or, where a data set has none, bpb"),
    Column("unit", "string", "of loss"),
    Column("points", "int", "pairs of size and tokens of the group"),
    Column("sizes", "int", "sizes of the group"),
)
def runs(inputs: Inputs) -> Rows:
    """Returns the run of least loss for each recipe, size and number of tokens."""
    every = published(inputs)
    best = every.loc[every.groupby(["group", "N", "D"])["loss"].idxmin()]
    by = best.assign(size=best["N"].map(SIZE)).groupby("group")["size"]
    return best.assign(points=by.transform("size"), sizes=by.transform("nunique"))


def published(inputs: Inputs) -> pd.DataFrame:
    """Returns all completed runs with their group, size, loss and its unit."""
    rows = inputs.table[inputs.table["status"] == "completed"]
    N = rows["N_active_nonemb"].astype(float).fillna(rows["N_active"].astype(float))
    in_nats = rows["L"].notna().groupby(rows["dataset"]).transform("any")
    group = rows["dataset"].astype(str)
    for name in RECIPE:
        varies = rows.groupby("dataset")[name].transform("nunique") > 1
        words = [x if isinstance(x, str) else f"{name}={x:g}" for x in rows[name].fillna(math.nan)]
        group = group.where(~varies, group + " " + np.array(words))
    loss, unit = rows["L"].where(in_nats, rows["bpb"]), np.where(in_nats, "nats/token", "bits/byte")
    return rows.assign(N=N, loss=loss, unit=unit, group=group).reset_index(drop=True)


@table(
    *GROUP,
    *of_runs("C"),
    *estimated("N_star", "active size of least loss in the measured range", "parameters", "N"),
    *estimated("D_star", "tokens of the budget at N_star", "tokens", "D"),
    Column("D_se", "float?", "its standard error, by the scatter of all budgets", "tokens"),
    *estimated("M_star", "training FLOPs a token at N_star, C / D_star", "FLOP/token", "M"),
    Column("M_se", "float?", "its standard error, by the same scatter", "FLOP/token"),
    *estimated("L_star", "loss at N_star by the parabola", "nats/token", "L"),
    *estimated("bpb_star", "the same of data sets without L", "bits/byte", "bpb"),
    Column("unit", "string", "of the loss that has a value"),
    COVERAGE,
    INSIDE,
    RUNS,
    Column("budgets", "int", "budgets of the group whose minimum is inside"),
    NOTE,
)
def optima(inputs: Inputs) -> Rows:
    """Returns the size of least loss of each budget with at least three sizes.

    It is the minimum of a parabola of ln loss in ln N, through the runs near the best one.
    """
    frame = pd.DataFrame(filter(None, map(optimum, budgets(inputs.derived("runs")))))
    # The scatter about parabolas is that of the group: a single budget has few runs to tell it by
    sums = frame.groupby("group")[["squares", "freedom"]].transform("sum")
    error = np.sqrt(frame["spread"] * sums["squares"] / sums["freedom"].replace(0, np.nan))
    errors = {f"{name}_se": frame[f"{name}_star"] * error for name in ("D", "M")}
    return frame.assign(**errors, budgets=frame.groupby("group")["inside"].transform("sum"))


def budgets(frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yields the runs of each group and budget; budgets are more than ``SAME`` decades apart."""
    for _, rows in frame.sort_values("C").groupby("group"):
        for _, budget in rows.groupby((np.log10(rows["C"]).diff() > SAME).cumsum()):
            yield budget.sort_values("N")


def optimum(budget: pd.DataFrame) -> Row:
    """Returns a row of ``optima``; it is empty where a budget has fewer than three sizes."""
    fitted = near(budget)
    if fitted["N"].map(SIZE).nunique() < 3:  # a repeated run is no other size
        return {}
    u, y = np.log(fitted[["N", "loss"]].to_numpy(float)).T
    best = parabola_minima(u, y)
    assert best is not None
    centred = np.vander(u - u.mean(), 3)
    a, b, _ = coefficients = np.linalg.lstsq(centred, y, rcond=None)[0]
    moves = np.array([b / (2 * a**2), -1 / (2 * a), 0.0])  # of the vertex -b/2a with a, b and c
    row: Row = {
        **budget.iloc[0],
        "C": float(budget["C"].mean()),
        "level": LEVEL,
        "inside": bool(best.inside[0]),
        "n": len(fitted),
        "note": best.notes[0],
        "squares": np.sum((y - centred @ coefficients) ** 2),
        "freedom": len(y) - 3,
        "spread": moves @ np.linalg.inv(centred.T @ centred) @ moves,
    }
    # As many tokens as the budget buys by the data set's own count, C = 6 N D up to a factor
    each = float((budget["C"] / budget["N"] / budget["D"]).median())
    drawn = {"N": np.exp(best.x), "D": row["C"] / each / np.exp(best.x), "M": each * np.exp(best.x)}
    drawn["L" if row["unit"] == "nats/token" else "bpb"] = np.exp(best.y)
    for name, values in drawn.items():
        ends = of_draws(values).interval
        row |= zip((f"{name}_star", f"{name}_low", f"{name}_high"), ends, strict=True)
    return row


def near(budget: pd.DataFrame) -> pd.DataFrame:
    """Returns the runs of a budget whose sizes are near that of the best one."""
    u = np.log(budget["N"].to_numpy(float))
    distance = np.abs(u - u[budget["loss"].to_numpy(float).argmin()])
    reach = max(NEAR, *np.sort(distance)[:FEWEST])
    near_best: pd.DataFrame = budget[distance <= reach]
    return near_best


@table(
    Column("floor", "float", "irreducible loss, which is set", "nats/token"),
    *estimated("leverage", "dense over mixture compute at equal loss", "1", ""),
    *estimated("in_time", "dense over mixture time at equal loss, by their MFU", "1", "time"),
    COVERAGE,
    Column("coefficient", "float", "a in floor + a C^-alpha of the dense models", "nats/token"),
    Column("alpha", "float", "its exponent, which mixtures share"),
    RUNS,
)
def leverage(inputs: Inputs, dataset: str, floors: list[float]) -> Rows:
    """Returns how much more compute dense models need for a mixture's loss, by each floor.

    ln(L - floor) falls along two parallel lines over ln C, and their distance in ln C is ln of the
    leverage. So do the logarithms of the MFU, of which time is compute over MFU.
    """
    rows = inputs.completed[inputs.completed["dataset"] == dataset]
    is_moe: Array = np.where(rows["kind"] == "moe", 1.0, 0.0)
    ln_C = np.log(rows["C"].to_numpy(float))
    for floor in floors:
        if not 1 <= is_moe.sum() < len(rows) or len(rows) < 4:  # the data set is not here
            return
        X = np.column_stack([np.ones(len(rows)), -ln_C, -is_moe])
        ln_a, alpha, gain = least_squares(X, np.log(rows["L"] - floor)).T
        # X has a minus before both the slope of the speed and its loss
        _, slope, loss = least_squares(X, np.log(rows["MFU"]), seed=1).T
        yield {
            "floor": floor,
            "leverage": of_draws(np.exp(gain / alpha)),
            "in_time": of_draws(np.exp((1 + slope) * gain / alpha - loss)),
            "level": LEVEL,
            "coefficient": math.exp(ln_a[0]),
            "alpha": alpha[0],
            "n": len(rows),
        }


@table(
    *GROUP,
    *of_runs("C"),
    SIZE_COLUMN,
    *of_runs("D"),
    Column("trials", "int", "runs alike in recipe, size and tokens"),
    Column("lr", "float", "learning rate of the best of them"),
    Column("batch", "float", "batch of the best of them", "tokens"),
    *(
        Column(
            f"{name}_{end}", "float", f"{size} {name} within a thousandth of the best loss", unit
        )
        for name, unit in (("lr", "1"), ("batch", "tokens"))
        for end, size in (("low", "least"), ("high", "largest"))
    ),
    *(Column(f"lr_{law}", "float?", f"rate by {law}") for law in RATES),
    *(Column(f"batch_{law}", "float?", f"batch by {law}", "tokens") for law in BATCHES),
)
def rates(inputs: Inputs) -> Rows:
    """Returns the best learning rate and batch of runs alike in recipe, size and tokens.

    At least four rates must have been tried. Published laws stand beside where their variables are
    known; each is read with the data set's own count of parameters and compute.
    """
    every = published(inputs)
    for _, trials in every[every["lr"].notna()].groupby(["group", "N", "D"]):
        best = records(trials.sort_values("loss", kind="stable"))[0]
        row: Row = {**best, "batch": best["batch_tokens"], "trials": len(trials)}
        good = trials[trials["loss"] <= best["loss"] * 1.001]
        for name, values in (("lr", good["lr"]), ("batch", good["batch_tokens"])):
            row |= {f"{name}_low": values.min(), f"{name}_high": values.max()}
        if trials["lr"].nunique() >= 4:
            yield row | by_laws(best)


def by_laws(run: Row) -> Row:
    """Returns what published laws say of a run's rate and batch."""
    at = {name: run[name] for name in ("C", "D", "E", "d_model")}
    at |= {"N": run["N_total_nonemb"], "N_active": run["N"]}
    at["B_sequences"] = run["batch_tokens"] / 4096  # as marin counts them
    known = {name: float(value) for name, value in at.items() if pd.notna(value)}
    row: Row = {}
    for name, law in RATES.items():
        if {v.name for v in law.variables if v.default is None} <= known.keys():
            values = law.evaluate(law.published, known)
            row[f"lr_{name}"] = float(values["lr"])
            if "B" in values:
                row[f"batch_{name}"] = float(values["B"])
    return row
