"""Tables that figures draw: slopes of losses (F4, F5), routed runs, layers and laws."""

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Rows, records
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array
from moelaws.figures import style
from moelaws.laws.base import FittableLaw
from moelaws.laws.joint.loss import compute_optimal
from moelaws.studies.generalization.derived import exponents
from moelaws.studies.generalization.laws import kappa

FORMS = {
    r"own $\kappa_1 E^{\rho}$": kappa.LAW,
    r"own $c_0 + c_1 \log_2 E$": kappa.VARIANTS["log2"],
}
PUBLISHED_BUDGETS = (1e20, 1e21, 1e22)
PUBLISHED_RANGE = (1e19, 1e23)  # budgets over which the published law is drawn, near its own runs


def slopes(inputs: FittedInputs, series: str, x: str) -> Rows:
    """Yields L, or L - L_inf (``form`` floor), over ``x`` for each corpus, and the fitted lines.

    The ``kind`` of a row is run or fit. ``words`` has the exponents with their intervals.
    """
    rows = inputs.derived("runs", sweep=series)
    grid = np.geomspace(rows[x].min(), rows[x].max(), 61)
    for form in exponents.FLOORS:
        fit_of = f"{series}_{form}"
        fits, law = exponents.estimates(inputs, fit_of), inputs.law(fit_of)
        words = "\n".join(_words(fit, len(fits) > 1) for fit in fits)
        for fit in fits:
            own, floor = rows[rows["corpus"] == fit.corpus], fit.params.get("L_inf", 0.0)
            above = (own["L"] - floor).where(own["L"] > floor)
            note = np.where(above.isna(), "it lies at or below the fitted floor", "")
            runs = own.assign(x=own[x], y=above, note=note, kind="run")
            # The uncertainty of the floor belongs to the points; the band is of the curve.
            line = {"x": grid, "y": law.predict(fit.params, {"x": grid}), "corpus": fit.corpus}
            line |= dict(zip(("low", "high"), _band(law, fit, grid), strict=True))
            fitted = pd.DataFrame(line).assign(kind="fit")
            ends = ["y", "low", "high"]
            fitted[ends] = (fitted[ends] - floor).where(fitted[ends] > floor)
            yield from (part.assign(form=form, words=words) for part in (runs, fitted))


def _band(law: FittableLaw, fit: exponents.Estimates, x: Array) -> Array:
    """Returns both ends (2, n) of the fitted loss over ``x`` (n,)."""
    drawn = [(p, fit.values[p.name]) for p in law.parameters]
    theta_BP = np.column_stack([np.log(B) if p.scale == "log" else B for p, B in drawn])
    return _ends(law.predict_batch(theta_BP, {"x": x}), fit)


def _words(fit: exponents.Estimates, several: bool) -> str:
    """Returns the exponent with its interval, and how well the fit explains its runs."""
    alpha, metrics = fit.effect(fit.values["alpha"]), fit.result.metrics
    floor = fit.params.get("L_inf", 0.0)
    above = rf"above $L_\infty$ = {floor:.3f}" if floor else "no floor"
    text = rf"{above}: $\alpha$ = {alpha.value:.3f} ({alpha.low:.3f} to {alpha.high:.3f})"
    if several:
        return f"{fit.corpus}\n{text}"
    aicc = np.float64(metrics.get("aicc"))  # NaN without one
    return f"{text}\n$n$ = {fit.result.n}, $R^2$ = {metrics['r2']:.3f}, AICc {aicc:.1f}"


def routed(inputs: Inputs) -> pd.DataFrame:
    """Returns the means over seeds of the sweep routing, at its least and its largest budget."""
    runs = inputs.derived("runs", sweep="routing")
    runs = runs[runs["D"].isin([runs["D"].min(), runs["D"].max()])]
    numbers = ["R", "L", "L_se", "L_paired_se"]
    return runs.groupby(["D", "k", "M"], as_index=False)[numbers].mean()


def layers(inputs: Inputs) -> pd.DataFrame:
    """Returns the dimension after each layer, with a name for each ``model``."""
    table = inputs.derived("dimension").dropna(subset=["dimension"])
    table = table.sort_values(["corpus", "n_layers", "width", "D", "seed", "run_id", "layer"])
    name = "{n_layers} x {width}, seed {seed}".format
    models = [name(**row) for row in records(table)]
    if table["D"].nunique() > 1:
        models = [f"{model}, {style.short(D)}" for model, D in zip(models, table["D"], strict=True)]
    if table["corpus"].nunique() > 1:
        models = [f"{text}, {model}" for text, model in zip(table["corpus"], models, strict=True)]
    return table.assign(model=models)


def kappa_lines(inputs: FittedInputs) -> Rows:
    """Returns kappa over E: the published line, both forms through own values, and one law."""
    span = np.geomspace(1, 32, 41)
    lines = {"published": (span, kappa.LAW.predict(kappa.LAW.published, {"E": span}))}
    own = inputs.derived("identities", origin=exponents.OWN).dropna(subset=["kappa"])
    E, y = (own[name].to_numpy(float) for name in ("E", "kappa"))
    if len(E) > 1:
        grid = np.geomspace(E.min(), E.max(), 41)
        for name, law in FORMS.items():
            params = dict(zip(law.names, exponents.line(law, E, y[None])[0], strict=True))
            shown = law.predict(params, {"E": grid})
            lines[name] = grid, np.where(shown > 0, shown, np.nan)
        lines["joint"] = grid, exponents.kappa_of(exponents.over_experts(inputs, grid))[0]
    return (pd.DataFrame({"line": name, "E": x, "kappa": y}) for name, (x, y) in lines.items())


def _ends(value_BC: Array, fit: exponents.Estimates) -> Array:
    """Returns both ends (2, C) of the intervals by draws, which follow the estimates (1, C)."""
    return np.transpose(
        [exponents.interval(values, fit.level, fit.stretch) for values in value_BC.T]
    )


def splits(inputs: FittedInputs, n: int) -> Rows:
    """Yields the best split of ``n`` budgets at each number of experts, by the fit joint.

    The loss ``L`` and the ``ratio`` of tokens to parameters have ends. What the fit does not
    determine is left out.
    """
    E, (fit,) = exponents.experts(inputs), exponents.estimates(inputs, "joint")
    laws = exponents.over_experts(inputs, E)
    for C in np.geomspace(*exponents.budgets(inputs), n):
        best, own = compute_optimal(laws, C), pd.DataFrame({"C": C, "E": E})
        for name, value_BE in {"L": best.L, "ratio": best.ratio}.items():
            low, high = _ends(value_BE, fit)
            own = own.assign(**{name: value_BE[0], f"{name}_low": low, f"{name}_high": high})
        yield own.dropna(subset=["L"])


def published_losses(inputs: FittedInputs, n: int) -> Rows:
    """Returns the losses of the published law's best splits, where its budgets are the runs'."""
    low, high = exponents.budgets(inputs)
    C = np.geomspace(low, high, n if low < PUBLISHED_RANGE[1] and high > PUBLISHED_RANGE[0] else 0)
    laws = exponents.PUBLISHED_LAWS.items()
    return (pd.DataFrame({"E": E, "C": C, "L": compute_optimal(law, C).L}) for E, law in laws)


def published_ratios(inputs: FittedInputs, n: int) -> pd.DataFrame:
    """Returns the published law's tokens per parameter at its own budgets."""
    return pd.DataFrame(
        {"C": C, "E": E, "ratio": float(compute_optimal(law, C).ratio)}
        for C in PUBLISHED_BUDGETS
        for E, law in exponents.PUBLISHED_LAWS.items()
    )
