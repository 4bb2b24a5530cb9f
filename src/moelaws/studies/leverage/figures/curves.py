"""Tables of loss curves and leverage, and of the joint law (Eq 4) and what it predicts."""

from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.fitted import FittedInputs
from moelaws.figures import axes
from moelaws.studies.leverage.derived.curves import COMPUTE, DENSE, Curve, curve, curves
from moelaws.studies.leverage.derived.curves import leverage_points as leverage_of
from moelaws.studies.leverage.derived.points import JOINT, VALIDATION, by_joint_law
from moelaws.studies.leverage.figures.leverage import published_leverage
from moelaws.studies.leverage.laws.curve import compute_for

POINTS = 81
VARIANTS = "curve_variants"  # the fit of the sub-experiments
# An architecture: its label, its curve or none, and its points of leverage or its single runs.
Shown = tuple[str, Curve | None, pd.DataFrame]
COLUMNS = ["C", "L", "low", "high", "EL", "EL_low", "EL_high", "kind", "place", "label"]


def leverage_of_sparsest(inputs: FittedInputs) -> pd.DataFrame:
    """Returns what ``architectures`` does, of the dense and of the sparsest architecture.

    Two points of the kind ``leverage`` are the mixture's middle budget, and the compute that the
    dense counterpart needs for the same loss.
    """
    dense = curve(inputs, DENSE)
    mixtures = list(curves(inputs, "curve_activation"))
    if not mixtures:
        return pd.DataFrame(columns=COLUMNS)
    moe = max(mixtures, key=lambda moe: float(moe.rows["E"].iloc[0]))
    budgets = np.sort(moe.rows[COMPUTE].unique())
    C = float(budgets[len(budgets) // 2])
    L = float(moe.loss(np.array([C]))[0])
    C_dense = float(compute_for(dense.params, L))
    leverage = pd.DataFrame({"C": [C, C_dense], "L": L if np.isfinite(C_dense) else np.nan})
    about: dict[str, Any] = {"kind": "leverage", "place": -1, "label": f"EL = {C_dense / C:.2g}"}
    name = f"A={1 - float(moe.rows['S'].iloc[0]):g}"
    every = _rows("dense", dense, [(name, moe, leverage.head(0))], C_dense)
    return pd.concat([every, leverage.assign(**about)])


def architectures(inputs: FittedInputs, sweep: str, fit: str, baseline: str) -> pd.DataFrame:
    """Returns the curves of a sweep's architectures, their runs, and their leverage.

    The ``kind`` of a row says which of them it is, ``place`` and ``label`` say of which
    architecture; the ``baseline`` comes before the others, at place -1. An architecture of too few
    budgets for a curve has ``single`` runs.
    """
    if fit == VARIANTS:
        runs = inputs.derived("singles", sweep=sweep)
        if not len(runs):
            return pd.DataFrame(columns=COLUMNS)
        base = curve(inputs, str(runs["baseline"].iloc[0]))
        return _rows(baseline, base, list(_variants(inputs, runs, base)))
    points = inputs.derived("points", measured=1, sweep=sweep)
    mixtures = sorted(((*_name(moe, sweep), moe) for moe in curves(inputs, fit)), key=itemgetter(0))
    shown: list[Shown] = [
        (label, moe, points[points["E"] == int(moe.rows["E"].iloc[0])])
        for _, label, moe in mixtures
    ]
    return _rows(baseline, curve(inputs, DENSE), shown)


def _variants(inputs: FittedInputs, runs: pd.DataFrame, base: Curve) -> Iterator[Shown]:
    """Yields the architectures of a sub-experiment, but for the baseline's own runs."""
    fitted = {int(moe.rows["variant"].iloc[0]): moe for moe in curves(inputs, VARIANTS)}
    others = runs[~runs["run_id"].isin(base.rows["run_id"])]
    for variant in others.groupby("variant")["x"].median().sort_values().index:
        rows, moe = others[others["variant"] == variant], fitted.get(int(variant))
        label = f"{rows['x'].median():.2g}"
        if moe:
            rows = leverage_of(base, moe, np.unique(rows["C"].to_numpy(float)))
        yield label, moe, rows


def _rows(name: str, base: Curve, shown: list[Shown], to: float = 0.0) -> pd.DataFrame:
    """Returns the rows of the base and of the others; the base's curve goes on ``to`` a budget."""
    every: list[Shown] = [(name, base, pd.DataFrame({"C": []})), *shown]
    tables = []
    for place, (label, moe, points) in enumerate(every, -1):
        kinds = {"leverage" if moe else "single": points}
        if moe:
            C = moe.rows[COMPUTE].to_numpy(float)
            end = np.fmin(np.fmax(C.max(), to if place < 0 else 0.0), 30 * C.max())
            grid = np.geomspace(C.min(), end, POINTS)
            line = {"C": grid, "L": moe.loss(grid), **moe.loss_band(grid)}
            kinds |= {"curve": pd.DataFrame(line), "run": moe.rows.assign(C=C)}
        about: dict[str, Any] = {"place": place, "label": label}
        tables += [
            rows.reindex(columns=COLUMNS).assign(kind=kind, **about) for kind, rows in kinds.items()
        ]
    return pd.concat(tables)


def _name(moe: Curve, sweep: str) -> tuple[float, str]:
    """Returns the value that an architecture has of what the sweep varies, and its text."""
    if sweep == "activation":
        A = 1 - float(moe.rows["S"].iloc[0])
        return A, axes.percent(A)
    G = float(moe.rows["G"].median())
    return G, f"{round(G, 1):g}"


PUBLISHED_AT = 1e22  # FLOP, as in the paper's Figure 1


def heatmap(inputs: FittedInputs) -> pd.DataFrame:
    """Returns EL over A and G by these runs at their largest budget, and as published."""
    points = inputs.derived("points", measured=1)
    C = float(points["C"].max())
    G = np.geomspace(points["G"].min(), max(points["G"].max(), 2 * points["G"].min()), 60)
    a, g = np.meshgrid(np.geomspace(points["A_routed"].min(), 1.0, 60), G)
    maps = {
        f"these runs, {axes.power(C)} FLOPs": inputs.predict(JOINT, A=a, G=g, C=C),
        "published, $10^{22}$ FLOPs": published_leverage(a, g, PUBLISHED_AT),
    }
    return pd.concat(
        pd.DataFrame({"title": title, "A": a.ravel(), "G": g.ravel(), "EL": EL.ravel()})
        for title, EL in maps.items()
    )


def predicted(inputs: FittedInputs) -> pd.DataFrame:
    """Returns the points of ``_residuals`` with the name of their role, and the errors in words."""
    rows = _residuals(inputs)
    squared = ((rows["EL"] - rows["predicted"]) ** 2).groupby(rows["role"]).mean()
    printed = {"fitted": ".217", "validation": ".528"}
    lines = [f"RMSE {r} = {squared[r] ** 0.5:.3g} (published {printed[r]})" for r in squared.index]
    lines += [] if "validation" in squared else ["no point has EL >= 6: nothing validates the law"]
    R2 = inputs.fit(JOINT).parts[0].metrics["r2"]
    lines += [] if R2 is None else [f"$R^2$ = {R2:.3g} (published .986)"]
    sizes = rows.groupby(["role", "measured"])["EL"].transform("size")
    ends = rows["role"].map({"fitted": ", EL < 6: ", "validation": ", EL >= 6: "})
    beyond = rows["measured"].map({1: "", 0: " extrapolated"})
    return rows.assign(
        name=rows["role"] + ends + sizes.astype(str) + beyond, words="\n".join(lines)
    )


def equality(inputs: FittedInputs) -> pd.DataFrame:
    """Returns the ends of the line on which the points of ``predicted`` would lie."""
    rows = _residuals(inputs)[["EL", "predicted"]]
    ends = [rows.min().min() / 1.1, rows["EL"].max() * 1.1]
    return pd.DataFrame({"EL": ends, "predicted": ends})


def residuals(inputs: FittedInputs) -> pd.DataFrame:
    """Returns the residuals of EL over the prediction, and their histogram in words and numbers.

    The ``kind`` of a row is point or bin, of which ``x`` is the centre and ``y`` the count.
    """
    rows = _residuals(inputs)
    rows = rows[rows["role"] == "fitted"]
    residual = (rows["EL"] - rows["predicted"]).to_numpy(float)
    counts, edges = np.histogram(residual, bins="auto")
    words = (
        f"$n$ = {len(residual)}, mean {residual.mean():.3g} (published -.027)\n"
        f"sd {residual.std():.3g} (published .280)"
    )
    bins = pd.DataFrame({"x": (edges[1:] + edges[:-1]) / 2, "y": counts, "words": words})
    points = pd.DataFrame({"x": rows["predicted"], "y": residual})
    return pd.concat({"point": points, "bin": bins}, names=["kind"]).reset_index("kind")


def _residuals(inputs: FittedInputs) -> pd.DataFrame:
    """Returns the points with EL ``predicted`` by the law, and the ``role``: fitted, validation."""
    points = inputs.derived("points")
    points = points[points["EL"] > 0]
    role = np.where(points["EL"] < VALIDATION, "fitted", "validation")
    return points.assign(predicted=by_joint_law(inputs, points)[0], role=role)
