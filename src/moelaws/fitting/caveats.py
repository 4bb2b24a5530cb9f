"""What limits the trust in a fit, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moelaws.fitting.identifiability import vanishing
from moelaws.fitting.report import Estimate, FitPart
from moelaws.fitting.rows import Rows
from moelaws.fitting.support import outside
from moelaws.laws.base import FittableLaw
from moelaws.laws.forms import LinearLaw
from moelaws.spec.fit import Fit

# Beyond this condition number of the Hessian single coefficients mean little.
ILL_CONDITIONED = 1e6
EQUIVALENT = 0.05  # excess of another optimum's objective below which its user is told
SPAN = 100.0  # of a coefficient's interval beyond which it is not identified


def unidentified(
    law: FittableLaw, params: Mapping[str, Estimate], delta_method: Mapping[str, object]
) -> list[str]:
    """Returns the parameters whose intervals say that these rows do not determine them.

    A parameter without an interval is one of them where the ``delta_method`` gives intervals: its
    draws then went beyond every number.
    """
    names = []
    for p in law.parameters:
        own = params[p.name]
        if own.low is None or own.high is None:
            if delta_method:
                names.append(p.name)
            continue
        at_bound = own.low <= p.low + 1e-6 * abs(p.low) or own.high >= p.high - 1e-6 * abs(p.high)
        if p.scale == "log":
            wide = own.high > SPAN * own.low
        else:
            wide = own.high - own.low > 2 * abs(own.estimate)
        if at_bound or wide:
            names.append(p.name)
    return names


def caveats(law: FittableLaw, rows: Rows, spec: Fit, fitted: FitPart) -> list[str]:
    """Returns the sentences on ``fitted``, the fit of ``law`` to ``rows``, each of them once."""
    sentences = (
        *_of_the_search(law, fitted),
        *_of_the_parameters(law, rows, fitted),
        *_of_the_sample(law, fitted),
        *_of_the_holdout(law, rows, spec, fitted),
    )
    return list(dict.fromkeys(sentences))


def _of_the_search(law: FittableLaw, fitted: FitPart) -> Iterator[str]:
    if not fitted.converged:
        yield "the optimiser did not converge to a certified stationary point"
    starts, near = fitted.diagnostics.starts, fitted.diagnostics.near_equivalent
    if starts is not None and starts.pruning_lost:
        yield (
            "pruning lost the optimum, which a sample of the starts found: more of it may be "
            "hidden; run more starts by protocol.grid"
        )
    if starts is not None and starts.reached <= 1 < starts.survived:
        yield f"only {starts.reached} of {starts.survived} starts reached the optimum"
    for other in near.optima if near is not None else ():
        if other.objective_excess > EQUIVALENT:
            continue
        yield (
            f"another optimum is {other.objective_excess:.2%} worse and has other coefficients; "
            f"its predictions of the fitted rows differ by up to {other.prediction_differs:.2g}"
            + (" of their value" if law.log_response else "")
        )


def _of_the_parameters(law: FittableLaw, rows: Rows, fitted: FitPart) -> Iterator[str]:
    known, params = fitted.diagnostics, fitted.estimates()
    for p in law.parameters:
        if p.name in known.at_bounds:
            allowed = f"(allowed: {p.low:g} to {p.high:g})"
            yield f"{p.name} is at its bound {params[p.name]:.6g} {allowed}"
    if known.unidentified:
        yield (
            f"these rows do not identify {', '.join(known.unidentified)}: an interval reaches a "
            f"bound, spans a factor of {SPAN:g} (coefficients) or twice the estimate (exponents)"
        )
    for name in vanishing(law, params, rows.columns):
        yield (
            f"the term of {name} is below 0.01% of every prediction: its parameters are not "
            "identifiable from these rows"
        )
    condition = known.condition_number
    if condition is not None and condition > ILL_CONDITIONED and not isinstance(law, LinearLaw):
        yield (
            "coefficients are not identifiable one by one (condition number of the Hessian "
            f"{condition:.1e}): compare predictions, not coefficients"
        )


def _of_the_sample(law: FittableLaw, fitted: FitPart) -> Iterator[str]:
    n, P, draws = fitted.n, len(law.names), fitted.diagnostics.draws
    bootstrapped = fitted.intervals.startswith("percentile")
    if draws.used < 0.9 * draws.requested and n > P and bootstrapped:
        yield (
            f"only {draws.used} of {draws.requested} bootstrap samples could tell the parameters "
            "apart: the intervals rest on those"
        )
    if n == P:
        yield "as many rows as parameters: the fit is exact and says nothing of errors"
    elif n < 3 * P and bootstrapped:
        yield f"{n} rows for {P} parameters: few; intervals may be too narrow"
    residuals = fitted.residuals
    if residuals.normal_p is not None and residuals.normal_p < 0.01:
        yield (
            f"residuals are not normal (Jarque-Bera p = {residuals.normal_p:.1g}, excess kurtosis "
            f"{residuals.excess_kurtosis:.1f})"
        )


def _of_the_holdout(law: FittableLaw, rows: Rows, spec: Fit, fitted: FitPart) -> Iterator[str]:
    if spec.holdout and fitted.holdout is None:
        yield f"holdout {spec.holdout!r} selects no row here"
    n = len(rows.held_response)
    if n and fitted.support is not None:
        beyond = int(outside(law, fitted.support, rows.held_columns).sum())
        if beyond:
            yield (
                f"{beyond} of the {n} held-out rows lie outside the fitted rows' hull: the law is "
                "extrapolated there"
            )
