"""Figures that a study declares (``spec.readers``): series of tables on panels.

A series is drawn group by group. Its rows of one name are a group, whose colour is that of the cell
of the column ``by``; the same value has the same colour in all panels.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import offset_copy
from pandas.api.types import is_numeric_dtype

from moelaws.analysis.derive import records
from moelaws.analysis.inputs import Inputs, row_mask
from moelaws.analysis.minimum import AT_HIGH_END, AT_LOW_END, NOT_CONVEX, Array
from moelaws.figures import axes, style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.spec.errors import UserError, listed, located
from moelaws.spec.readers import Axis, Figure, Series
from moelaws.spec.readers import Panel as DeclaredPanel
from moelaws.spec.references import resolve

# Code of fits is named and not imported, so that figures without fits do not depend on it.
FIGURES = "moelaws.figures"
ROW = 0.8  # height of a row of panels among several, over that of one alone
ROWS = 6  # at most, on a page
PLACE = "place of words"  # the column of x in place of words
COLUMNS = 3  # at most so many panels stand side by side, if each value of a column has a panel
# The marker of a bound, which is hollow and points to where the optimum must lie, and its legend.
BOUNDS = {
    AT_LOW_END: ("v", "bound: at or below the\nsmallest size measured"),
    AT_HIGH_END: ("^", "bound: at or above the\nlargest size measured"),
    NOT_CONVEX: ("s", "curve not convex:\nleast end shown"),
}
CROWDED = 20  # marks of a series, beyond which each has a white edge
HOLLOW: Any = style.TABLE["hollow"]
# How {COLUMN:WORD} writes a cell; other words are Python's format specifications.
WRITTEN = {"power": axes.power, "short": style.short, "percent": axes.percent}

# A series with its rows, which have a column ``series`` with the name of their group.
Layer = tuple[Series, pd.DataFrame]
Colours = Mapping[Any, style.Colour]  # value -> its colour


def draw(inputs: Inputs, figure: Figure, home: str) -> Sheet:
    """Draws a declared ``figure`` of a study whose functions lie in the package ``home``.

    A UserError refuses a column that a table has not.
    """
    read = [[(s, _rows(inputs, figure, s, home)) for s in panel.series] for panel in figure.panels]
    every = [layer for layers in read for layer in layers]
    if not _are_measured(every):
        return Sheet(figure.width, style.HEIGHT).panels[0].message(figure.empty)
    known = [rows[figure.each] for _, rows in every if figure.each in rows]
    values = style.in_order(pd.concat(known)) if figure.each else [None]
    panels, across = [*zip(figure.panels, read, strict=True)], len(figure.panels)
    room = ROWS * (COLUMNS if across == 1 else 1)
    beyond, values = values[room:], values[:room]
    n = len(values) * across
    if not 1 < across <= COLUMNS:
        across = -(-n // -(-n // COLUMNS))  # rows of equal length, or nearly so
    width = figure.width if n == 1 else style.DOUBLE
    down = -(-n // across)
    sheet = Sheet(width, figure.height * (1 if down == 1 else ROW * down), n, across)
    colours = {s.by: _palette(inputs, figure, s.by, every) for s, _ in every if s.by}
    places = ((value, *place) for value in values for place in panels)
    for panel, (value, declared, layers) in zip(sheet.panels, places, strict=True):
        own = _of_value(layers, figure.each, value)
        # A panel without rows has its title from the rows that another panel has of its value.
        titled = own + _of_value(every, figure.each, value)
        first = next((rows.iloc[0] for _, rows in titled if len(rows)), None)
        if declared.title and first is not None:
            panel.title(write(declared.title, first))
        if declared.x.role == "words":
            panel.words = style.in_order(pd.concat([rows[s.x] for s, rows in layers]))
        if _are_measured(own):
            _draw_panel(panel, declared, own, colours)
        else:
            panel.message(figure.empty)
    if beyond:
        sheet.warn(f"{listed(beyond)} are not shown: a page has room for {room}")
    if figure.panels[0].equal:  # comparisons have the same axes
        compared = [panel.ax for panel in sheet.panels if panel.ax.axison]
        limits = np.array([ax.get_xlim() for ax in compared])
        for ax in compared:
            ax.axis([limits.min(), limits.max()] * 2)
    sheet.align()
    firsts = ((s, records(rows.drop_duplicates("series"))) for s, rows in every)
    order = [write(s.label, first) for s, rows in firsts for first in rows]
    sheet.legend(figure.legend, order, **(style.TABLE["above"] if figure.panels[-1].z else {}))
    return sheet


def _rows(inputs: Any, figure: Figure, series: Series, home: str) -> pd.DataFrame:
    """Reads the rows of a series, which are sorted by colour and x."""
    x, y = series.x, series.y
    if series.code:
        made = resolve(home, series.code)(inputs, **figure.arguments)
        rows = made if isinstance(made, pd.DataFrame) else pd.concat(made)
    else:
        own = series.table in figure.derived
        rows = inputs.derived(series.table) if own else inputs.completed
    with located(f"{figure.name}: {series.code or series.table}"):
        if series.predicted:
            rows = resolve(FIGURES, "fitted:with_predictions")(inputs, series.predicted, rows)
        if len(rows):  # a column without cells has neither words nor numbers
            rows = rows[row_mask(rows, series.rows)]
        if series.curve and len(rows):
            rows = resolve(FIGURES, "fitted:curves")(inputs, series, rows)
        named = (x, y, series.over, series.z, series.by, series.note, *series.ends)
        for name in filter(None, named):
            if name not in rows:
                raise UserError(f"the table has no column {name!r}; there are {listed(rows)}")
        if series.over:
            # Two counts that are equal but for rounding give one ratio.
            rows = rows.assign(**{y: (rows[y] / rows[series.over]).round(9)})
            rows = rows.drop_duplicates([series.by, x, y])
        if is_numeric_dtype(rows[x]):
            rows = rows.sort_values(x, kind="stable")
        if series.by:  # in the order of the colours
            places = {v: i for i, v in enumerate(style.in_order(rows[series.by]))}
            order = rows[series.by].map(places).to_numpy(float)
            rows = rows.iloc[np.argsort(order, kind="stable")]
        rows = rows.assign(series=[write(series.name, row) for row in records(rows)])
        if series.line == "mean":
            cells = ["series", x] + [figure.each] * (figure.each in rows)
            rows = rows.assign(**{y: rows.groupby(cells)[y].transform("mean")})
            rows = rows.drop_duplicates(cells)
        return rows


def write(text: str, row: Any) -> str:
    """Returns ``text`` with the cells of ``row`` in place of their columns' names in braces."""

    def cell(match: re.Match[str]) -> str:
        name, form = match[1], match[2] or ""
        if name not in row:
            raise UserError(f"{text!r} names {name}, which is no column; there are {listed(row)}")
        return WRITTEN[form](row[name]) if form in WRITTEN else format(row[name], form)

    return re.sub(r"\{([A-Za-z]\w*):?([^{}]*)\}", cell, text)


