"""The laws of learning rate and batch, and how far noise and the steps of the search move them.

Near-optimal runs of one budget are no independent measurements: a regression's own interval over
them is too narrow, or has no width where they agree. Here each draw adds normal noise, of the
seeds' standard deviation, to every loss of the search and selects the runs within the tolerance
anew. It moves the runs of a budget together by up to half a step of the values tried, as a best
value is known no better, and fits again. The losses already hold such noise, so the draws spread
too widely rather than too little. They say nothing of values beyond the ends of the search, and
where these ends differ between budgets, the best values may follow the ends. Trends are therefore
judged by the values that were tried at every budget. Outliers are removed from the measured losses
(``near_optimal``), and none from the draws.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Rows, table
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array
from moelaws.laws.base import Mask
from moelaws.studies.hyperparameters.derived.near_optimal import GROUPS, SETTINGS, near_optimal
from moelaws.tables.column import RUNS, Column

DRAWS = 400
SEED = 11
LIMIT = 1e20  # FLOPs: the paper fits budgets up to this one and predicts above it (App E.1)
KINDS = ("moe", "dense", "both")


@table(
    Column("kind", "string", "models whose runs are used: moe, dense or both"),
    Column("setting", "string", "lr, or batch_tokens"),
    Column("draw", "int", "0: as measured; above: with noise and moved within a step"),
    Column("coefficient", "float", "value at 1 FLOP: a rate, or tokens"),
    Column("exponent", "float", "exponent of C"),
    Column("C_low", "float", "least budget", "FLOPs"),
    Column("C_high", "float", "largest budget", "FLOPs"),
    Column("at_high", "float", "the law at C_high: a rate, or tokens"),
    RUNS,
)
def derive(inputs: Inputs, common: Sequence[str] | None = None) -> Rows:
    """Fits the laws of mixtures, dense models and both, a row for each draw.

    There are draws only where some runs differ in their seed alone. With ``common``, the laws are
    of the runs that ``tried_everywhere`` returns.
    """
    search = inputs.derived("near_optimal")
    search = search[search["C"] <= LIMIT].reset_index(drop=True)
    if common is not None and len(search):
        search = tried_everywhere(search, common).reset_index(drop=True)
    if not len(search):
        return []
    L = search["L"].to_numpy(float)
    sd = float(search["seed_sd"].iloc[0])
    rng = np.random.default_rng(SEED)
    draws = DRAWS if np.isfinite(sd) else 0
    noisy = L + sd * rng.standard_normal((draws, len(L)))
    measured = (search["near"] == 1).to_numpy()[None]
    near = np.concatenate([measured, within_tolerance(search, noisy)])
    tables: list[pd.DataFrame] = []
    for setting in SETTINGS:
        logs = np.log(search[setting].to_numpy(float))
        moved = logs + within_steps(search, setting, draws, rng)
        values = np.concatenate([logs[None], moved])
        for kind in KINDS:
            tables += _laws(search, near, values, kind, setting)
    return pd.concat(tables) if tables else []


def tried_everywhere(search: pd.DataFrame, within: Sequence[str]) -> pd.DataFrame:
    """Returns the runs whose rate and batch were tried at every budget, near-optimal among these.

    Kinds of models are compared by the values that were tried with both, unless they are kept apart
    (``within`` has ``kind``).
    """
    cells = search.assign(cell=search.groupby(["kind", "C"]).ngroup(), all=0)
    groups, kept = ["all", *within], np.ones(len(search), bool)
    for setting in SETTINGS:
        places = cells.groupby([*groups, setting])["cell"].transform("nunique")
        kept &= (places == cells.groupby(groups)["cell"].transform("nunique")).to_numpy()
    chosen = search[kept]
    return chosen.assign(near=near_optimal(chosen, SETTINGS, GROUPS).astype(int))


def within_tolerance(search: pd.DataFrame, L: Array) -> Mask:
    """Returns which runs (B, n) are near the best of their architecture and budget by ``L``."""
    allowed = np.empty_like(L)
    for rows in search.groupby(GROUPS).indices.values():
        allowed[:, rows] = L[:, rows].min(axis=1, keepdims=True)
    return np.asarray((1 + search["tolerance"].to_numpy(float)) * allowed >= L)


def within_steps(search: pd.DataFrame, setting: str, draws: int, rng: np.random.Generator) -> Array:
    """Returns shifts (draws, n) of ln ``setting``, one for a budget: half a step at most."""
    shifts = np.zeros((draws, len(search)))
    for rows in search.groupby(GROUPS).indices.values():
        tried = np.unique(search[setting].to_numpy(float)[rows])
        step = float(np.median(np.diff(np.log(tried)))) if len(tried) > 1 else 0.0
        shifts[:, rows] = rng.uniform(-step / 2, step / 2, (draws, 1))
    return shifts


def _laws(
    search: pd.DataFrame, near: Mask, values: Array, kind: str, setting: str
) -> Iterator[pd.DataFrame]:
    """Yields the law of one kind of models, a row for each draw; nothing below two budgets.

    ``near`` are the runs used in each draw (B, n), ``values`` ln of the setting in it (B, n).
    """
    own = np.ones(len(search), bool) if kind == "both" else (search["kind"] == kind).to_numpy()
    rows, near = search[own], near[:, own]
    if rows["C"].nunique() < 2 or rows["kind"].nunique() < (2 if kind == "both" else 1):
        return
    C = rows["C"].to_numpy(float)
    exponent, at_high = log_lines(C, values[:, own], near)
    yield pd.DataFrame(
        {
            "kind": kind,
            "setting": setting,
            "draw": range(len(near)),
            "coefficient": np.exp(at_high - exponent * np.log(C.max())),
            "exponent": exponent,
            "C_low": C.min(),
            "C_high": C.max(),
            "at_high": np.exp(at_high),
            "n": near.sum(axis=1),
        }
    )


def log_lines(C: Array, log_y: Array, chosen: Mask) -> tuple[Array, Array]:
    """Fits a line in ln C (n,) to the ``chosen`` (B, n) of each row of ``log_y`` (B, n).

    Returns the least-squares slopes (B,) and the lines' values (B,) at the largest C.
    """
    x, n = np.log(C / C.max()), chosen.sum(axis=1)
    y = np.where(chosen, log_y, 0.0)
    x_mean, y_mean = chosen @ x / n, y.sum(axis=1) / n
    slope = (y @ x / n - x_mean * y_mean) / (chosen @ x**2 / n - x_mean**2)
    return slope, y_mean - slope * x_mean
