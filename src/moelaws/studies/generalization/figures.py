"""F1 shows the loss over the routing term R, F2 and F3 the dimension of the hidden states.

F4 and F5 show slopes, F6a and F6b kappa over experts, F7a and F7b the best split of a budget.
"""

from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.effect import number_or_nan
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array
from moelaws.figures import axes, style
from moelaws.figures.axes import VALIDATION_LOSS
from moelaws.figures.losses import bars, error_among
from moelaws.figures.sheet import Panel, Sheet, one_panel, two_panels
from moelaws.laws.base import FittableLaw
from moelaws.laws.joint.loss import compute_optimal
from moelaws.studies.generalization.derived import exponents
from moelaws.studies.generalization.derived.dimension import MIDDLE
from moelaws.studies.generalization.laws import kappa

FORMS = (
    (kappa.LAW, r"own $\kappa_1 E^{\rho}$", "-"),
    (kappa.VARIANTS["log2"], r"own $c_0 + c_1 \log_2 E$", ":"),
)
PUBLISHED_BUDGETS = (1e20, 1e21, 1e22)
PUBLISHED_RANGE = (1e19, 1e23)  # budgets over which the published law is drawn, near its own runs
DASHED: dict[str, Any] = {**style.PUBLISHED, "linewidth": 0.8}


def slopes(inputs: FittedInputs, series: str, x: str, label: str) -> Sheet:
    """Draws (a) L and (b) L - L_inf over ``x``, both axes logarithmic, with the fitted line."""
    rows = inputs.derived("runs", sweep=series).sort_values(x)
    grid = np.geomspace(rows[x].min(), rows[x].max(), 61)
    sheet = two_panels()
    forms = {"line": VALIDATION_LOSS, "floor": r"$L - L_\infty$ (nats/token)"}
    for panel, (form, label_y) in zip(sheet.panels, forms.items(), strict=True):
        fits = exponents.estimates(inputs, f"{series}_{form}")
        law = inputs.law(f"{series}_{form}")
        for fit, colour in zip(fits, style.ordered_colours(max(3, len(fits))), strict=False):
            name = fit.corpus if len(fits) > 1 else ""
            own, floor = rows[rows["corpus"] == fit.corpus], fit.params.get("L_inf", 0.0)
            _points(panel, own, x, floor, colour, name)
            # In (b) the uncertainty of the floor belongs to the points; the band is of the curve.
            middle, *ends = (
                np.where(y > floor, y - floor, np.nan)
                for y in (law.predict(fit.params, {"x": grid}), *_band(law, fit, grid))
            )
            ink: Any = colour if name else style.INK
            panel.line(f"fit {name}".strip(), grid, middle, *ends, color=ink, zorder=1)
        texts = [_title_of_slopes(fit, len(fits) > 1) for fit in fits]
        panel.title("\n".join(texts), fontsize=7 if len(fits) == 1 else 5.5)
        axes.size(panel.ax.xaxis, label)
        axes.log(panel.ax.yaxis, label_y)
    if rows["corpus"].nunique() > 1:
        sheet.panels[-1].legend("corpus")
    return sheet


def _band(law: FittableLaw, fit: exponents.Estimates, x: Array) -> Array:
    """Returns both ends (2, n) of the fitted loss over ``x`` (n,)."""
    drawn = [(p, fit.values[p.name]) for p in law.parameters]
    theta_BP = np.column_stack([np.log(B) if p.scale == "log" else B for p, B in drawn])
    return _ends(law.predict_batch(theta_BP, {"x": x}), fit)


def _points(
    panel: Panel, rows: pd.DataFrame, x: str, floor: float, colour: Any, corpus: str
) -> None:
    """Draws the losses above ``floor``, with errors among all runs, since these name no budget."""
    y = rows["L"] - floor
    shown = y > 0
    if not shown.all():
        panel.sheet.warn(f"{int((~shown).sum())} runs lie at or below the fitted floor")
    ends = bars(rows.assign(above=y)[shown], error_among(rows), "above")
    ends |= {"low": np.where(ends["low"] > 0, ends["low"], np.nan)} if ends else {}
    panel.ax.set(xscale="log", yscale="log")
    xy = rows[x][shown], y[shown]
    panel.points(corpus or "runs", *xy, **ends, color=colour, zorder=3, label=corpus or None)
    panel.ax.margins(0.05, 0.1)


def _title_of_slopes(fit: exponents.Estimates, short: bool) -> str:
    """Returns the exponent with its interval, and how well the fit explains its runs."""
    alpha, metrics = fit.with_interval("alpha"), fit.result.metrics
    floor = fit.params.get("L_inf", 0.0)
    above = rf"above $L_\infty$ = {floor:.3f}" if floor else "no floor"
    above = f"{fit.corpus}, {above}" if short else above
    text = (
        rf"{above}: $\alpha$ = {alpha['value']:.3f} "
        f"({alpha['value_low']:.3f} to {alpha['value_high']:.3f})"
    )
    aicc = number_or_nan(metrics.get("aicc"))
    more = f"\n$n$ = {fit.result.n}, $R^2$ = {metrics['r2']:.3f}, AICc {aicc:.1f}"
    return text if short else text + more