def _of_value(layers: Iterable[Layer], each: str, value: Any) -> list[Layer]:
    """Returns the layers with the rows of one ``value`` of the column ``each``, where it is."""
    return [(s, rows[rows[each] == value] if each in rows else rows) for s, rows in layers]


def _are_measured(layers: Iterable[Layer]) -> bool:
    """Returns whether one of them has a number that no law gives."""
    return any(_is_own(series) and rows[series.y].notna().any() for series, rows in layers)


def _is_own(series: Series) -> bool:
    return not series.curve and series.look != "published"


def _palette(inputs: Inputs, figure: Figure, by: str, every: Iterable[Layer]) -> Colours:
    """Returns a colour for each value of a column: of all in the first table that has those shown.

    So a value keeps its colour in figures that show some of the rows alone.
    """
    values = pd.concat([rows[by] for series, rows in every if series.by == by])
    if values.dtype == "category":
        return style.palette(values)
    tables = [] if inputs.frame is None else [inputs.completed]
    tables += [inputs.derived(name) for name in figure.derived]
    known = (table[by] for table in tables if by in table)
    return style.palette(next((whole for whole in known if set(values) <= set(whole)), values))


def _draw_panel(
    panel: Panel,
    declared: DeclaredPanel,
    layers: Sequence[Layer],
    colours: Mapping[str, Colours],
) -> None:
    words = panel.words
    if coloured := [layer for layer in layers if layer[0].z]:
        _draw_colours(panel, declared.z, coloured)
    for series, rows in layers:
        if series.z:
            continue
        if words:
            rows = rows.assign(**{PLACE: [-words.index(word) for word in rows[series.x]]})
            series = series.model_copy(update={"x": PLACE})
        _draw_series(panel, series, rows, colours.get(series.by, {}))
    if declared.level is not None:
        look = style.LOOKS["published"] | {"zorder": 0.5}
        (panel.ax.axvline if words else panel.ax.axhline)(declared.level, **look)
    if declared.equal:
        _compare(panel, declared, layers)
        return
    if words:
        panel.ax.set(xlabel=declared.y.label, ylim=(0.5 - len(words), 0.5))
        panel.ax.set_yticks(-np.arange(len(words)), words)
        panel.ax.grid(axis="y", visible=False)
        return
    _set_axis(panel, "x", declared.x, layers)
    _set_axis(panel, "y", declared.y, layers, declared.level)


