"""The isoFLOP surfaces that the same runs would have if an effect of the paper were not there.

At a fixed width a sparser model has more parameters, whatever they do to its loss. So the best
total size rises with sparsity even where sparsity does nothing, and a slope tells of an effect only
beside the slope of such a null, taken from the same grid by the same surfaces. Both nulls here say
which losses the runs would have; surfaces are then fitted to those.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from moelaws.analysis.minimum import Array
from moelaws.analysis.regression import indicators
from moelaws.studies.sparsity.derived.surface import Surface


def without_sparsity(surfaces: Sequence[Surface]) -> list[Surface]:
    """Returns the surfaces of a null in which FLOPs and tokens alone set the loss.

    At each budget a parabola in the logarithm of the FLOPs per token (Eq 9) is fitted to the runs
    of all sparsities; its losses replace theirs.
    """
    nulls = []
    for surface in surfaces:
        W = np.vander(_log_flops([surface]), 3)
        nulls += _surfaces([surface], _losses([surface]) @ np.linalg.pinv(W).T @ W.T)
    return nulls


def without_budget(surfaces: Sequence[Surface]) -> list[Surface]:
    """Returns the surfaces of a null in which one active size is best at all budgets.

    Each budget has a parabola in the logarithm of the FLOPs per token (Eq 9), and all have the same
    curvature. Its losses replace the runs', after all vertices were moved to their mean.
    """
    if not surfaces:
        return []
    w = _log_flops(surfaces)
    at_nG = indicators(np.repeat(np.arange(len(surfaces)), [len(s.rows) for s in surfaces]))
    W = np.column_stack([w**2, at_nG * w[:, None], at_nG])
    curvature, *slopes = (_losses(surfaces) @ np.linalg.pinv(W).T).T[: 1 + len(surfaces)]
    vertex = np.mean([-slope / (2 * curvature) for slope in slopes], axis=0)
    return _surfaces(surfaces, curvature[:, None] * (w - vertex[:, None]) ** 2)


def _losses(surfaces: Sequence[Surface]) -> Array:
    """Returns the losses of all runs, and below them each draw of the surfaces (1 + B, n).

    A draw adds to a run's loss what its surface moves by in that draw.
    """
    B = min(len(s.draws) for s in surfaces)
    blocks = []
    for surface in surfaces:
        at, L = surface.columns, surface.rows["L"].to_numpy(float)
        blocks.append(np.vstack([L, L + surface.loss_draws(**at)[:B] - surface.loss(**at)]))
    return np.concatenate(blocks, axis=1)


def _surfaces(surfaces: Sequence[Surface], losses: Array) -> list[Surface]:
    """Returns the surfaces of other ``losses`` (1 + B, n) of their runs.

    Draw b of a null follows from draw b of the surfaces, so the difference of both is paired.
    """
    nulls = []
    ends = np.cumsum([len(surface.rows) for surface in surfaces])[:-1]
    for surface, own in zip(surfaces, np.split(losses, ends, axis=1), strict=True):
        X = surface.form.design(surface.columns)
        scale = np.linalg.norm(X, axis=0)
        params, *draws = (own @ np.linalg.pinv(X / scale).T) / scale
        estimates = dict(zip(surface.form.names, params.tolist(), strict=True))
        drawn = pd.DataFrame(draws, columns=list(surface.form.names))
        nulls.append(replace(surface, params=estimates, draws=drawn))
    return nulls


def _log_flops(surfaces: Sequence[Surface]) -> Array:
    """Returns ln of the FLOPs per token of all runs (n,), less its mean."""
    w = np.concatenate([np.log(s.rows["C_sparsity"] / s.rows["D"]) for s in surfaces])
    return np.asarray(w - w.mean())
