"""What limits the trust in a fit: parameters that its rows do not identify, and warnings."""

from collections.abc import Iterator, Mapping

import numpy as np

from moelaws.fitting.diagnostics import NearOptima, NearOptimum
from moelaws.fitting.prediction import beyond_the_rows, outside
from moelaws.fitting.problem import NEARLY
from moelaws.fitting.report import Estimate, GroupFit
from moelaws.fitting.rows import Rows
from moelaws.laws.base import Array, Columns, FittableLaw
from moelaws.laws.forms import LinearLaw
from moelaws.spec.errors import UserError
from moelaws.spec.fit import Fit
from moelaws.spec.words import joined

ILL_CONDITIONED = 1e6  # condition number of the Hessian above which single coefficients mean little
EQUIVALENT = 0.05  # relative excess of another optimum's objective up to which a warning names it
SPAN = 100.0  # ratio of the ends of a coefficient's interval above which it is not identified
TINY = 1e-4  # fraction of every prediction below which a term vanishes


def unidentified(
    law: FittableLaw, params: Mapping[str, Estimate], delta_method: Mapping[str, object]
) -> list[str]:
    """Returns the parameters that the rows do not determine, judging by their intervals."""
    names = []
    for p in law.parameters:
        own = params[p.name]
        if p.low == p.high:
            continue
        if own.low is None or own.high is None:
            if delta_method:  # it has intervals, so the draws of this one went to infinity
                names.append(p.name)
            continue
        reach = own.high - own.low
        wide = own.high > SPAN * own.low if p.scale == "log" else reach > 2 * abs(own.estimate)
        if wide or own.low <= p.low + 1e-6 * abs(p.low):
            names.append(p.name)
    return names


def caveats(law: FittableLaw, rows: Rows, spec: Fit, fitted: GroupFit) -> list[str]:
    sentences = (
        *_of_the_search(law, fitted),
        *_of_the_parameters(law, rows, fitted),
        *_of_the_rows(law, rows, spec, fitted),
    )
    return list(dict.fromkeys(sentences))


def _of_the_search(law: FittableLaw, fitted: GroupFit) -> Iterator[str]:
    if not fitted.converged:
        yield "the optimiser did not converge to a certified stationary point"
    starts, near = fitted.diagnostics.starts, fitted.diagnostics.near_equivalent
    if starts:
        if starts.pruning_lost:
            yield (
                "pruning lost the optimum, which a sample of the starts found: more of it may be "
                "hidden; run more starts by protocol.grid"
            )
        if starts.reached <= 1 < starts.survived:
            yield f"only {starts.reached} of {starts.survived} starts reached the optimum"
    for other in near.optima if near else ():
        if other.objective_excess <= EQUIVALENT:
            yield (
                f"another optimum is {other.objective_excess:.2%} worse and has other "
                "coefficients; its predictions of the fitted rows differ by up to "
                f"{other.prediction_differs:.2g}{' of their value' if law.log_response else ''}"
            )


def _of_the_parameters(law: FittableLaw, rows: Rows, fitted: GroupFit) -> Iterator[str]:
    known, params = fitted.diagnostics, fitted.estimates()
    for p in law.parameters:
        if p.name in known.at_bounds:
            yield (
                f"{p.name} is at its bound {params[p.name]:.6g} (allowed: {p.low:g} to {p.high:g})"
            )
    for name, own in fitted.params.items():
        if own.low is not None and own.high is None:
            yield f"{name} is above {own.low:.4g}: these rows tell no larger values apart"
    if known.unidentified:
        yield (
            f"these rows do not identify {', '.join(known.unidentified)}: an interval reaches a "
            f"bound, spans a factor of {SPAN:g} (coefficients) or twice the estimate (exponents)"
        )
    for name, fraction in law.fractions(params, rows.columns).items():
        if fraction.max() < TINY:
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


