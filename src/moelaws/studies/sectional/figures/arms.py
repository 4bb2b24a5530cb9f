"""The trained arms: losses, slices, learning rates, learning curves, and the cost of a step."""

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps

from moelaws.analysis.derive import Row, records
from moelaws.analysis.inputs import Inputs
from moelaws.figures import axes, style
from moelaws.figures.sheet import Panel, Sheet, one_panel, two_panels
from moelaws.laws.base import Array
from moelaws.studies.sectional.arms import (
    ARMS,
    DENSE,
    DIVIDED,
    SHAPE,
    SIZE,
    SLICES,
    WIDTHS,
    middle,
    of_arms,
    widest,
)
from moelaws.studies.sectional.derived.arms import smoothed
from moelaws.studies.sectional.derived.speeds import of_widths

_COLOURS = [colormaps["tab10"](i) for i in (0, 1, 2, 3, 4, 5, 6, 9, 8)]
MARKS = ("o", "s", "^", "D", "v", "P")  # of sizes
LOOKS = dict(zip(ARMS, [style.INK, style.GREY, *_COLOURS], strict=True))
SHIFT = 1.03  # by which each size or reading is shifted right, so that intervals stand apart
POINTS = 80  # of a curve
SKIPPED = 0.05  # fraction of first steps, over which the smoothed loss averages too few
SHOWN = {"slice_all": 4, "slice_chunks": 4}  # the number of slices that is shown of an arm
_COUNTED = [(f"{ARMS[a]} (counted)", {"color": LOOKS[a], "marker": "o"}) for a in SLICES]
# Column of the counted costs -> its label and look.
COSTS: dict[str, tuple[str, dict[str, Any]]] = {
    "all_ratio": _COUNTED[0],
    "chunks_ratio": _COUNTED[1],
    "printed_ratio": ("$S(E)$, published", style.PUBLISHED),
    "corrected_ratio": ("$S(E)$, corrected", {"color": style.INK}),
}
DIFFERENCE = ("difference", "low", "high")  # columns of the loss less the dense model's
RATIO = ("ratio", "low", "high")
MEMORY = {
    "state_bytes": ("model, optimizer", style.INK),
    "activation_bytes": ("activations", style.GREY),
}


def arms(inputs: Inputs) -> Sheet:
    """Draws the difference to the dense model by arm, a panel for each size."""
    table = inputs.derived("arms")
    shown, names = _named(table[table["arm"] != DENSE])
    sizes = [rows for _, rows in shown.groupby(SIZE)]
    sheet = Sheet(style.DOUBLE, 3.6, max(1, len(sizes)))
    for panel, rows in zip(sheet.panels, sizes, strict=False):
        panel.ax.axvline(0, color=style.INK, linewidth=0.8)
        for row in records(rows):
            _bar(panel, row["name"], row, DIFFERENCE, hollow=row["n_seeds"] < 2)
        panel.title(size_name(rows, "\n" if len(sizes) > 2 else " "))
    for panel in sheet.panels[1:]:
        panel.ax.sharex(sheet.panels[0].ax)
    _name_rows(sheet, names)
    sheet.figure.supxlabel("loss less the dense model's (nats/token)", fontsize=8)
    return sheet


def _bar(
    panel: Panel,
    series: str,
    row: Row,
    columns: Sequence[str],
    mark: str = "o",
    shift: float = 0.0,
    hollow: bool = False,
) -> None:
    """Draws a number with its interval, which the ``columns`` name, at the row's place ``y``."""
    y, colour = row["y"] + shift, LOOKS[row["arm"]]
    value, low, high = (row[column] for column in columns)
    panel.sheet.record(panel.name, series, x=y, y=value, low=low, high=high)
    panel.ax.plot([low, high], [y, y], color=colour)
    panel.ax.plot(value, y, mark, color=colour, markerfacecolor="white" if hollow else colour)


def _name_rows(sheet: Sheet, names: Sequence[str]) -> None:
    """Writes the names left of the first panel; all panels have the same places."""
    for panel in sheet.panels:
        panel.ax.set_yticks(-np.arange(len(names)), names)
        panel.ax.set_ylim(0.5 - len(names), 0.5)
        panel.ax.grid(axis="y", visible=False)
        panel.ax.tick_params(labelleft=panel is sheet.panels[0])


