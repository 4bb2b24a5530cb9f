"""Loss curves L(C) of architectures with their draws, and leverage by Algorithm 1."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from moelaws.analysis.contrasts import Minimum, contrast_errors, influence
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs, at
from moelaws.analysis.minimum import Array
from moelaws.fitting.quantiles import percentiles, stretched, t_interval
from moelaws.spec.errors import UserError
from moelaws.studies.leverage.laws.curve import LAW, efficiency_leverage, loss

DENSE = "curve_dense"  # the study's fit of the dense counterpart's curve
COMPUTE = "C_leverage_no_router"  # the column of compute as App I counts it


@dataclass(frozen=True)
class Curve:
    """The loss L = alpha C^beta + b of one architecture (App K, leverage)."""

    params: dict[str, float]  # alpha, beta and b
    draws: pd.DataFrame  # a row for each draw of the bootstrap, a column for each parameter
    rows: pd.DataFrame  # the runs that the curve was fitted to
    level: float  # of its intervals
    delta: float = LAW.protocol.delta  # threshold of the fit's Huber losses, as of ``Minimum``
    at_bounds: Sequence[str] = ()  # the parameters that lie at a bound
    stretch: float = 1.0  # of what the draws predict (``quantiles.stretched``)

    def loss(self, C: Array) -> Array:
        """Returns the loss (n,) in nats/token at compute ``C`` (n,), FLOP."""
        return np.asarray(LAW.predict(self.params, {"C": C}))

    def loss_band(self, C: Array) -> dict[str, Array]:
        """Returns the ends low and high (n,) of the loss at ``C`` (n,); empty if unknown.

        In most draws a curve passes through a run of its own that stands alone, such as the dearest
        one. There the draws show no error, so the ends hold Student's interval of the scatter, too.
        """
        if math.isnan(self.noise()) or not len(self.draws):
            return {}
        drawn = stretched(loss(self.drawn_params(), C), self.loss(C), self.stretch)
        low, high = percentiles(drawn, self.level)
        by_squares = replace(self, delta=math.inf)  # all runs tell how far runs scatter
        moves = by_squares.influence(C) * self.rows["L"].to_numpy(float)
        error = self.noise() * np.sqrt(np.sum(moves**2, axis=1))
        freedom = len(self.rows) - len(LAW.names)
        least, most = t_interval(self.loss(C), error, freedom, self.level)
        return {"low": np.fmin(low, least), "high": np.fmax(high, most)}

    def influence(self, C: Array) -> Array:
        """Returns how the loss at ``C`` (m,) moves with the loss of each of the runs, (m, n)."""
        columns = {"C": self.rows[COMPUTE].to_numpy(float)}
        losses = self.rows["L"].to_numpy(float)
        fitted = Minimum(self.params, columns, losses, self.delta, self.at_bounds)
        return influence(LAW, fitted, {"C": np.asarray(C, float)})

    def router(self, C: Array) -> Array:
        """Returns compute with the router over compute without (n,), of sizes as at ``C`` (n,)."""
        rows = self.rows.sort_values(COMPUTE)
        without = rows[COMPUTE].to_numpy(float)
        return np.asarray(np.interp(np.log(C), np.log(without), rows["C_leverage"] / without))

    def slope(self, C: Array) -> Array:
        """Returns dL / d ln C (n,) at ``C`` (n,)."""
        alpha, beta = self.params["alpha"], self.params["beta"]
        return alpha * beta * np.asarray(C, float) ** beta

    def drawn_params(self, n: int | None = None) -> dict[str, Array]:
        """Returns the parameters (n, 1) of the first ``n`` draws, by default of all."""
        return {name: self.draws[name].to_numpy(float)[:n, None] for name in LAW.names}

    def noise(self) -> float:
        """Returns the standard deviation of ln L about the curve; NaN without freedom for it."""
        C, L = self.rows[COMPUTE].to_numpy(float), self.rows["L"].to_numpy(float)
        freedom = len(L) - len(LAW.names)
        if freedom < 1:
            return np.nan
        return float(np.sqrt(np.sum(np.log(L / self.loss(C)) ** 2) / freedom))


def curve(inputs: FittedInputs, fit: str) -> Curve:
    """Returns the curve of a fit that is not split."""
    return next(curves(inputs, fit))


def curves(inputs: FittedInputs, fit: str) -> Iterator[Curve]:
    """Yields the curves of a fit, of which a split has several, in the order of its report."""
    report, rows, draws = inputs.fit(fit), inputs.rows(fit), inputs.draws(fit)
    for result in report.parts:
        own, drawn, known = rows, draws, result.diagnostics
        for column, value in result.where.items():
            own, drawn = (at(frame, column, value) for frame in (own, drawn))
        delta = {"huber": known.delta, "squared": math.inf}.get(known.objective, math.nan)
        drawn, own = drawn[list(LAW.names)], own.reset_index(drop=True)
        bounds = tuple(known.at_bounds)
        stretch = known.draws.stretch
        yield Curve(result.estimates(), drawn, own, report.level, delta, bounds, stretch)


def leverage_points(dense: Curve, moe: Curve, C: Array) -> pd.DataFrame:
    """Returns a row for each compute ``C`` (n,), FLOP, of the mixture of experts ``moe``.

    Columns are C, L_star (nats/token), C_dense (FLOP) and EL, the last two NaN where the dense
    curve never comes down to L_star; EL_low and EL_high; and level, the dense curve's.

    Raises:
        UserError: where a curve has no draws.
    """
    EL = leverage_draws(dense, moe, C)
    if not len(EL):
        raise UserError("efficiency leverage: no bootstrap draws; fit both curves with a bootstrap")
    best = efficiency_leverage(dense.params, moe.params, C)
    low, high = open_interval(EL, dense.level)
    if math.isnan(dense.noise() + moe.noise()):  # a curve through all of its runs shows no error
        low, high = np.full((2, len(C)), np.nan)
    points = {"C": C, "L_star": best.L, "C_dense": best.C_dense, "EL": best.EL}
    ends = {"EL_low": low, "EL_high": high, "level": dense.level}
    return pd.DataFrame({**points, **ends})


def leverage_errors(
    inputs: Inputs, dense: Curve, runs: pd.DataFrame, moves: Array, C_dense: Array
) -> dict[str, Array]:
    """Returns errors of ln EL at n points: by documents, paired, and by the spread of seeds.

    The arguments are those of ``leverage_weights``.
    """
    ids, weights = leverage_weights(dense, runs, moves, C_dense)
    errors = contrast_errors(inputs, ids)
    return {"ln_EL_paired_se": errors.documents(weights), "ln_EL_seed_se": errors.seeds(weights)}


def leverage_weights(
    dense: Curve, runs: pd.DataFrame, moves: Array, C_dense: Array
) -> tuple[list[str], Array]:
    """Returns m runs, and how ln EL at n points moves with the loss of each, (n, m).

    ln EL moves by the move of the looked-up loss less that of the dense curve at ``C_dense``, over
    the curve's slope in ln C there. A run may stand behind both.

    Args:
        runs: the runs behind the losses that are looked up on the dense curve.
        moves: how those losses move with the losses of ``runs``, (n, runs).
        C_dense: the compute where the dense curve has them, (n,), FLOP; NaN where it never has.
    """
    reached = np.isfinite(C_dense)
    at = np.where(reached, C_dense, 1.0)
    both = np.hstack([moves, -dense.influence(at)])
    slopes = np.where(reached, dense.slope(at), np.nan)
    return [*runs["run_id"], *dense.rows["run_id"]], both / slopes[:, None]


def leverage_draws(dense: Curve, moe: Curve, C: Array) -> Array:
    """Returns the leverage (draws, n) at the mixture's compute ``C`` (n,), draw by draw.

    The fits are independent, so the first draws of both are paired, as many as both have. It is NaN
    where the dense curve never comes down to the mixture's loss.
    """
    n = min(len(dense.draws), len(moe.draws))
    best = efficiency_leverage(dense.params, moe.params, C).EL
    drawn = efficiency_leverage(dense.drawn_params(n), moe.drawn_params(n), C).EL
    return stretched(drawn, best, max(dense.stretch, moe.stretch))


def open_interval(EL: Array, level: float) -> tuple[Array, Array]:
    """Returns the ends (n,) of the interval of leverages ``EL`` (draws, n).

    A draw without a leverage (NaN) counts as one above every other, as leaving it out would pull
    the interval down. Where too many have none, the upper end is infinite.
    """
    ordered = np.sort(np.where(np.isnan(EL), np.inf, EL), axis=0)
    # The ends are draws themselves, as nothing can be interpolated between a number and infinity.
    tail = int((len(ordered) - 1) * (1 - level) / 2 + 1e-9)
    return ordered[tail], ordered[len(ordered) - 1 - tail]