def amplification(inputs: FittedInputs, lines: bool) -> Sheet:
    """Draws kappa over E; ``lines`` adds those of each form through the own points, and one law."""
    origins = exponents.OWN, exponents.PUBLISHED
    own, published = (inputs.derived("identities", origin=origin) for origin in origins)
    sheet, panel = one_panel(style.SINGLE + 0.9)
    published = published.sort_values("E")
    marks: dict[str, Any] = {**style.PUBLISHED, "linewidth": 0.9}
    if not lines:
        marks |= {"marker": "s", "markersize": 2.5}
        name = "published (Table 5)"
        panel.line(name, published["E"], published["kappa"], **marks, label=name)
    seen = own[own["kappa"].notna()]
    if len(seen):
        low, high = seen["kappa_low"], seen["kappa_high"]
        colour = style.ordered_colours(3)[0]
        panel.points("own", seen["E"], seen["kappa"], low, high, color=colour, label="own runs")
    else:
        panel.sheet.warn("no own kappa: no exponents above 0 for any number of experts")
    if lines:
        _lines(panel, inputs, seen, marks)
    panel.ax.axhline(1, color=style.INK, linewidth=0.6, linestyle=(0, (1, 1.5)))
    axes.experts(panel.ax, [*seen["E"], *published["E"]])
    axes.log(panel.ax.yaxis, r"$\kappa = \alpha_D\,/\,\alpha_D^{pred}$")
    panel.legend()
    return sheet


def _lines(panel: Panel, inputs: FittedInputs, own: pd.DataFrame, dashed: dict[str, Any]) -> None:
    """Draws the published line, both forms through the own points, and the fit ``joint``."""
    assert kappa.LAW.published is not None
    span, name = np.geomspace(1, 32, 41), "published\n(line over Table 5)"
    published = kappa.LAW.predict(kappa.LAW.published, {"E": span})
    panel.line(name, span, published, **dashed, label=name)
    E, y = (own[name].to_numpy(float) for name in ("E", "kappa"))
    if len(E) < 2:
        return
    grid, colours = np.geomspace(E.min(), E.max(), 41), style.ordered_colours(3)
    for (law, name, linestyle), colour in zip(FORMS, colours, strict=False):
        params = dict(zip(law.names, exponents.line(law, E, y[None])[0], strict=True))
        shown = law.predict(params, {"E": grid})
        shown = np.where(shown > 0, shown, np.nan)
        panel.line(name, grid, shown, color=colour, linestyle=linestyle, label=name)
    one = exponents.kappa_of(exponents.over_experts(inputs, grid))[0]
    panel.line("joint", grid, one, color=colours[2], label="own, one law")


def _ends(value_BC: Array, fit: exponents.Estimates) -> Array:
    """Returns both ends (2, C) of the intervals by draws, which follow the estimates (1, C)."""
    return np.transpose(
        [exponents.interval(values, fit.level, fit.stretch) for values in value_BC.T]
    )


def losses(inputs: FittedInputs) -> Sheet:
    """Draws F7a: L* over C, a line for each number of experts, with its interval."""
    sheet, panel = one_panel(style.SINGLE + 0.6)
    low, high = exponents.budgets(inputs)
    grid = np.geomspace(low, high, 41)
    if low < PUBLISHED_RANGE[1] and high > PUBLISHED_RANGE[0]:
        label: str | None = "published"
        for M, values in exponents.PUBLISHED_LAWS.items():
            panel.line(
                f"published E{M:g}", grid, compute_optimal(values, grid).L, **DASHED, label=label
            )
            label = None  # one name for all
    E, (fit,) = exponents.experts(inputs), exponents.estimates(inputs, "joint")
    for number, colour in style.palette(E).items():
        L_BC = compute_optimal(exponents.over_experts(inputs, np.array([number])), grid).L
        if np.isfinite(L_BC[0]).all():
            panel.line(
                f"E={number:g}", grid, L_BC[0], *_ends(L_BC, fit),
                color=colour, label=f"{number:g}"
            )  # fmt: skip
    if not panel.ax.lines:
        return panel.message("no frontier: the law does not fall\nwith both parameters and tokens")
    axes.compute(panel.ax.xaxis, label="training budget $C = 6 N_a D$ (FLOPs)")
    axes.log(panel.ax.yaxis, "loss at the best split $L^*$ (nats/token)")
    panel.legend("experts $E$")
    return sheet