def _of_the_rows(law: FittableLaw, rows: Rows, spec: Fit, fitted: GroupFit) -> Iterator[str]:
    yield from rows.warnings
    n, P, draws = fitted.n, law.n_free, fitted.diagnostics.draws
    bootstrapped = fitted.intervals.startswith("percentile")
    if draws.used < 0.9 * draws.requested and bootstrapped:
        yield (
            f"only {draws.used} of {draws.requested} bootstrap samples could tell the parameters "
            "apart: the intervals rest on those"
        )
    if n == P:
        yield "as many rows as parameters: the fit is exact and says nothing of errors"
    elif n < 3 * P and bootstrapped:
        yield f"{n} rows for {P} parameters: few; intervals may be too narrow"
    if spec.holdout and fitted.holdout is None:
        yield f"holdout {spec.holdout!r} selects no row here"
    held = len(rows.held_response)
    if held and fitted.hull:
        beyond = int(outside(law, fitted.hull, rows.held_columns).sum())
        if beyond:
            yield (
                f"{beyond} of the {held} held-out rows lie outside the fitted rows' hull: the law "
                f"is extrapolated there; {beyond_the_rows(fitted)}"
            )


# A singular value of the normalised Jacobian below this, relative to the largest, is rounding: at
# random rows of all laws they are above 1e-4. TRIED starts are tried, as one may lie at a corner.
DEPENDENT, TRIED = 1e-10, 8


def require_identifiable(law: FittableLaw, columns: Columns) -> None:
    """Refuses rows that leave some parameters undetermined, whatever the losses, and names them.

    Where no variable is constant, only a linear law is refused: intervals show what others leave
    open.
    """
    same = (f"{name} = {x[0]:.6g}" for name, x in columns.items() if np.ptp(x) == 0)
    constants = " and ".join(same)
    names = _undetermined(law, columns)[0] if constants or isinstance(law, LinearLaw) else []
    if names:
        raise UserError(
            f"the {len(next(iter(columns.values())))} rows cannot determine {joined(names)} of "
            f"{law.ref}: {f'all have {constants}' if constants else 'they vary too little'}; "
            "add rows that vary"
        )


def require_determined(law: FittableLaw, fitted: Columns, held: Columns) -> None:
    """Refuses fitted rows that leave open what the law predicts for the held-out ones.

    These then determine more than the fitted rows do: the exponent of E, say, where all fitted rows
    are dense.
    """
    names, lost = _undetermined(law, fitted)
    both = {name: np.concatenate([x, held[name]]) for name, x in fitted.items()}
    if lost and lost > _undetermined(law, both)[1]:
        raise UserError(
            f"the fitted rows cannot determine {joined(names)} of {law.ref}, on which its "
            "prediction of held-out rows depends"
        )


def _undetermined(law: FittableLaw, columns: Columns) -> tuple[list[str], int]:
    """Returns the parameters that rows leave open, and how many directions of them.

    The Jacobian then lacks rank at each of several starts: an exponent of a variable that is
    constant and its coefficient, for example, make up for one another.
    """
    rng, grid = np.random.default_rng(0), law.protocol.grid
    least: tuple[list[str], int] = ([], 0)
    model = law.model(law.columns(columns))
    free = np.array([p.low < p.high for p in law.parameters])
    free_names = np.array(law.names)[free]
    for _ in range(TRIED):
        start = [rng.choice(grid.get(name, (0.0,))) for name in law.names]
        with np.errstate(all="ignore"):
            _, state = model.evaluate(np.clip(np.array([start]) + 0.01, *law.bounds.T))
            J = np.array(model.jacobian(state)[0])[free]  # d prediction / d working-scale parameter
        if not np.isfinite(J).all():
            continue
        J /= np.maximum(np.linalg.norm(J, axis=1, keepdims=True), np.finfo(float).tiny)
        directions, sizes, _ = np.linalg.svd(J, full_matrices=False)
        lost = sizes < DEPENDENT * sizes[0]
        involved = np.abs(directions[:, lost]).max(axis=1, initial=0) > 1e-3
        names = free_names[involved].tolist()
        if not names:
            return [], 0
        least = min(least, (names, int(lost.sum())), key=lambda x: x[1] or len(law.names) + 1)
    return least


def near_optima(law: FittableLaw, theta_KP: Array, values_K: Array, columns: Columns) -> NearOptima:
    """Returns how optima (K, P), best first, differ from the best, also in predictions of rows."""
    prediction = law.on_scale(law.predict_batch(theta_KP, columns))
    scale = abs(values_K[0]) or 1.0
    optima = [
        NearOptimum(
            params=dict(zip(law.names, law.natural(theta).tolist(), strict=True)),
            objective_excess=float((value - values_K[0]) / scale),
            prediction_differs=float(np.abs(own - prediction[0]).max()),
        )
        for theta, value, own in zip(theta_KP[1:], values_K[1:], prediction[1:], strict=True)
    ]
    return NearOptima(NEARLY, optima)