def _named(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Returns the rows in the order of arms with a ``name`` and its place ``y``, and all names."""
    places = table["arm"].map(list(ARMS).index)
    table = table.assign(place=places).sort_values(["place", *SHAPE], kind="stable")
    codes, names = pd.factorize(pd.Series([name_of(row) for _, row in table.iterrows()], dtype=str))
    return table.assign(name=names[codes], y=-codes), list(names)


def name_of(row: pd.Series) -> str:
    """Returns the name of a row: the arm, and its number of slices or dense layers."""
    name = ARMS[row["arm"]]
    if row["arm"] in SLICES:
        return f"{name}, $E$ = {row['E']}"
    if row["n_dense_layers"] and row["arm"] in DIVIDED:
        return f"{name}, {row['n_dense_layers']} dense"
    return name


def size_name(rows: pd.DataFrame, between: str = " ") -> str:
    """Returns the name of the size that all rows share; ``between`` may end a line of it."""
    d, n = int(rows["d_model"].iloc[0]), int(rows["context"].iloc[0])
    return f"$d$ = {d},{between}{n} positions"


def experts(inputs: Inputs) -> Sheet:
    """Draws the losses of both readings over E, and their counted cost beside the paper's."""
    sheet = Sheet(style.DOUBLE, 3.0, 2)
    losses, costs = sheet.panels
    _losses(losses, inputs.derived("arms"))
    speeds = inputs.derived("speeds")
    counted = of_widths(inputs.derived("counted"), speeds)
    for column, (label, look) in COSTS.items():
        costs.line(column, counted["E"], counted[column], label=label, **look)
    axes.experts(costs.ax, counted["E"], "slices $E$")
    for arm, sweep in WIDTHS.items():
        rows = speeds[speeds["sweep"] == sweep].sort_values("E")
        costs.points(
            sweep,
            *(rows[name] for name in ("E", *RATIO)),
            color=LOOKS[arm],
            marker="x",
            linestyle=":",
            linewidth=0.8,
            label=f"{ARMS[arm]} (time)",
        )
    costs.title(f"{size_name(counted)}, at equal widths")
    losses.ax.set_ylabel("loss less the dense\nmodel's (nats/token)")
    losses.title("at equal FLOPs a token")
    costs.ax.set_ylabel("cost a token over that of one slice")
    costs.legend()
    return sheet


def _losses(panel: Panel, table: pd.DataFrame) -> None:
    numbers: set[float] = set()
    sizes = list(table.groupby(SIZE))
    for first, (mark, (size, rows)) in enumerate(zip(cycle(MARKS), sizes, strict=False)):
        for place, arm in enumerate(SLICES, len(SLICES) * first):
            own = rows[rows["arm"] == arm].sort_values("E")
            numbers |= set(own["E"])
            x = own["E"] * SHIFT**place
            series = f"{arm}, d={size[0]}, n={size[1]}"
            panel.points(
                series,
                x,
                *(own[name] for name in DIFFERENCE),
                color=LOOKS[arm],
                marker=mark,
                linestyle="-",
                linewidth=0.7,
            )
        if len(sizes) > 1:
            panel.ax.plot([], [], mark, color=style.INK, label=size_name(rows))
    panel.ax.axhline(0, color=style.INK, linewidth=0.8)
    axes.experts(panel.ax, numbers, "slices $E$")
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)


def rates(inputs: Inputs) -> Sheet:
    """Draws the loss over the learning rate for each arm; its other runs have the filled rate."""
    sheet, panel = one_panel(width=style.DOUBLE * 0.75)
    table = inputs.derived("rates")
    if not len(table):
        return panel.message("this grid tries no other rates")
    for arm, rows in table.groupby("arm", sort=False):
        colour, chosen = LOOKS[str(arm)], rows[rows["chosen"]]
        panel.points(
            str(arm),
            rows["lr"],
            rows["L"],
            color=colour,
            linestyle="-",
            linewidth=0.8,
            markerfacecolor="white",
            label=ARMS[str(arm)],
        )
        panel.ax.plot(chosen["lr"], chosen["L"], "o", color=colour)
    panel.ax.set_xscale("log")
    axes.fixed_ticks(panel.ax.xaxis, sorted(set(table["lr"])))
    panel.ax.set(xlabel="peak learning rate", ylabel="validation loss (nats/token)")
    panel.legend()
    return sheet


