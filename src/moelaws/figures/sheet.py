"""A figure that keeps its data: each plotted number goes to the CSV beside the picture."""

from collections.abc import Iterable, Sequence
from string import ascii_lowercase
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from moelaws.figures import style


class Sheet:
    """A Matplotlib figure of one or more panels, the numbers plotted on it, and its warnings."""

    def __init__(self, width: float, height: float, panels: int = 1, columns: int = 0) -> None:
        """Makes a page of ``width`` x ``height`` inches with ``panels`` in rows of ``columns``.

        By default they stand in one row.
        """
        self.figure = Figure(figsize=(width, height), layout="constrained")
        self.across = columns or panels
        shape = -(-panels // self.across), self.across
        axes = [self.figure.add_subplot(*shape, i + 1) for i in range(panels)]
        self.panels = [Panel(self, ax, ascii_lowercase[i]) for i, ax in enumerate(axes)]
        if panels > 1:
            for panel in self.panels:
                panel.ax.set_title(f"({panel.name})", loc="left")
        self.warnings: list[str] = []
        self.mark = ""  # where the losses come from, unless all were trained here
        self._records: list[pd.DataFrame] = []

    @property
    def data(self) -> pd.DataFrame:
        """Returns the plotted numbers: panel, series, x, y, low, high, z; the mark as ``data``."""
        names = ["panel", "series", "x", "y", "low", "high", "z"]
        frame = pd.concat(self._records) if self._records else pd.DataFrame(columns=names)
        frame = frame.reindex(columns=names)
        frame = frame.drop(columns="z") if frame["z"].isna().all() else frame
        return frame.assign(data=self.mark) if self.mark else frame

    def entries(self, order: Iterable[str] = ()) -> dict[str, Any]:
        """Returns the entries of a legend of all panels, label -> what is drawn.

        Those in ``order`` come first, as they are there. What is grey explains or compares, and
        comes after what is shown.
        """
        entries: dict[str, Any] = {}
        for panel in self.panels:
            handles, labels = panel.ax.get_legend_handles_labels()
            for label, handle in zip(labels, handles, strict=True):
                entries.setdefault(label, handle)
        entries = {label: entries[label] for label in order if label in entries} | entries
        return dict(sorted(entries.items(), key=lambda item: item[1].get_color() == style.GREY))

    def legend(self, title: str = "", order: Iterable[str] = (), **options: Any) -> None:
        """Sets one legend of all panels right of the first row, where it covers nothing."""
        if entries := self.entries(order):
            place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.02), "borderaxespad": 0.0}
            look = {"title": title or None, "alignment": "left", **place, **options}
            ax = self.panels[self.across - 1].ax
            ax.legend(list(entries.values()), list(entries), **look)

    def align(self) -> None:
        """Writes the label of a y axis that a whole row of panels shares at the first alone."""
        for start in range(0, len(self.panels), self.across):
            first, *others = self.panels[start : start + self.across]
            for panel in others:
                if panel.ax.get_ylabel() == first.ax.get_ylabel():
                    panel.ax.set_ylabel("")
                if panel.words and panel.words == first.words:
                    panel.ax.tick_params(labelleft=False)

    def warn(self, text: str) -> None:
        """Keeps a warning for the user, once."""
        if text not in self.warnings:
            self.warnings.append(text)

    def record(self, panel: str, series: str, **columns: ArrayLike | None) -> None:
        """Keeps the numbers of a series, as they are drawn; those that are None are left out."""
        given = {name: x for name, x in columns.items() if x is not None}
        arrays = {name: np.atleast_1d(np.asarray(x, float)) for name, x in given.items()}
        self._records.append(pd.DataFrame({"panel": panel, "series": series, **arrays}))


class Panel:
    """Axes that record what is drawn on them."""

    def __init__(self, sheet: Sheet, ax: Any, name: str) -> None:
        self.sheet, self.name = sheet, name
        self.ax: Any = ax  # matplotlib Axes
        # Words of the vertical axis stand at 0, -1, ...; y is then along the horizontal axis.
        self.words: Sequence[str] = ()

    def line(
        self,
        series: str,
        x: ArrayLike,
        y: ArrayLike,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        **options: Any,
    ) -> None:
        """Draws a curve, with a band from ``low`` to ``high`` if given."""
        self.sheet.record(self.name, series, x=x, y=y, low=low, high=high)
        (drawn,) = self.ax.plot(x, y, **options)
        if low is not None:
            self.ax.fill_between(x, low, high, color=drawn.get_color(), alpha=0.14, linewidth=0)

    def points(
        self,
        series: str,
        x: ArrayLike,
        y: ArrayLike,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        **options: Any,
    ) -> None:
        """Draws markers, with bars from ``low`` to ``high`` if given and finite."""
        x, y = np.asarray(x, float), np.asarray(y, float)
        self.sheet.record(self.name, series, x=x, y=y, low=low, high=high)
        options = {"marker": "o", "linestyle": "none", **options}
        step = -1 if self.words else 1
        (drawn,) = self.ax.plot(*(x, y)[::step], **options)
        # Matplotlib does not extend the axes' limits to marks that a transform shifts.
        self.ax.update_datalim(np.column_stack((x, y)[::step]))
        if low is not None:
            ends = np.asarray([low, high], float)
            for end in ends:
                within = np.where(np.isfinite(end), end, y)
                self.ax.update_datalim(np.column_stack((x, within)[::step]))
            top = 1e3 * np.nanmax(np.abs(y), initial=0.0)  # where an infinite bar ends
            broken = np.broadcast_arrays(*np.clip(ends, -top, top), np.nan)
            limits = self.ax.dataLim.frozen()  # an infinite bar runs out of the panel
            bars = np.repeat(x, 3), np.column_stack(broken).ravel()
            self.ax.plot(  # one line, broken by NaN between bars
                *bars[::step],
                color=drawn.get_color(),
                alpha=drawn.get_alpha(),
                linewidth=0.8,
                zorder=drawn.get_zorder() - 0.1,
                transform=drawn.get_transform(),
            )
            self.ax.dataLim.set(limits)

    @property
    def drawn(self) -> pd.DataFrame:
        """Returns the numbers plotted on this panel, as ``Sheet.data`` does."""
        data = self.sheet.data
        return data[data["panel"] == self.name]

    def key(self, label: str, **options: Any) -> None:
        """Adds an entry to the legend that explains what is drawn with these ``options``."""
        self.ax.plot([], [], label=label, **options)

    def title(self, text: str) -> None:
        """Sets the title, after the panel's letter where the sheet has several."""
        letter = f"({self.name}) " if len(self.sheet.panels) > 1 else ""
        self.ax.set_title(letter + text, loc="left")

    def message(self, text: str) -> Sheet:
        """Shows words in place of a picture, keeps them as a warning, and returns the sheet."""
        self.sheet.warn(text.replace("\n", " "))
        self.ax.text(0.5, 0.5, text, transform=self.ax.transAxes, **style.TABLE["message"])
        self.ax.set_axis_off()
        return self.sheet
