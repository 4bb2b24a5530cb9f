"""A fitted isoFLOP surface L(N, S) at each budget: its losses, its minima, where it was measured.

The surface is a polynomial in u = ln N and v = -ln(1 - S) (Eq 8, sparsity). Runs mostly allow
several degrees, which have other optima. So a surface is the average of the forms that the runs
allow, by their Akaike weights, and each of its draws is of one form. ``subsamples`` says how
well the chosen form predicts runs that it was not fitted to: a random 80 % of each budget's runs
are fitted and the others predicted, 100 times (App B).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from moelaws.analysis.contrasts import linear_influence
from moelaws.analysis.derive import Rows, of_runs, table
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import at
from moelaws.analysis.minimum import DRAWS, Array, Minima, minima_along
from moelaws.fitting.model_selection import held_out
from moelaws.fitting.quantiles import least_squares
from moelaws.laws.base import FittableLaw
from moelaws.laws.forms import LinearLaw
from moelaws.studies.sparsity.laws.isoflop import VARIANTS
from moelaws.tables.column import Column

MIN_SIZES = 3  # that determine a minimum over size
POINTS = 41  # between which a surface of any degree is a parabola, along a size or a sparsity


class Fitted(NamedTuple):
    """A form of Eq 8 as it was fitted to the runs of a budget."""

    form: LinearLaw
    weight: float  # of the form among those that are averaged
    coefficients: Array  # (1 + draws, P), estimates first


@dataclass(frozen=True)
class Surface:
    """The surface fitted at one budget, with the runs that it was fitted to."""

    C: float  # the budget, FLOPs
    size: str  # the table's column that the fit calls N
    fits: tuple[Fitted, ...]  # whose weights sum to 1
    level: float  # coverage of the intervals
    rows: pd.DataFrame  # the budget's runs
    # Whether draw b averages draw b of all forms. Else the draws of the forms follow each other.
    averages_draws: bool = False

    def loss(self, N: Array, S: Array) -> Array:
        """Returns the loss (n,) in nats per token at sizes ``N`` (n,) and sparsities ``S`` (n,)."""
        return np.asarray(self.losses(N, S)[0])

    def losses(self, N: Array, S: Array) -> Array:
        """Returns the losses (1 + draws, n) by the estimates and by each draw."""
        form, coefficients = self._embedded
        return coefficients @ form.design({"N": N, "S": S}).T

    @cached_property
    def _embedded(self) -> tuple[LinearLaw, Array]:
        """Returns a form that holds all forms, and its coefficients (1 + draws, P)."""
        texts = [" ".join(fit.form.names) for fit in self.fits]
        form = VARIANTS["".join(str(max(text.count(i) for text in texts)) for i in "abc")]
        each = [
            pd.DataFrame(fit.coefficients, columns=fit.form.names)
            .reindex(columns=form.names, fill_value=0.0)
            .to_numpy()
            for fit in self.fits
        ]
        weights = [fit.weight for fit in self.fits]
        if self.averages_draws:
            return form, np.tensordot(weights, each, 1)
        first = np.dot(weights, [own[0] for own in each])
        return form, np.vstack([first, *(own[1:] for own in each)])

    def influence(self, N: ArrayLike, S: ArrayLike) -> Array:
        """Returns how losses at ``N`` (m,) and ``S`` (m,) move with those of the runs, (m, n)."""
        at_N_S = {"N": np.atleast_1d(N), "S": np.atleast_1d(S)}
        each = (fit.weight * linear_influence(fit.form, self.columns, at_N_S) for fit in self.fits)
        return np.asarray(sum(each))

    def refitted(self, losses: Array) -> "Surface":
        """Returns the surface of other ``losses`` (1 + draws, n) of the runs.

        Draw b is refitted by the forms that draw b of this surface has, so that both are paired.
        """
        fits, first = [], 1
        for form, weight, coefficients in self.fits:
            X = form.design(self.columns)
            scale = np.linalg.norm(X, axis=0)
            after = first + len(coefficients) - 1
            own = losses if self.averages_draws else np.vstack([losses[:1], losses[first:after]])
            fits.append(Fitted(form, weight, own @ np.linalg.pinv(X / scale).T / scale))
            first = after
        return replace(self, fits=tuple(fits))

    def without_each(self, first: int, n: int) -> "Surface":
        """Returns a surface of ``n`` draws without a run each, from ``first`` on those of this one.

        A fit without a run is the fit in which the run has the loss that the others predict.
        """
        L, A = self.rows["L"].to_numpy(float), self.influence(**self.columns)
        own = np.diag(A)
        losses = np.tile(L, (1 + n, 1))
        i = np.arange(len(L))
        losses[1 + first + i, i] = (A @ L - own * L) / (1 - own)
        return replace(self, averages_draws=True).refitted(losses)

    @property
    def columns(self) -> dict[str, Array]:
        """Returns the law's variables N and S of the runs, (n,) each."""
        return {"N": self.rows[self.size].to_numpy(float), "S": self.rows["S"].to_numpy(float)}

    def size_minimum(self, S: float) -> Minima | None:
        """Returns the minima over the u at ``S``, estimate first; None for fewer than 3 sizes."""
        if S not in self._size_minima:
            known = at(self.measured, "S", S).iloc[0]
            u = np.linspace(known["u_low"], known["u_high"], POINTS)
            minima = minima_along(self.losses(np.exp(u), np.full(POINTS, S)), u)
            self._size_minima[S] = minima if known["sizes"] >= MIN_SIZES else None
        return self._size_minima[S]

    @cached_property
    def _size_minima(self) -> dict[float, Minima | None]:
        return {}

    def sparsity_minima(self, u: ArrayLike) -> list[Minima]:
        """Returns the minima over the v measured at each size ``u`` (n,), estimate first."""
        u = np.atleast_1d(u)
        v = np.linspace(self._ends[0].min(), self._ends[0].max(), POINTS)
        N, S = np.repeat(np.exp(u), POINTS), np.tile(-np.expm1(-v), len(u))
        each = self.losses(N, S).reshape(-1, len(u), POINTS)
        return [minima_along(own, v) for own in each.swapaxes(0, 1)]

    @cached_property
    def measured(self) -> pd.DataFrame:
        """Returns a row for each S measured: S, v, how many sizes, and u_low, u_high of ln N."""
        sizes = self.rows.groupby("S")[self.size]
        ends = {"u_low": np.log(sizes.min()), "u_high": np.log(sizes.max())}
        ends["sizes"] = sizes.nunique()
        return pd.DataFrame(ends).reset_index().assign(v=lambda frame: -np.log1p(-frame["S"]))

    @property
    def one_sparsity(self) -> bool:
        """Returns whether all runs have the same sparsity, so that none is best."""
        return len(self.measured) == 1

    def sizes_near(self, v: Array | float) -> tuple[Array, Array]:
        """Returns the ends of u measured at ``v`` (n,), interpolated between sparsities."""
        at_v, low, high = self._ends
        return np.interp(v, at_v, low), np.interp(v, at_v, high)

    @cached_property
    def _ends(self) -> Array:
        """Returns v and the ends of u at each S measured, (3, sparsities)."""
        return self.measured[["v", "u_low", "u_high"]].to_numpy(float).T

    def near_runs(self, u: float, v: float) -> bool:
        """Returns whether ``u`` lies between the sizes measured near ``v``."""
        smallest, largest = self.sizes_near(v)
        return bool(smallest <= u <= largest)


