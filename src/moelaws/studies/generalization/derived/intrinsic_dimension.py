"""Intrinsic dimension of a cloud of points from the distances to nearest neighbours.

Around a point x of a d-dimensional manifold the number of neighbours within a radius t grows as
t^d; the likelihood of the distances T_1 < ... < T_k has its maximum at (Levina & Bickel, 2004)
m_k(x) = [1/(k-1) sum over j < k of ln(T_k / T_j)]^-1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# What the paper uses is lost in its text.
NEIGHBOURS = 20
SUBSAMPLES = 9
SHARE = 0.5  # of the distinct points in each subsample
_BLOCK = 512  # rows of distances held at a time


@dataclass(frozen=True)
class Dimension:
    """The dimension of a cloud over random subsamples.

    Attributes:
        median, mad: median over the subsamples and its median absolute deviation; NaN where the
            cloud is too small.
        points: number of distinct points of the cloud.
        subsample: number of points of each subsample.
    """

    median: float
    mad: float
    points: int
    subsample: int


def local_dimension(distances: Array, unbiased: bool = False) -> Array:
    """Returns m_k(x) of n points from the rising distances (n, k) to their nearest neighbours.

    ``unbiased`` divides by k - 2 in place of k - 1: the estimator is then unbiased for points
    that are uniform around x. NaN where k is too small (2, or 3 for ``unbiased``) or the
    neighbours are all equally far. Source: Levina & Bickel 2004, Eq 8; generalization, App A.2.
    """
    distances = np.atleast_2d(np.asarray(distances, float))
    k = distances.shape[1]
    divisor = k - 2 if unbiased else k - 1
    if divisor < 1:
        return np.full(len(distances), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        total = np.log(distances[:, -1:] / distances[:, :-1]).sum(axis=1)
        local = divisor / total
    return np.where(np.isfinite(total) & (total > 0), local, np.nan)


def nearest(points: Array, k: int) -> Array:
    """Returns the rising distances (n, k) of ``points`` (n, d) to their k nearest others.

    It compares all pairs, in blocks: that is exact, and quick enough for some thousand points.
    """
    points = np.asarray(points, float)
    points = points - points.mean(axis=0)  # of the cloud alone: large offsets cost digits
    square = np.einsum("nd,nd->n", points, points)
    distances = np.empty((len(points), k))
    for start in range(0, len(points), _BLOCK):
        block = points[start : start + _BLOCK]
        gap = square[start : start + _BLOCK, None] + square[None] - 2 * block @ points.T
        gap[np.arange(len(block)), start + np.arange(len(block))] = np.inf
        near = np.partition(gap, k - 1, axis=1)[:, :k]
        distances[start : start + _BLOCK] = np.sort(np.sqrt(np.maximum(near, 0)), axis=1)
    return distances


def dimension(points: Array, k: int = NEIGHBOURS) -> float:
    """Returns the mean of the unbiased m_k(x) over ``points`` (n, d); NaN for k points or fewer."""
    if len(points) <= k:
        return float("nan")
    local = local_dimension(nearest(points, k), unbiased=True)
    return float(np.nanmean(local)) if np.isfinite(local).any() else float("nan")


def over_subsamples(points: Array) -> Dimension:
    """Returns the dimension of ``points`` (n, d) over random subsamples without replacement.

    Points that coincide, such as the embeddings of one token, count once: a distance of zero has
    no logarithm. Source: generalization, App A.2.
    """
    distinct = np.unique(np.asarray(points, float), axis=0)
    size = int(SHARE * len(distinct))
    rng = np.random.default_rng(0)
    dimensions = np.array(
        [dimension(distinct[rng.permutation(len(distinct))[:size]]) for _ in range(SUBSAMPLES)]
    )
    if not np.isfinite(dimensions).any():
        return Dimension(float("nan"), float("nan"), len(distinct), size)
    median = float(np.nanmedian(dimensions))
    mad = float(np.nanmedian(np.abs(dimensions - median)))
    return Dimension(median, mad, len(distinct), size)
