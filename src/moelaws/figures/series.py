"""Figures that a study declares (``spec.series``): series of tables on panels.

A series is drawn group by group. Its rows of one name are a group, whose colour is that of the cell
of the column ``by``; the same value has the same colour in all panels.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.derive import records
from moelaws.analysis.inputs import Inputs, row_mask
from moelaws.analysis.minimum import AT_HIGH_END, AT_LOW_END, NOT_CONVEX, Array
from moelaws.figures import axes, losses, style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.spec.errors import UserError, listed, located
from moelaws.spec.references import resolve
from moelaws.spec.series import Axis, Look, Series
from moelaws.spec.series import Panel as DeclaredPanel
from moelaws.spec.study import Figure

COLUMNS = 3  # of panels on a page
# The marker of a bound, which is hollow and points to where the optimum must lie, and its legend.
BOUNDS = {
    AT_LOW_END: ("v", "bound: at or below the\nsmallest size measured"),
    AT_HIGH_END: ("^", "bound: at or above the\nlargest size measured"),
    NOT_CONVEX: ("s", "curve not convex:\nleast end shown"),
}
LOOKS: Mapping[Look, dict[str, Any]] = {
    "marks": {},
    "ink": {"color": style.INK},
    "grey": {"color": style.GREY, "linewidth": 0.8},
    "published": {**style.PUBLISHED, "linewidth": 0.8, "zorder": 1},
    "star": {"color": "#e07b00", "marker": "*", "markersize": 8, "zorder": 4},
    "cross": {"marker": "x"},
    "squares": {"marker": "s"},
    "small": {"markersize": 2.2},  # so that small errors are seen
    "pale": {"alpha": 0.35, "marker": "none"},
}
# How {COLUMN:WORD} writes a cell; other words are Python's format specifications.
WRITTEN = {"power": axes.power, "short": style.short, "percent": axes.percent}


HOLLOW: dict[str, Any] = {"markerfacecolor": "white", "linestyle": "none"}

Colours = Mapping[Any, style.Colour]  # value -> its colour
Palettes = Mapping[str, Colours]  # column -> the colours of its values


@dataclass
class Layer:
    """A declared series and its rows, with a column ``series``: the name of each."""

    declared: Series
    rows: pd.DataFrame

    @property
    def is_curve(self) -> bool:
        return self.declared.line == "curve" or bool(self.declared.curve)

    @property
    def is_measured(self) -> bool:
        """Returns whether it has rows, and no law gives them."""
        return (
            bool(len(self.rows)) and not self.declared.curve and self.declared.look != "published"
        )

    def column(self, name: str) -> "pd.Series[Any]":
        """Returns a column of the rows, or refuses a name that the table has not."""
        if name not in self.rows:
            known = listed(sorted(set(map(str, self.rows)) - {"series"}))
            raise UserError(f"the table has no column {name!r}; there are {known}")
        return self.rows[name]

    def ends(self, rows: pd.DataFrame) -> dict[str, Array]:
        """Returns the ends (n,) of the bars of some of the rows; {} without errors."""
        declared = self.declared
        if declared.ends:
            return dict(zip(("low", "high"), rows[[*declared.ends]].to_numpy(float).T, strict=True))
        whole = [name for name in declared.error if name in rows and self.rows[name].notna().all()]
        chosen = [*whole, *declared.error[-1:]][:1]  # the same for all groups
        return losses.bars(rows, chosen[0], declared.y) if chosen else {}

    def at(self, column: str, value: object) -> "Layer":
        """Returns the rows that have ``value``, or all where the table has no such column."""
        if column not in self.rows:
            return self
        return Layer(self.declared, self.rows[self.rows[column] == value])


def draw(inputs: Inputs, figure: Figure, home: str) -> Sheet:
    """Draws a declared ``figure`` of a study whose functions lie in the package ``home``.

    A UserError refuses a column that a table has not.
    """
    panels = [
        (one, layers, title)
        for panel in figure.panels
        for one, layers, title in _divided(
            panel, [_layer(inputs, figure, series, home) for series in panel.series]
        )
    ]
    n, every = max(len(panels), 1), [layer for _, layers, _ in panels for layer in layers]
    width, rows = style.DOUBLE if n > 1 else figure.width, -(-n // COLUMNS)
    sheet = Sheet(width, style.HEIGHT * rows, n, min(n, COLUMNS))
    if not any(layer.is_measured for layer in every):
        return sheet.message(figure.empty)
    palettes = {by: _palette(inputs, by, every) for by in {layer.declared.by for layer in every}}
    for panel, (declared, layers, title) in zip(sheet.panels, panels, strict=True):
        if title:
            panel.title(title)
        if any(layer.is_measured for layer in layers):
            _draw_panel(panel, declared, layers, palettes)
        else:
            panel.message(figure.empty)
    compared = [panel.ax for panel in sheet.panels if panel.ax.axison] if declared.equal else []
    limits = [ax.get_xlim() for ax in compared]
    for ax in compared:
        ends = min(low for low, _ in limits), max(high for _, high in limits)
        ax.set(xlim=ends, ylim=ends)
    sheet.align()
    sheet.legend(figure.legend)
    return sheet


def _layer(inputs: Any, figure: Figure, series: Series, home: str) -> Layer:
    """Reads the rows of a series, which are sorted by colour and x."""
    if series.code:
        rows: pd.DataFrame = resolve(home, series.code)(inputs, **figure.arguments)
    else:
        rows = inputs.completed if series.table == "runs" else inputs.derived(series.table)
    with located(f"{figure.name}: {series.code or series.table}"):
        if series.predicted:
            rows = resolve("moelaws.figures", "fitted:with_predictions")(
                inputs, series.predicted, rows
            )
        rows = rows[row_mask(rows, series.rows)]
        if series.curve and len(rows):
            rows = resolve("moelaws.figures", "fitted:curves")(inputs, series, rows)
        layer = Layer(series, rows)
        for name in (series.x, series.y, series.over, series.by, *series.ends):
            if name:
                layer.column(name)
        if series.over:
            # Two counts that are equal but for rounding give one ratio.
            rows = rows.assign(**{series.y: (rows[series.y] / rows[series.over]).round(9)})
            rows = rows.drop_duplicates([series.by, series.x, series.y])
        rows = rows.sort_values([name for name in (series.by, series.x) if name], kind="stable")
        names = [write(series.name, row) for row in records(rows)]
    return Layer(series, rows.assign(series=names))


def write(text: str, row: Any) -> str:
    """Returns ``text`` with the cells of ``row`` in place of their columns' names in braces."""

    def cell(match: re.Match[str]) -> str:
        name, form = match[1], match[2] or ""
        if name not in row:
            raise UserError(f"{text!r} names {name}, which is no column; there are {listed(row)}")
        return WRITTEN[form](row[name]) if form in WRITTEN else format(row[name], form)

    return re.sub(r"\{([A-Za-z]\w*):?([^{}]*)\}", cell, text)