def _draw_colours(panel: Panel, label: str, layers: Sequence[Layer]) -> None:
    """Draws series on one scale of colours: marks, or a filled map of a square grid of rows."""
    every = pd.concat([rows[series.z] for series, rows in layers])
    look = {"cmap": style.ORDERED, "norm": Normalize(every.min(), every.max())}
    for series, rows in layers:
        grid = rows.sort_values([series.y, series.x])
        x, y, z = (grid[name].to_numpy(float) for name in (series.x, series.y, series.z))
        panel.sheet.record(panel.name, rows["series"].iloc[0], x=x, y=y, z=z)
        if series.line == "curve":
            mesh = [values.reshape(round(len(x) ** 0.5), -1) for values in (x, y, z)]
            filled = panel.ax.contourf(*mesh, levels=14, **look)
            panel.ax.contour(*mesh, levels=filled.levels, colors="white", linewidths=0.3)
            bar = panel.sheet.figure.colorbar(filled, ax=panel.ax, pad=0.02, label=label)
            bar.outline.set_visible(False)
        else:
            panel.ax.scatter(x, y, c=z, s=16, edgecolors="white", linewidths=0.6, zorder=3, **look)
    panel.ax.use_sticky_edges = False  # marks at a map's edge are drawn whole
    panel.ax.grid(False)


def _draw_series(panel: Panel, series: Series, every: pd.DataFrame, colours: Colours) -> None:
    """Draws the groups of a series, those with bars side by side."""
    groups = [rows for _, rows in every.groupby("series", sort=False)]
    for i, rows in enumerate(groups):
        first = rows.iloc[0]
        value = first[series.by] if series.by else ""
        look: dict[str, Any] = {"color": colours.get(value, style.ORDERED(0.0)), "marker": "o"}
        if series.by and isinstance(value, str):
            look["marker"] = style.MARKERS[[*colours].index(value) % len(style.MARKERS)]
        look |= style.LOOKS[series.look]
        label = write(series.label, first)
        if series.line in ("curve", "mean") or series.curve:
            look["marker"] = "none"
            ends = _ends(series, every, rows)
            name = first["series"]
            panel.line(name, rows[series.x], rows[series.y], **ends, **look, label=label or None)
            _write_beside(panel, series, rows.tail(1))
            continue
        points = series.apart * (i - (len(groups) - 1) / 2)  # beside the other groups
        place = offset_copy(panel.ax.transData, panel.sheet.figure, points, units="points")
        _draw_marks(panel, series, every, rows, look | {"transform": place})
        if label:
            joined = 0.9 if series.line == "join" else 0.0
            panel.key(label, **look | {"linewidth": joined})
    if series.hollow and groups:
        panel.key(series.hollow, **{"marker": "o", **look, "color": style.GREY, **HOLLOW})


def _draw_marks(
    panel: Panel, series: Series, every: pd.DataFrame, rows: pd.DataFrame, look: dict[str, Any]
) -> None:
    """Draws one group: marks of bounds are hollow, and what has no y is named in a warning."""
    name, x, y, note = rows["series"].iloc[0], series.x, series.y, series.note
    known = rows[rows[y].notna()]
    if series.line == "join":
        mean = known.groupby(x)[y].mean()
        line = {key: look[key] for key in ("color", "transform")}
        panel.ax.plot(mean.index, mean.to_numpy(), **line, linewidth=0.9, zorder=2)
    notes = known[note].fillna("").astype(str) if note else pd.Series("", known.index)
    for why in sorted(set(notes)):
        own = known[notes == why]
        crowded = len(every) > CROWDED and series.look != "open"
        face = HOLLOW if why or series.hollow else style.TABLE["edge"] if crowded else {}
        shape, words = BOUNDS.get(why, ("s", why))
        bound = {"marker": shape, "markersize": 5} if why else {}
        options = {"zorder": 3, "marker": "o", **face, **look, **bound}
        title = f"{name} ({why})" if why else name
        panel.points(title, own[x], own[y], **_ends(series, every, own), **options)
        _write_beside(panel, series, own)
        if why:
            panel.key(words, color=style.GREY, **bound, **HOLLOW)
    if not note and known.empty:
        panel.sheet.warn(f"{name} is left out: it has no {y}")
    for row in records(rows[rows[y].isna()]) if note else ():
        panel.sheet.warn(f"{name}, {x}={row[x]:g}: no {y}: {row[note]}")


def _write_beside(panel: Panel, series: Series, rows: pd.DataFrame) -> None:
    place = {"textcoords": "offset points", "xytext": (4, 3), "fontsize": 5.5}
    for row in records(rows) if series.beside else ():
        at = row[series.x], row[series.y]
        panel.ax.annotate(write(series.beside, row), at, **place, color=style.INK)


