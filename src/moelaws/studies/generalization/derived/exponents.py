"""Exponents of the runs with their intervals, and how consistent they are with the theory."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Row, Rows, of_runs, records, table
from moelaws.analysis.effect import Effect
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import having
from moelaws.analysis.minimum import Array, percentile_interval
from moelaws.fitting.quantiles import stretched
from moelaws.fitting.report import GroupFit, group_draws
from moelaws.laws.forms import LinearLaw
from moelaws.laws.joint import loss as joint
from moelaws.studies.generalization.laws import exponents, kappa
from moelaws.tables.column import COVERAGE, RUNS, Column, estimated

OWN, PUBLISHED = "own", "published"
CONSISTENCY = exponents.VARIANTS["consistency"]  # of two exponents
QUANTITIES = ("alpha_N", "alpha_D", *(x.name for x in CONSISTENCY.outputs))
FLOORS = {"line": "none", "floor": "fitted"}  # the end of a fit's name -> its floor
# Number of experts -> the published law's parameters there (Ludziejewski et al. 2025, Table 4).
PUBLISHED_LAWS = {
    float(law.variant[1:]): law.published for law in joint.VARIANTS.values() if law.published
}


# By simulation resampled rows of the law of 11 parameters give intervals a fifth too narrow: those
# of this level hold the truth in nine tables of ten.
WIDE = 0.95


@dataclass(frozen=True)
class Estimates:
    """What a fit to one set of rows estimates, with draws."""

    result: GroupFit
    params: Mapping[str, float]
    values: Mapping[str, Array]  # parameter -> (1 + B,), the estimate and the draws
    level: float

    @property
    def stretch(self) -> float:
        """Returns the stretch of what the draws give (``quantiles.stretched``)."""
        return self.result.diagnostics.draws.stretch

    @property
    def corpus(self) -> str:
        """Returns the name of the text whose runs were fitted, of a fit that corpora split."""
        return str(self.result.where["corpus"])

    def effect(self, values: Array, level: float = 0) -> Effect:
        """Returns the first of ``values`` (1 + B,), with the ``interval`` of the others."""
        ends = interval(values, level or self.level, self.stretch)
        return Effect(float(values[0]), *ends)


def estimates(inputs: FittedInputs, fit: str) -> list[Estimates]:
    """Returns what ``fit`` estimates for each value that splits it, in rising order."""
    report, path = inputs.fit(fit), inputs.fits[fit]
    fits = []
    for own in report.parts:
        params, drawn = own.estimates(), group_draws(path, report, own)
        values = np.vstack([[*params.values()], drawn]).T
        fits.append(Estimates(own, params, dict(zip(params, values, strict=True)), report.level))
    return fits


def paired(*values: Array) -> list[Array]:
    """Pairs values (1 + B,) of independent fits: their draws are shuffled, cut to the shortest."""
    rng = np.random.default_rng(0)
    n = min(map(len, values)) - 1
    return [np.append(x[0], x[1:][rng.permutation(len(x) - 1)[:n]]) for x in values]


def interval(values: Array, level: float, stretch: float = 1.0) -> tuple[float, float]:
    """Returns the equal-tailed interval of ``values`` (1 + B,) by draws, some of which may be NaN.

    The first is the estimate, from which the draws are stretched. Both ends are NaN where more
    draws are missing than may lie beyond one end: the interval of the others would look more
    certain than it is.
    """
    draws = stretched(values[1:], values[0], stretch)
    if np.count_nonzero(~np.isfinite(draws)) > ((1 - level) / 2 + 1e-9) * len(draws):
        return np.nan, np.nan
    return percentile_interval(draws, level)


def consistency(alpha_N: Any, alpha_D: Any) -> Row:
    """Returns ``QUANTITIES`` at two exponents, of their shape; NaN where one is not above 0."""
    a, b = (np.where(np.asarray(x, float) > 0, x, np.nan) for x in (alpha_N, alpha_D))
    return {"alpha_N": a, "alpha_D": b, **CONSISTENCY.evaluate({}, {"alpha_N": a, "alpha_D": b})}


def one_row(frame: pd.DataFrame, **values: str) -> Row:
    """Returns the cells of the only row whose columns have these ``values``."""
    (row,) = records(having(frame, **values))
    return row


@table(
    *of_runs("corpus"),
    Column("series", "string", "what is scaled: model (N_act), data (D), or both together"),
    Column("floor", "string", "loss floor L_inf: none, or fitted"),
    Column("name", "string", "the number: alpha, a, L_inf; kappa of both series together"),
    *estimated("value", "its estimate"),
    COVERAGE,
    RUNS,
    Column("aicc", "float?", "Akaike's criterion for few runs: the less, the better"),
    Column("r2", "float?", "share of the variance of ln L that the fit explains"),
    told={
        "name == 'alpha' and value_low <= 0": "{corpus}: {series} scaling, floor {floor}: the "
        "exponent is not told from 0 ({value:.3g}, {value_low:.3g} to {value_high:.3g})",
        "name == 'L_inf' and value_low.isna()": "{corpus}: {series} scaling: the fitted floor is "
        "at its bound of {value:.3g}, so the exponent above it is not determined",
    },
)
def slopes(inputs: FittedInputs) -> Rows:
    """Yields a row for each parameter of model_line, model_floor, data_line and data_floor.

    One more row for each corpus and floor has kappa = alpha_D (1 + alpha_N) / alpha_N, which is 1
    where both slopes agree on one smoothness (Eq 24, generalization).
    """
    for form, floor in FLOORS.items():
        every = {fit.corpus: fit for fit in estimates(inputs, f"data_{form}")}
        models = estimates(inputs, f"model_{form}")
        for model, data in ((m, every[m.corpus]) for m in models if m.corpus in every):
            about: Row = {"corpus": model.corpus, "floor": floor, "level": model.level}
            for series, fit in (("model", model), ("data", data)):
                metrics = {name: fit.result.metrics.get(name) for name in ("aicc", "r2")}
                for name, values in fit.values.items():
                    row = {"series": series, **about, "name": name, "n": fit.result.n, **metrics}
                    yield {**row, "value": _determined(fit.effect(values), fit)}
            kappa = consistency(*paired(model.values["alpha"], data.values["alpha"]))["kappa"]
            row = {"series": "both", **about, "name": "kappa", "n": model.result.n + data.result.n}
            wider = max(model, data, key=lambda fit: fit.stretch)
            yield {**row, "value": _determined(wider.effect(kappa), model, data)}


def _determined(effect: Effect, *fits: Estimates) -> Effect:
    """Returns the effect, without an interval where one of the ``fits`` holds its floor at a bound.

    The bound holds the floor of all draws, too, so that the exponent above it looks certain. By
    simulation it is not: where the true exponent is small, one table in eight has such a fit, and
    its interval lies far from the truth.
    """
    held = any("L_inf" in fit.result.diagnostics.at_bounds for fit in fits)
    return Effect(effect.value) if held else effect


def experts(inputs: FittedInputs) -> Array:
    """Returns the numbers of experts that the fit ``joint`` compares, rising."""
    return np.unique(inputs.rows("joint")["E"].to_numpy(float))


def budgets(inputs: FittedInputs) -> tuple[float, float]:
    """Returns the least and the largest 6 N_active D (FLOPs) of the runs of the fit ``joint``."""
    rows = inputs.rows("joint")
    C = 6 * rows["N_active"].astype(float) * rows["D"]
    return float(C.min()), float(C.max())


def over_experts(inputs: FittedInputs, E: Array) -> dict[str, Array]:
    """Returns m, mu, n, nu and c of the fit ``joint`` at ``E`` (n,), each of shape (1 + B, n).

    The first row is the estimate, and the others are the draws. One law has one floor for all E.
    """
    (fit,) = estimates(inputs, "joint")
    return joint.at_experts({name: value[:, None] for name, value in fit.values.items()}, E[None])


def growth(inputs: FittedInputs, quantity: Callable[[dict[str, Array]], Array]) -> Effect:
    """Returns the exponent in E, with its interval, of a ``quantity`` of the fit ``joint``."""
    E = experts(inputs)
    rho = line(kappa.LAW, E, quantity(over_experts(inputs, E)))[:, 1]
    (fit,) = estimates(inputs, "joint")
    return fit.effect(rho, WIDE)


def kappa_of(reduced: Mapping[str, Array]) -> Array:
    """Returns kappa at the exponents of ``over_experts``."""
    return np.asarray(consistency(-reduced["mu"], -reduced["nu"])["kappa"])


@table(
    Column("origin", "string", "own: of the runs; published: the paper's Table 5"),
    Column("E", "float", "experts of a layer", "experts"),
    *(
        column
        for name in QUANTITIES
        for column in estimated(name, f"{name}, as in generalization, Table 5")
    ),
    COVERAGE,
    RUNS,
    told={  # kappa is not known within a factor of two either way
        "origin == 'own' and not kappa_high < 4 * kappa_low": "E={E:g}: kappa is {kappa:.3g} "
        "({kappa_low:.3g} to {kappa_high:.3g}): {n} runs do not determine both exponents"
    },
)
def identities(inputs: FittedInputs) -> Rows:
    """Yields a row for each number of experts of the fit by_experts, then the published ones."""
    fits = estimates(inputs, "by_experts")
    for fit in fits:
        own = consistency(fit.values["alpha"], fit.values["beta"])
        row = {"origin": OWN, "E": fit.result.where["M"], "level": fit.level, "n": fit.result.n}
        yield row | {name: fit.effect(own[name]) for name in QUANTITIES}
    for E, law in PUBLISHED_LAWS.items():
        exact = consistency(-law["mu"], -law["nu"])  # alpha_N and alpha_D
        numbers = {name: float(value) for name, value in exact.items()}
        yield {"origin": PUBLISHED, "E": E, **numbers, "level": fits[0].level, "n": 0}


def line(law: LinearLaw, E: Array, kappa_BE: Array) -> Array:
    """Returns the line (B, 2) through each row by least squares; NaN through one with gaps."""
    params_BP = np.full((len(kappa_BE), len(law.names)), np.nan)
    whole = np.isfinite(kappa_BE).all(axis=1)
    if len(E) >= 2 and whole.any():
        X = law.design({"E": E})
        theta, *_ = np.linalg.lstsq(X, law.on_scale(kappa_BE[whole]).T, rcond=None)
        with np.errstate(over="ignore"):
            params_BP[whole] = law.natural(np.asarray(theta.T, float))
    return params_BP