def surfaces(inputs: FittedInputs, fit: str) -> Iterator[Surface]:
    """Yields the surfaces of the fit ``fit``, one for each budget, the least first."""
    report, spec, rows = inputs.fit(fit), inputs.spec(fit), inputs.rows(fit)
    draws, form = inputs.draws(fit), inputs.law(fit)
    assert isinstance(form, LinearLaw)  # all forms of sparsity.isoflop are
    size = spec.mapping.get("N", "N")
    for result in report.parts:
        C, seed = float(result.where["C"]), result.diagnostics.seed
        own_draws, own_rows = (at(frame, "C", C) for frame in (draws, rows))
        own = [[*result.estimates().values()], *own_draws[list(form.names)].to_numpy(float)]
        fits: Iterable[Fitted] = [Fitted(form, 1.0, np.array(own))]
        if report.selection and not result.is_exact:
            fits = averaged(report.selection["weights"], own_rows, size, seed)
        yield Surface(C, size, tuple(fits), report.level, own_rows)


def averaged(
    weights: Mapping[str, float], rows: pd.DataFrame, size: str, seed: int, draws: int = DRAWS
) -> Iterator[Fitted]:
    """Yields the forms of these ``weights``, fitted to ``rows``; each has its share of draws."""
    for name, weight in weights.items():
        form = VARIANTS[name]
        X = form.design({"N": rows[size].to_numpy(float), "S": rows["S"].to_numpy(float)})
        scale = np.linalg.norm(X, axis=0)
        known = least_squares(X / scale, rows["L"], draws=round(weight * draws), seed=seed)
        yield Fitted(form, weight, known / scale)


# The parameters that a surface or a curve is over
WHICH = Column("size", "string", "parameters: total or active, with embeddings or without")


@table(
    *of_runs("C", "run_id", "S", "L"),
    WHICH,
    Column("N", "float", "its size", "parameters"),
    Column("predicted", "float?", "mean prediction by the refits without it", "nats/token"),
    Column("mse", "float?", "mean squared error of these predictions", "(nats/token)^2"),
    Column("times", "int", "refits without it"),
)
def subsamples(inputs: FittedInputs) -> Rows:
    """Returns the predictions of every isoFLOP surface fit that the study's entry declares.

    A budget whose subsamples do not determine the surface has no rows.
    """
    frames = [
        predictions(surface, inputs.law(fit))
        for fit in sorted(inputs.fits)
        for surface in surfaces(inputs, fit)
        if len(surface.rows) > 1
    ]
    return pd.concat(frames, ignore_index=True) if frames else []


def predictions(surface: Surface, form: FittableLaw) -> pd.DataFrame:
    """Returns a row for each run of a budget, with predictions by refits of ``form`` without it."""
    assert isinstance(form, LinearLaw)
    rows, L = surface.rows, surface.rows["L"].to_numpy(float)
    resamples = held_out(form, (surface.columns, L))
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