def learning(inputs: Inputs) -> Sheet:
    """Draws the smoothed training loss of each arm (a), less the dense model's (b), one seed."""
    sheet = two_panels()
    losses, differences = sheet.panels
    differences.ax.axhline(0, color=LOOKS[DENSE], linewidth=0.8, label=ARMS[DENSE])
    shown = _shown(inputs)
    curves = {row["arm"]: _curve(inputs, row["run_id"]) for _, row in shown.iterrows()}
    for _, row in shown.iterrows():
        arm = row["arm"]
        look: dict[str, Any] = {"color": LOOKS[arm], "label": name_of(row), "linewidth": 0.9}
        tokens, loss = curves[arm]
        losses.line(arm, tokens, loss, **look)
        if arm != DENSE and DENSE in curves:
            differences.line(arm, tokens, loss - curves[DENSE][1], **look)
    losses.ax.set_ylabel("training loss (nats/token)")
    differences.ax.set_ylabel("less the dense model's")
    for panel in sheet.panels:
        panel.ax.set_xlabel("training tokens")
        panel.ax.xaxis.set_major_formatter(lambda x, _: style.short(x))
    if len(shown):
        losses.title(size_name(shown))
    differences.legend()
    return sheet


def _shown(inputs: Inputs) -> pd.DataFrame:
    """Returns a run of each arm, of the widest model and of the seed that the most arms have."""
    runs = of_arms(inputs)
    runs = runs[(runs["arm"].map(SHOWN) == runs["E"]) | ~runs["arm"].isin(SHOWN)]
    runs = middle(widest(runs))
    return runs[runs["seed"].isin(runs["seed"].mode()[:1])]


def _curve(inputs: Inputs, run_id: str) -> tuple[Array, Array]:
    history = inputs.history(run_id)
    loss = smoothed(history["loss"].to_numpy(float))
    places = np.unique(np.linspace(SKIPPED * len(loss), len(loss) - 1, POINTS).astype(int))
    return history["tokens"].to_numpy(float)[places], loss[places]


def longer(inputs: Inputs) -> Sheet:
    """Draws how much larger the loss is beyond the trained length, by arm."""
    table, names = _named(inputs.derived("longer"))
    sheet, panel = one_panel(width=style.DOUBLE * 0.75, height=3.6)
    if not len(table):
        return panel.message("no run of this grid was evaluated on longer sequences")
    for name, rows in table.groupby("name", sort=False):
        colour = LOOKS[rows["arm"].iloc[0]]
        panel.points(str(name), rows["rise"], rows["y"], color=colour)
        panel.ax.plot(rows["rise"].mean(), rows["y"].iloc[0], "|", color=colour, markersize=14)
    _name_rows(sheet, names)
    panel.ax.set_xlabel("loss beyond the trained length\nless the validation loss (nats/token)")
    return sheet


def speed(inputs: Inputs) -> Sheet:
    """Draws the time of each arm to train (a) and generate (b) a token, and the memory (c)."""
    table = inputs.derived("speeds").rename(columns={"sweep": "arm"})
    table, names = _named(table[table["arm"].isin(ARMS)])
    sheet = Sheet(style.DOUBLE, 3.6, 3)
    times, latencies, memory = sheet.panels
    _times(times, table, RATIO)
    times.ax.set_xlabel("time a token trained\nover the dense model's")
    _times(latencies, table, ("latency_ratio", "latency_low", "latency_high"))
    latencies.ax.set_xlabel("time a token generated\nover the top-2 mixture's")
    shown = widest(table)
    left = np.zeros(len(shown))
    for column, (label, colour) in MEMORY.items():
        megabytes = shown[column].to_numpy(float) / 1e6
        sheet.record(memory.name, label, x=shown["y"], y=megabytes)
        memory.ax.barh(shown["y"], megabytes, left=left, color=colour, label=label, height=0.7)
        left = left + megabytes
    memory.ax.set_xlabel("memory of a\nstep (MB)")
    memory.ax.legend(loc="lower right", bbox_to_anchor=(1.02, 1.06), fontsize=6)
    _name_rows(sheet, names)
    if len(shown):
        memory.title(size_name(shown))
    return sheet


def _times(panel: Panel, table: pd.DataFrame, columns: Sequence[str]) -> None:
    sizes = [rows for _, rows in table.groupby(SIZE[:2])]
    for place, (mark, rows) in enumerate(zip(cycle(MARKS), sizes, strict=False)):
        shift = 0.25 * ((len(sizes) - 1) / 2 - place)  # one below the other
        name = size_name(rows)
        for row in records(rows):
            _bar(panel, f"{row['name']}, {name}", row, columns, mark, shift)
        panel.ax.plot([], [], mark, color=style.GREY, label=name)
    panel.ax.axvline(1, color=style.INK, linewidth=0.8)
    if len(sizes) > 1:
        panel.ax.legend(loc="lower right", bbox_to_anchor=(1.02, 1.0), fontsize=6)
