"""Intrinsic dimension of the hidden states of the kept runs, layer by layer (App A.2).

Around a point x of a d-dimensional manifold the number of neighbours within a radius t grows as
t^d; the likelihood of the distances T_1 < ... < T_k has its maximum at (Levina & Bickel, 2004)
m_k(x) = [1/(k-1) sum over j < k of ln(T_k / T_j)]^-1.
"""

from functools import cache

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Rows, of_kept, of_runs, table
from moelaws.analysis.inputs import Inputs
from moelaws.laws.base import Array
from moelaws.tables.column import Column

# The paper's own numbers are lost in its text.
NEIGHBOURS = 20
SUBSAMPLES = 9
FRACTION = 0.5  # of the distinct points in each subsample
MIDDLE = (0.4, 0.6)  # relative depth of the layers that stand for a model (App A.2)


def local_dimension(distances: Array) -> Array:
    """Returns m_k(x) of n points from the rising distances (n, k) to their nearest neighbours.

    It divides by k - 2 in place of k - 1, which makes it unbiased for points that are uniform
    around x. NaN where k is below 3 or the neighbours are all equally far. Source: Levina &
    Bickel 2004, Eq 8; generalization, App A.2.
    """
    distances = np.atleast_2d(np.asarray(distances, float))
    k = distances.shape[1]
    if k < 3:
        return np.full(len(distances), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        total = np.log(distances[:, -1:] / distances[:, :-1]).sum(axis=1)
        local = (k - 2) / total
    return np.where(np.isfinite(total) & (total > 0), local, np.nan)


def nearest(points: Array, k: int) -> Array:
    """Returns the rising distances (n, k) of ``points`` (n, d) to their k nearest others.

    It compares all pairs: that is exact, and quick enough for some thousand points.
    """
    points = np.asarray(points, float)
    points = points - points.mean(axis=0)  # a cloud far from the origin would cost digits
    square = np.einsum("nd,nd->n", points, points)
    gap = square[:, None] + square[None] - 2 * points @ points.T
    np.fill_diagonal(gap, np.inf)
    near = np.partition(gap, k - 1, axis=1)[:, :k]
    return np.sort(np.sqrt(np.maximum(near, 0)), axis=1)


def dimension(points: Array, k: int = NEIGHBOURS) -> float:
    """Returns the mean m_k(x) over ``points`` (n, d); NaN for k points or fewer."""
    if len(points) <= k:
        return np.nan
    local = local_dimension(nearest(points, k))
    return float(np.nanmean(local)) if np.isfinite(local).any() else np.nan


def over_subsamples(points: Array) -> dict[str, float]:
    """Returns the dimension of ``points`` (n, d) over random subsamples without replacement.

    It is the median with the median absolute deviation ``mad``; NaN for few points. Beside it stand
    how many distinct ``points`` there are, for those that coincide, such as the embeddings of one
    token, count once, and how many each ``subsample`` has. Source: generalization, App A.2.
    """
    distinct = np.unique(np.asarray(points, float), axis=0)
    size = int(FRACTION * len(distinct))
    rng = np.random.default_rng(0)
    samples = (rng.permutation(len(distinct))[:size] for _ in range(SUBSAMPLES))
    dimensions = np.array([dimension(distinct[rows]) for rows in samples])
    numbers = {"dimension": np.nan, "mad": np.nan, "points": len(distinct), "subsample": size}
    if np.isfinite(dimensions).any():
        numbers["dimension"] = median = float(np.nanmedian(dimensions))
        numbers["mad"] = float(np.nanmedian(np.abs(dimensions - median)))
    return numbers


@cache
def of_full_width(points: int, width: int) -> float:
    """Returns the estimate for normal points that fill ``width``: 96 for 1,000 points in 512."""
    return dimension(np.random.default_rng(0).standard_normal((points, width)))


@table(
    *of_runs("run_id", "corpus", "n_layers", "d_model", "bpb", "D", "seed"),
    Column("width", "int", "hidden width of an expert"),
    Column("layer", "int", "blocks that the states have passed; 0: the embedding", "layers"),
    Column("depth", "float", "layer / n_layers"),
    Column("middle", "bool", "one of the middle layers, which stand for the model"),
    Column("points", "int", "distinct states"),
    Column("neighbours", "int", "k: nearest neighbours of a state"),
    Column("dimension", "float?", "Levina-Bickel dimension, median over subsamples"),
    Column("mad", "float?", "its median absolute deviation over subsamples"),
    Column("full", "float?", "the same of as many normal points that fill the width"),
    told={
        "dimension > d_model / 2": "some models of width {d_model} have a dimension above half of "
        "it, which bounds it: a statement on so narrow states says little of the data"
    },
)
def dimensions(inputs: Inputs) -> Rows:
    """Yields a row for each layer of each completed run that has hidden states."""
    for run, hidden in of_kept(inputs.completed, inputs.hidden):
        about = {**run, "width": run["d_expert"], "neighbours": NEIGHBOURS}
        for layer, states in hidden.groupby("layer")["state"]:
            cloud = over_subsamples(np.stack(states.to_list()))
            depth = layer / run["n_layers"]
            own = {"layer": layer, "depth": depth, "middle": MIDDLE[0] <= depth <= MIDDLE[1]}
            full = of_full_width(int(cloud["subsample"]), run["d_model"])
            yield {**about, **own, **cloud, "full": full}


def of_models(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns a row for each model: the median over its middle layers, and their largest MAD."""
    keys = ["corpus", "run_id", "n_layers", "d_model", "width", "D", "seed"]
    models = frame[frame["middle"]].groupby(keys, as_index=False, sort=False)
    return models.agg(
        dimension=("dimension", "median"),
        mad=("mad", "max"),
        full=("full", "min"),
        points=("points", "min"),
        bpb=("bpb", "first"),
    )