def _divided(
    panel: DeclaredPanel, layers: list[Layer]
) -> Iterator[tuple[DeclaredPanel, list[Layer], str]]:
    """Yields the panel, or one for each value of the column ``each``, with its rows and title."""
    if not panel.each:
        yield panel, layers, panel.title
        return
    columns = [layer.rows[panel.each] for layer in layers if panel.each in layer.rows]
    for value in sorted(set(pd.concat(columns))) if columns else ():
        own = [layer.at(panel.each, value) for layer in layers]
        yield panel, own, write(panel.title, {panel.each: value})


def _palette(inputs: Inputs, by: str, layers: list[Layer]) -> Colours:
    """Returns a colour for each value of a column: of all completed runs, if these have it."""
    if not by:
        return {}
    if inputs.frame is not None and by in inputs.frame:
        return style.palette(inputs.completed[by].dropna())
    return style.palette(pd.concat([own.column(by) for own in layers if own.declared.by == by]))


def _draw_panel(
    panel: Panel, declared: DeclaredPanel, layers: list[Layer], palettes: Palettes
) -> None:
    for layer in layers:
        _draw_layer(panel, layer, palettes[layer.declared.by])
    if declared.level is not None:
        look = {"color": style.GREY, "linewidth": 0.8, "linestyle": style.DASHES, "zorder": 0.5}
        panel.ax.axhline(declared.level, **look)
    if declared.equal:
        _compare(panel, declared, layers)
        return
    for which, axis in (("x", declared.x), ("y", declared.y)):
        _set_axis(panel, which, axis, layers)


def _draw_layer(panel: Panel, layer: Layer, colours: Colours) -> None:
    """Draws the groups of one series, those with bars side by side."""
    declared, look = layer.declared, LOOKS[layer.declared.look]
    groups = [rows for _, rows in layer.rows.groupby("series", sort=False)]
    for i, rows in enumerate(groups):
        first = rows.iloc[0]
        colour = _nearest(colours, first[declared.by]) if declared.by else style.ORDERED(0.0)
        options = {"color": colour, **look}
        label = write(declared.label, first)
        if layer.is_curve:
            x, y, ends = rows[declared.x], rows[declared.y], layer.ends(rows)
            panel.line(first["series"], x, y, **ends, **options, label=label or None)
            continue
        options |= {"transform": panel.beside(i, len(groups), declared.apart * (len(groups) - 1))}
        _draw_marks(panel, layer, rows, options)
        if label:
            joined = {"linewidth": 0.9 if declared.line == "join" else 0.0}
            panel.key(label, **{"marker": "o", "color": colour, **look}, **joined)
    if declared.hollow and groups:
        panel.key(declared.hollow, marker="o", color=style.GREY, **HOLLOW)


