"""Tables of the isoFLOP surfaces (F1, F8), and of their slices (F2a to F2c, F9)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Rows
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.minimum import Array
from moelaws.fitting.quantiles import percentiles
from moelaws.studies.sparsity.derived.optima import size_optima
from moelaws.studies.sparsity.derived.surface import Surface, surfaces

MESH = 33  # points a side
POINTS = 61  # of a curve


def _slices(inputs: FittedInputs, rows_of: Callable[[Surface], Rows]) -> Rows:
    """Yields rows of all surfaces, with their budget, size and whether it is the middle budget."""
    for fit in inputs.fits:
        known = list(surfaces(inputs, fit))
        middle = known[len(known) // 2].C  # the upper of two
        for surface in known:
            about: dict[str, Any] = {"C": surface.C, "size": surface.size.removeprefix("N_")}
            for rows in rows_of(surface):
                yield rows.assign(**about, middle=surface.C == middle)


def mesh(inputs: FittedInputs) -> Rows:
    """Returns each surface on sizes and sparsities that fill the range measured at each S."""

    def grid(surface: Surface) -> Rows:
        v = np.linspace(surface.measured["v"].min(), surface.measured["v"].max(), MESH)
        low, high = (ends[:, None] for ends in surface.sizes_near(v))
        u = low + (high - low) * np.linspace(0, 1, MESH)
        N, S = np.exp(u).ravel(), np.repeat(-np.expm1(-v), MESH)
        yield pd.DataFrame({"N": N, "S": S, "L": surface.loss(N, S)})

    return _slices(inputs, grid)


def runs(inputs: FittedInputs) -> Rows:
    """Returns the runs behind each surface, with their size ``N``."""
    return _slices(inputs, lambda surface: [surface.rows.assign(N=surface.rows[surface.size])])


def optima(inputs: FittedInputs) -> Rows:
    """Returns the optimum of each surface at each S."""
    return _slices(inputs, lambda surface: [pd.DataFrame(size_optima(surface, "surface"))])


def over_size(inputs: FittedInputs) -> Rows:
    """Returns each surface over size at each measured S, with its interval."""

    def lines(surface: Surface) -> Rows:
        for S, rows in surface.rows.groupby("S"):
            u = np.log(rows[surface.size].to_numpy(float))
            N = np.exp(np.linspace(u.min(), u.max(), POINTS))
            yield _with_band(surface, N, np.full(POINTS, float(str(S))))

    return _slices(inputs, lines)


def over_sparsity(inputs: FittedInputs) -> Rows:
    """Returns each surface over S at five sizes, with its interval."""
    return _slices(
        inputs,
        lambda surface: (
            _with_band(surface, np.full(len(S), N), S).assign(place=place)
            for place, (N, S) in enumerate(_sizes(surface).items())
        ),
    )


def moved_runs(inputs: FittedInputs) -> Rows:
    """Returns the runs at the nearest of the five sizes whose line reaches their S.

    No two sparsities have runs of the same size. So a run is moved along the surface to the size of
    its line, and stays as far from the surface as it is at its own size.
    """

    def moved(surface: Surface) -> Rows:
        N, own_S = surface.columns["N"], surface.columns["S"]
        lines = _sizes(surface)
        if not lines:
            return
        ends = [(S[0] - 1e-9, S[-1] + 1e-9) for S in lines.values()]
        reached = np.array([(own_S > low) & (own_S < high) for low, high in ends])
        apart = np.abs(np.log(N / np.array([*lines])[:, None]))  # between the run's size and a line
        place = np.where(reached, apart, np.inf).argmin(axis=0)
        size = np.array([*lines])[place]
        by = np.where(
            reached.any(axis=0), surface.loss(size, own_S) - surface.loss(N, own_S), np.nan
        )
        note = np.where(np.isnan(by), "no line of a size reaches the sparsity", "")
        L = surface.rows["L"] + by
        yield surface.rows.assign(N=size, place=place, L=L, note=note)

    return _slices(inputs, moved)


def _sizes(surface: Surface) -> dict[float, Array]:
    """Returns five sizes, each with sparsities that span those of the runs near it."""
    N = surface.columns["N"]
    quantiles = np.exp(np.quantile(np.log(N), [0.1, 0.3, 0.5, 0.7, 0.9]))
    sizes = sorted({float(f"{q:.1e}") for q in quantiles})  # to two digits
    every = {size: _sparsities_measured_at(surface, size) for size in sizes}
    return {size: S for size, S in every.items() if len(S) > 1}


def _with_band(surface: Surface, N: Array, S: Array) -> pd.DataFrame:
    """Returns the surface at ``N`` (n,) and ``S`` (n,), with the ends of its interval."""
    losses = surface.losses(N, S)
    low, high = percentiles(losses[1:], surface.level)
    return pd.DataFrame({"N": N, "S": S, "L": losses[0], "low": low, "high": high})


def _sparsities_measured_at(surface: Surface, size: float) -> Array:
    """Returns sparsities that span those at which runs of about ``size`` were measured."""
    v = np.linspace(surface.measured["v"].min(), surface.measured["v"].max(), POINTS)
    low, high = surface.sizes_near(v)
    return np.asarray(-np.expm1(-v[(low <= np.log(size)) & (np.log(size) <= high)]))
