"""A figure as data: panels, each of them two axes and the series that are drawn on them.

A series is rows of a table. ``{COLUMN}`` in the text of a name, a label or a title stands for the
cell of the series' first row; ``{C:power}`` and ``{S:.4g}`` say how it is written.
"""

from typing import Annotated, Literal

from pydantic import BeforeValidator

from moelaws.spec.base import Count, Frozen, NonNegative, Positive, Real
from moelaws.spec.fit import Name
from moelaws.spec.references import Reference
from moelaws.spec.rows import RowExpression

Role = Literal[
    "plain", "log", "loss", "size", "compute", "sparsity", "experts", "fraction", "words"
]  # fmt: skip
Look = Literal[
    "marks", "small", "open", "ink", "grey", "published", "star", "cross", "squares", "pale",
    "dashed", "dotted", "span", "tiles", "frames", "steps",
]  # fmt: skip
NoName = Name | Literal[""]


class Axis(Frozen):
    """What an axis shows, which decides its scale, its ticks and its label.

    Words as x stand below each other at the left, and y is the horizontal axis.
    """

    role: Role = "plain"
    label: str = ""  # by default that of the role
    # The axis is as wide as the marks are, or as the marks and the curves; intervals may run off.
    tight: bool | Literal["curves"] = False


class Series(Frozen):
    """Rows of a table as marks, joined marks or a curve."""

    x: Name
    y: Name
    table: Name = "runs"  # the completed runs, or a derived table
    code: Reference | Literal[""] = ""  # in place of a table: a function that returns one
    rows: RowExpression = ""  # to draw, such as "size == total and method == surface"
    over: NoName = ""  # a column by which y is divided
    z: NoName = (
        ""  # the column that gives the colour, on the panel's scale; a curve is a filled map
    )
    predicted: NoName = ""  # a fit: adds columns predicted and held, of the runs that it knows
    curve: NoName = ""  # a fit, whose law is drawn over x in place of the rows
    beyond: Positive = 1.0  # the factor by which a curve reaches beyond the rows
    points: Count = 61  # of a curve
    # join: marks with a line through the mean at each x; mean: this line alone
    line: Literal["none", "join", "curve", "mean"] = "none"
    ends: tuple[Name, ...] = ()  # the columns of the low and of the high end
    # Columns of standard errors: the first one that all rows have is shown.
    error: tuple[Name, ...] = ()
    by: NoName = ""  # the column that gives the colour
    name: str = ""  # of the series among the plotted numbers; rows of one name are one series
    label: str = ""  # in the legend
    beside: str = ""  # written beside each mark, or at the end of a curve
    look: Look = "marks"
    hollow: str = ""  # marks are hollow, and the legend explains them so
    note: NoName = ""  # a column that says why a mark is a bound, or why y is missing
    apart: NonNegative = 0.0  # points between the first and the last series, so that bars show


def _role_alone(value: object) -> object:
    return {"role": value} if isinstance(value, str) else value


AxisSetting = Annotated[Axis, BeforeValidator(_role_alone)]


class Panel(Frozen):
    """Two axes and the series on them."""

    x: AxisSetting = Axis()
    y: AxisSetting = Axis()
    series: tuple[Series, ...]
    title: str = ""
    z: str = ""  # what the scale of colours shows
    level: Real | None = None  # a value of y to mark by a line
    equal: bool = False  # observed over predicted: both axes alike, with errors in words


class Declared(Frozen):
    """What a figure declares in place of code."""

    panels: tuple[Panel, ...] = ()
    each: NoName = ""  # a column; each of its values has these panels of its own
    legend: str = ""  # its title
    width: Positive = 3.5  # inches, of a figure of one panel
    height: Positive = 2.7  # inches, of a row of panels
    empty: str = "no run of this figure is completed"  # in place of a picture without marks

    @property
    def series(self) -> tuple[Series, ...]:
        """Returns the series of all panels."""
        return tuple(series for panel in self.panels for series in panel.series)