def ratios(inputs: FittedInputs) -> Sheet:
    """Draws F7b: D*/N* over E, a line for each budget, and those of the published law, dashed."""
    sheet, panel = one_panel(style.SINGLE + 0.9)
    for C in PUBLISHED_BUDGETS:
        y = [
            float(compute_optimal(values, C).ratio) for values in exponents.PUBLISHED_LAWS.values()
        ]
        panel.line(f"published {C:g}", list(exponents.PUBLISHED_LAWS), y, **DASHED)
        panel.ax.annotate(axes.power(C), (32, y[-1]), xytext=(3, 0), textcoords="offset points",
                          fontsize=5.5, color=style.GREY, va="center")  # fmt: skip
    panel.key("published\n($C$ beside it)", **DASHED)
    E, (fit,) = exponents.experts(inputs), exponents.estimates(inputs, "joint")
    budgets = np.geomspace(*exponents.budgets(inputs), 3)
    for C, colour in style.palette(budgets).items():
        ratio_BE = compute_optimal(exponents.over_experts(inputs, E), C).ratio
        panel.ax.plot(E, ratio_BE[0], color=colour, linewidth=0.9)
        panel.points(
            f"C={C:g}", E, ratio_BE[0], *_ends(ratio_BE, fit),
            color=colour, label=axes.power(C)
        )  # fmt: skip
    known = [*exponents.PUBLISHED_LAWS, *E]
    axes.experts(panel.ax, known)
    panel.ax.set_xlim(0.85 * min(known), 1.7 * max(known))  # room for the budgets' names
    axes.log(panel.ax.yaxis, r"$D^*/N_a^*$ (tokens/parameter)")
    panel.legend("own: budget $C$ (FLOPs)")
    return sheet


def routing(inputs: Inputs) -> Sheet:
    """Draws the least and the largest budget in a panel each, a line for each k, M beside marks."""
    runs = inputs.derived("runs", sweep="routing")
    budgets = sorted(float(D) for D in runs["D"].unique())
    budgets = budgets if len(budgets) < 3 else [budgets[0], budgets[-1]]
    sheet = Sheet(style.DOUBLE, style.HEIGHT, max(len(budgets), 1))
    palette = style.palette(runs["k"])
    for panel, D in zip(sheet.panels, budgets, strict=False):
        rows = runs[runs["D"] == D]
        for k, colour, own in style.groups(rows, "k", palette):
            _series(panel, own, k, colour, error_among(rows))
        panel.title(f"$D$ = {style.short(D)} tokens")
        R = r"routing term $R = k L_T\,l\,\ln(eM/k)$ (nats)"
        panel.ax.set(xlabel=R, ylabel=VALIDATION_LOSS)
        panel.ax.margins(0.08, 0.14)
    if not budgets:
        sheet.panels[0].message("no completed run of the sweep routing")
    sheet.panels[-1].legend("active\nexperts $k$")
    return sheet


def _series(panel: Panel, rows: pd.DataFrame, k: float, colour: Any, error: str) -> None:
    """Draws the runs of one k at one budget: means over seeds, joined in the order of M."""
    mean = rows[["M", "R", "L", error]].groupby("M", as_index=False).mean()
    panel.ax.plot(mean["R"], mean["L"], color=colour, linewidth=0.9, zorder=2)
    ends = bars(mean, error)
    name = f"{k:g}"
    panel.points(f"k={name}", mean["R"], mean["L"], **ends, color=colour, label=name, zorder=3)
    beside = {"textcoords": "offset points", "xytext": (4, 3), "fontsize": 5.5}
    for row in mean.itertuples():
        panel.ax.annotate(f"{row.M}", (row.R, row.L), **beside, color=style.INK)


def dimension(inputs: Inputs, x: str) -> Sheet:
    """Draws the dimension over ``x``, which is layer or depth, with a line for each model."""
    table = inputs.derived("dimension")
    table = table[table["dimension"].notna()]
    sheet, panel = one_panel(style.SINGLE + 0.6)
    if not len(table):
        return panel.message("no hidden states:\nno completed run's weights are kept")
    models = table.groupby(["corpus", "n_layers", "width", "D", "seed", "run_id"], sort=True)
    corpora = sorted(table["corpus"].unique())
    several = len(corpora) > 1
    of_corpus = dict(zip(corpora, style.ordered_colours(len(corpora)), strict=True))
    colours = style.ordered_colours(models.ngroups)
    many = table.drop_duplicates("run_id")["D"].nunique() > 1
    for (key, rows), colour in zip(models, colours, strict=True):
        corpus, layers, width, D, seed, _ = key
        colour = of_corpus[corpus] if several else colour
        label = f"{layers} x {width}, seed {seed}"
        label += f", {style.short(float(str(D)))}" if many else ""
        label = f"{corpus}, {label}" if several else label
        low, high = (rows["dimension"] + sign * rows["mad"] for sign in (-1, 1))
        panel.ax.plot(rows[x], rows["dimension"], color=colour, linewidth=0.9)
        panel.points(label, rows[x], rows["dimension"], low, high, color=colour, label=label)
    if x == "depth":
        panel.ax.axvspan(*MIDDLE, color="#f0f0f0", zorder=0, linewidth=0)
        panel.ax.set_xlabel("relative depth: layer / layers")
    else:
        panel.ax.set_xlabel("layer (0: embedding)")
        panel.ax.xaxis.get_major_locator().set_params(integer=True)
    panel.ax.set_ylim(0, 1.08 * float((table["dimension"] + table["mad"]).max()))
    widths = ", ".join(f"{width}" for width in sorted(table["d_model"].unique()))
    panel.ax.set_ylabel(f"intrinsic dimension (width {widths})")
    panel.legend("layers x expert width")
    return sheet