def _draw_marks(panel: Panel, layer: Layer, rows: pd.DataFrame, options: dict[str, Any]) -> None:
    """Draws one group: marks of bounds are hollow, and what has no y is named in a warning."""
    declared = layer.declared
    series, x, y, note = rows["series"].iloc[0], declared.x, declared.y, declared.note
    known = rows[rows[y].notna()]
    if declared.line == "join":
        mean = known.groupby(x)[y].mean()
        line = {name: options[name] for name in ("color", "transform")}
        panel.ax.plot(mean.index, mean.to_numpy(), **line, linewidth=0.9, zorder=2)
    notes = known[note].fillna("").astype(str) if note else pd.Series("", known.index)
    for why in sorted(set(notes)):
        own = known[notes == why]
        face = HOLLOW if why or declared.hollow else {} if declared.line == "join" else style.EDGE
        shape = {"marker": BOUNDS.get(why, ("s", ""))[0]} if why else {}
        name = f"{series} ({why})" if why else series
        look = {"zorder": 3, "marker": "o", **options, **shape, **face}
        panel.points(name, own[x], own[y], **layer.ends(own), **look)
        if why:
            words = BOUNDS.get(why, ("", why))[1]
            panel.key(words, color=style.GREY, **shape, **HOLLOW)
    if not note and known.empty:
        panel.sheet.warn(f"{series} is left out: it has no {y}")
    for row in records(rows[rows[y].isna()]) if note else ():
        panel.sheet.warn(f"{series}, {x}={row[x]:g}: no {y}: {row[note]}")


def _nearest(colours: Colours, value: Any) -> style.Colour:
    """Returns the colour of a value, which a table may hold up to rounding."""
    if value in colours:
        return colours[value]
    return colours[min(colours, key=lambda known: abs(known - value))]


def _compare(panel: Panel, declared: DeclaredPanel, layers: list[Layer]) -> None:
    """Makes both axes alike and writes the errors of predictions, unless these are far off."""
    every = pd.concat([layer.rows for layer in layers])
    error = float(np.sqrt(np.mean((every["L"] - every["predicted"]) ** 2)))
    if len(every) > 1 and error > np.ptp(every["L"]):
        panel.ax.clear()
        said = f"{declared.title} is not drawn:\nits RMSE of {error:.2g} nats"
        panel.message(f"{said}\nexceeds the range of the losses")
        return
    lines: list[str] = []
    for layer in layers:
        if len(layer.rows):
            first, *others = losses.error_lines(layer.rows)
            kind = f"{layer.declared.hollow or 'fitted'}: " if len(layers) > 1 else ""
            lines += [kind + first, *others]
    losses.equal_axes(panel, every)
    losses.write_statistics(panel, lines)


def _set_axis(panel: Panel, which: str, declared: Axis, layers: list[Layer]) -> None:
    """Gives an axis the scale, the ticks and the label of its role."""
    axis, name = getattr(panel.ax, f"{which}axis"), getattr(layers[0].declared, which)
    marks = [getattr(layer.declared, which) for layer in layers]
    pairs = zip(marks, layers, strict=True)
    values = [v for column, layer in pairs if layer.is_measured for v in layer.rows[column]]
    if declared.tight:
        panel.ax.set(**{f"{which}scale": "log"})
        shown = panel.drawn[which]
        panel.ax.set(**{f"{which}lim": (shown.min() / 1.3, shown.max() * 1.5)})
    match declared.role:
        case "sparsity":
            axes.sparsity(panel.ax, values, which)
        case "experts":
            axes.experts(panel.ax, values, declared.label or "experts $E$")
        case "compute" | "budget":
            words = {"compute": axes.COMPUTE, "budget": axes.BUDGET}[declared.role]
            axes.compute(axis, values, declared.label or words)
        case "size":
            axes.size(axis, declared.label or style.size_label(name))
        case "fraction":
            axes.log(axis, declared.label, axes.every_other(values), axes.percent)
        case "log":
            axes.log(axis, declared.label)
        case "loss":
            axis.set_label_text(declared.label or axes.LOSS)
        case "plain":
            axis.set_label_text(declared.label)
    if declared.zero:
        panel.ax.set(**{f"{which}lim": (0, None)})
