"""A fitted isoFLOP surface L(N, S) at each budget: its losses, its minima, where it was measured.

The surface is a polynomial in u = ln N and v = -ln(1 - S) (Eq 8, sparsity). ``subsamples`` says how
well surfaces predict runs that they were not fitted to: a random 80 % of each budget's runs are
fitted and the others predicted, 100 times (App B).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from moelaws.analysis.contrasts import linear_influence
from moelaws.analysis.derive import Rows, of_runs, table
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import at
from moelaws.analysis.minimum import Array, Minima, minima_along
from moelaws.fitting.model_selection import held_out
from moelaws.laws.forms import LinearLaw
from moelaws.tables.column import Column

MIN_SIZES = 3  # that determine a minimum over size
POINTS = 41  # between which a surface of any degree is a parabola, along a size or a sparsity


@dataclass(frozen=True)
class Surface:
    """The surface fitted at one budget, with the runs that it was fitted to."""

    form: LinearLaw  # Eq 8 at the degrees of the surface
    C: float  # the budget, FLOPs
    size: str  # the table's column that the fit calls N
    params: Mapping[str, float]
    draws: pd.DataFrame  # a row for each draw of the coefficients
    level: float  # coverage of the intervals
    rows: pd.DataFrame  # the budget's runs

    def loss(self, N: Array, S: Array) -> Array:
        """Returns the loss (n,) in nats per token at sizes ``N`` (n,) and sparsities ``S`` (n,)."""
        return self.form.predict(self.params, {"N": N, "S": S})

    def loss_draws(self, N: Array, S: Array) -> Array:
        """Returns the loss (draws, n), a row for each draw of the coefficients."""
        drawn = self.draws[list(self.form.names)].to_numpy(float)
        return self.form.predict_batch(drawn, {"N": N, "S": S})

    def influence(self, N: float, S: float) -> Array:
        """Returns how the loss at ``N`` and ``S`` moves with the loss of each of the runs, (n,)."""
        at_N_S = {"N": np.array([N]), "S": np.array([S])}
        return np.asarray(linear_influence(self.form, self.columns, at_N_S)[0])

    @property
    def columns(self) -> dict[str, Array]:
        """Returns the law's variables N and S of the runs, (n,) each."""
        return {"N": self.rows[self.size].to_numpy(float), "S": self.rows["S"].to_numpy(float)}

    def size_minimum(self, S: float) -> Minima | None:
        """Returns the minima over the u at ``S``, estimate first; None for fewer than 3 sizes."""
        sizes = at(self.rows, "S", S)[self.size]
        if sizes.nunique() < MIN_SIZES:
            return None
        u = np.linspace(np.log(sizes.min()), np.log(sizes.max()), POINTS)
        return self._minima(u, np.exp(u), np.full(POINTS, S))

    def sparsity_minimum(self, u: float) -> Minima:
        """Returns the minima over the v measured at size ``u``, of the estimates and each draw."""
        v = np.linspace(self.measured["v"].min(), self.measured["v"].max(), POINTS)
        return self._minima(v, np.full(POINTS, np.exp(u)), -np.expm1(-v))

    def _minima(self, x: Array, N: Array, S: Array) -> Minima:
        return minima_along(np.vstack([self.loss(N, S), self.loss_draws(N, S)]), x)

    @cached_property
    def measured(self) -> pd.DataFrame:
        """Returns a row for each S measured: S, v, and the ends u_low and u_high of ln N."""
        sizes = self.rows.groupby("S")[self.size]
        ends = {"u_low": np.log(sizes.min()), "u_high": np.log(sizes.max())}
        return pd.DataFrame(ends).reset_index().assign(v=lambda frame: -np.log1p(-frame["S"]))

    @property
    def one_sparsity(self) -> bool:
        """Returns whether all runs have the same sparsity, so that none is best."""
        return bool(self.measured["v"].min() == self.measured["v"].max())

    def sizes_near(self, v: Array | float) -> tuple[Array, Array]:
        """Returns the ends of u measured at ``v`` (n,), interpolated between sparsities."""
        frame = self.measured
        return np.interp(v, frame["v"], frame["u_low"]), np.interp(v, frame["v"], frame["u_high"])

    def near_runs(self, u: float, v: float) -> bool:
        """Returns whether ``u`` lies between the sizes measured near ``v``."""
        smallest, largest = self.sizes_near(v)
        return bool(smallest <= u <= largest)


def surfaces(inputs: FittedInputs, fit: str) -> Iterator[Surface]:
    """Yields the surfaces of the fit ``fit``, one for each budget, the least first."""
    report, spec, rows = inputs.fit(fit), inputs.spec(fit), inputs.rows(fit)
    draws, form = inputs.draws(fit), inputs.law(fit)
    assert isinstance(form, LinearLaw)  # all forms of sparsity.isoflop are
    for result in report.parts:
        C, size, params = float(result.where["C"]), spec.mapping.get("N", "N"), result.estimates()
        own_draws, own_rows = (at(frame, "C", C) for frame in (draws, rows))
        yield Surface(form, C, size, params, own_draws, report.level, own_rows)


def middle_surface(inputs: FittedInputs, fit: str) -> Surface:
    """Returns the surface of the fit ``fit`` at the middle budget, the upper of two."""
    known = list(surfaces(inputs, fit))
    return known[len(known) // 2]


# The parameters that a surface or a curve is over
WHICH = Column("size", "string", "1", "parameters: total or active, with embeddings or without")


@table(
    *of_runs("C", "run_id", "S", "L"),
    WHICH,
    Column("N", "float", "parameters", "its size"),
    Column("predicted", "float", "nats/token", "mean prediction by the refits without it", True),
    Column("mse", "float", "(nats/token)^2", "mean squared error of these predictions", True),
    Column("times", "int", "1", "refits without it"),
)
def subsamples(inputs: FittedInputs) -> Rows:
    """Returns the predictions of every isoFLOP surface fit that the study's entry declares.

    A budget whose subsamples do not determine the surface has no rows.
    """
    frames = [
        predictions(surface)
        for fit in sorted(inputs.fits)
        for surface in surfaces(inputs, fit)
        if len(surface.rows) > 1
    ]
    return pd.concat(frames, ignore_index=True) if frames else []


def predictions(surface: Surface) -> pd.DataFrame:
    """Returns a row for each run of one budget's surface with the refits' predictions of it."""
    rows, L = surface.rows, surface.rows["L"].to_numpy(float)
    resamples = held_out(surface.form, (surface.columns, L))
    if resamples is None:
        return pd.DataFrame()
    held, predicted = (values.ravel() for values in resamples)
    times = np.bincount(held, minlength=len(L))
    with np.errstate(invalid="ignore"):  # a run that was never held out has no prediction
        mean = np.bincount(held, predicted, len(L)) / times
        mse = np.bincount(held, (predicted - L[held]) ** 2, len(L)) / times
    own = {"C": surface.C, "size": surface.size.removeprefix("N_"), "run_id": rows["run_id"]}
    unseen = {"predicted": mean, "mse": mse, "times": times}
    return pd.DataFrame({**own, **surface.columns, "L": L, **unseen}).reset_index(drop=True)