def _ends(series: Series, every: pd.DataFrame, rows: pd.DataFrame) -> dict[str, Array]:
    """Returns the ends (n,) of the bars of a group; {} without errors."""
    if series.ends:
        return dict(zip(("low", "high"), rows[[*series.ends]].to_numpy(float).T, strict=True))
    whole = [name for name in series.error if name in every and every[name].notna().all()]
    for name in [*whole, *series.error[-1:]][:1]:  # the same for all groups
        if name in rows and np.isfinite(rows[name].to_numpy(float)).any():
            y, se = (rows[column].to_numpy(float) for column in (series.y, name))
            return {"low": y - se, "high": y + se}
    return {}


def _compare(panel: Panel, declared: DeclaredPanel, layers: Sequence[Layer]) -> None:
    """Makes both axes alike and writes the errors of predictions; among others none far off."""
    shown = [(series.hollow or "fitted", rows) for series, rows in layers if len(rows)]
    every = pd.concat([rows for _, rows in shown])
    error = _rmse(every)
    # The panels have the same axes, and such predictions would leave the others no room.
    if len(panel.sheet.panels) > 1 and error > np.ptp(every["L"]):
        panel.ax.clear()
        said = f"{declared.title} is not drawn:\nits RMSE of {error:.2g} nats"
        panel.message(f"{said}\nexceeds the range of the losses")
        return
    lines = []
    for kind, rows in shown:
        first, *others = error_lines(rows)
        lines += [f"{kind}: {first}" if len(layers) > 1 else first, *others]
    both = every[["predicted", "L"]].to_numpy(float)
    beyond = 0.05 * float(np.ptp(both)) or 0.01
    low, high = float(both.min()) - beyond, float(both.max()) + beyond
    panel.ax.axline((low, low), (high, high), **style.LOOKS["published"])
    panel.ax.axis([low, high, low, high])
    panel.ax.set(xlabel="predicted loss (nats/token)", ylabel="observed loss (nats/token)")
    for axis in (panel.ax.xaxis, panel.ax.yaxis):
        axis.set_major_locator(MaxNLocator(5))
    # In the upper left corner, where few predictions lie
    at = panel.ax.transAxes
    panel.ax.text(0.04, 0.97, "\n".join(lines), transform=at, va="top", fontsize=6.5)


def error_lines(rows: pd.DataFrame) -> list[str]:
    """Returns the number of ``rows``, the error of their ``predicted`` losses, and its R2."""
    n, L = len(rows), rows["L"]
    error = _rmse(rows)
    lines = [f"$n$ = {n}", f"RMSE = {error:.3g} nats"]
    spread = float(np.sum((L - L.mean()) ** 2))
    if spread > 0 and n > 2:
        lines.append(f"$R^2$ = {1 - n * error**2 / spread:.4f}")
    return lines


def _rmse(rows: pd.DataFrame) -> float:
    return float(np.sqrt(np.mean((rows["L"] - rows["predicted"]) ** 2)))


def _set_axis(
    panel: Panel,
    which: str,
    declared: Axis,
    layers: Sequence[Layer],
    level: float | None = None,
) -> None:
    """Gives an axis the scale, the ticks and the label of its role."""
    axis = getattr(panel.ax, f"{which}axis")
    label = declared.label or style.TABLE["labels"].get(declared.role, "")
    own = [layer for layer in layers if _is_own(layer[0])]
    marks = [layer for layer in own if layer[0].line != "curve"]
    values = pd.concat([rows[getattr(series, which)] for series, rows in marks or own]).dropna()
    if declared.tight:
        is_log = declared.role not in ("plain", "loss")
        shown = panel.drawn[which].dropna() if declared.tight == "curves" else values
        v = shown if level is None else np.append(shown, level)
        v = np.log(v) if is_log else v
        beyond = 0.08 * np.ptp(v) + 0.3 * is_log
        ends = np.array([v.min() - beyond, v.max() + beyond])
        panel.ax.set(**{f"{which}scale": "log" if is_log else "linear"})
        panel.ax.set(**{f"{which}lim": np.exp(ends) if is_log else ends})
    match declared.role:
        case "sparsity":
            shown = values if marks else panel.drawn[which].dropna()  # published curves, too
            axes.sparsity(panel.ax, shown, which, label)
        case "experts":
            axes.experts(panel.ax, values, label)
        case "compute":
            axes.compute(axis, values, label)
        case "size":
            axes.log(axis, label or style.size_label(str(values.name)), text=style.short)
        case "fraction":
            axes.log(axis, label, axes.every_other(values), axes.percent)
        case "log":
            axes.log(axis, label, text=axes.power)
        case _:
            axis.set_label_text(label)
