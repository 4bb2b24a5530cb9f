"""The entries of a study that are made of its tables and fits: tables, pictures and claims.

A figure is data: panels, each of them two axes and the series that are drawn on them. A series is
rows of a table. ``{COLUMN}`` in the text of a name, a label or a title stands for the cell of the
series' first row; ``{C:power}`` and ``{S:.4g}`` say how it is written.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from moelaws.spec.base import Count, Frozen, NonNegative, Positive, Real, text_as, text_like
from moelaws.spec.fit import Entry, Name, NoName
from moelaws.spec.measure import Expected, Measure, Reads
from moelaws.spec.references import Reference
from moelaws.spec.rows import RowExpression
from moelaws.spec.tier import Tiers

MEASURED = "moelaws.claims.measure:measured"  # the code behind all general rules
# A file below the study's package: data/runs.parquet
Shipped = Annotated[
    str,
    text_like(
        r"[A-Za-z0-9]\w{0,99}([./-]\w{1,100}){0,19}",
        "the path of a file below the study's package, such as data/runs.parquet",
    ),
]


class Reader(Entry):
    """An entry whose code reads the study's table, and the fits and derived tables it names."""

    code: Reference  # the function that makes it, below the study's package: figures.optima:draw
    arguments: dict[Name, Any] = Field({}, alias="with")  # keywords of the function
    fits: tuple[Name, ...] = ()
    derived: tuple[Name, ...] = ()

    @property
    def needs(self) -> set[str]:
        return {*self.fits, *self.derived}

    @property
    def references(self) -> tuple[str, ...]:
        """Returns the functions below the study's package that make it."""
        return (self.code,)


class Derived(Reader):
    """A table made from a study's table and fits."""

    # Whether it reads, of the runs whose weights are kept, these, hidden states, scores on tasks
    weights: bool = False
    hidden: bool = False
    scores: bool = False
    speed: Tiers = ()  # the tiers at which it reads how fast configurations train side by side
    data: tuple[Shipped, ...] = ()  # files of the study's package that it reads


Role = Literal[
    "plain", "log", "loss", "size", "compute", "sparsity", "experts", "fraction", "words"
]  # fmt: skip
Look = Literal[
    "marks", "small", "open", "ink", "grey", "published", "star", "cross", "squares", "pale",
    "dashed", "dotted", "span", "tiles", "frames", "steps",
]  # fmt: skip


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


AxisSetting = Annotated[Axis, text_as("role")]


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


class Figure(Reader, Declared):
    """A picture of the paper under the paper's name for it, such as F1a.

    Code draws it, or it declares what its panels show.
    """

    caption: str
    code: Reference | Literal[""] = ""

    @model_validator(mode="after")
    def _draws_declared_tables(self) -> Self:
        if bool(self.code) == bool(self.panels):
            raise ValueError("it must have either code or panels")
        for series in self.series:
            if series.table not in ("runs", *self.derived):
                raise ValueError(f"panels: derived must name the table {series.table!r}")
            if missing := {series.predicted, series.curve} - {"", *self.fits}:
                raise ValueError(f"panels: fits must name the fit {missing.pop()!r}")
        return self

    @property
    def references(self) -> tuple[str, ...]:
        return tuple(code for code in (self.code, *(s.code for s in self.series)) if code)


class PaperTable(Reader):
    """A table that the paper prints, under the paper's name for it, such as T3."""

    caption: str


class Claim(Reader):
    """What the paper claims, and what measures it: one of the general rules, or code."""

    statement: str  # what the paper claims, in our words
    source: str  # paper key and section, figure or equation
    rule: str  # what the code does, in a sentence or two
    code: Reference = MEASURED
    measure: Measure | None = None  # a general rule, in place of code
    reads: Reads = Reads()  # the number in a sentence, which the verdict begins with
    expect: Expected  # an interval within supports the claim, one outside contradicts it
    needed: str = ""  # what would decide the claim if these runs cannot
    null_model: NoName = ""  # of the study's nulls: runs without the claim's effect
    figure: Name  # to look at

    @model_validator(mode="after")
    def _has_one_rule(self) -> Self:
        """Returns the claim with what its general rule reads among what the claim reads."""
        own = self.code != MEASURED
        if own == bool(self.measure):
            raise ValueError("it must have either measure or code")
        if self.measure is None:
            return self
        if self.arguments:
            raise ValueError("with: it is for code; measure holds all that a general rule takes")
        tables = (*self.derived, self.measure.source)
        read = {
            "fits": tuple(dict.fromkeys((*self.fits, *self.measure.read_fits))),
            "derived": tuple(name for name in dict.fromkeys(tables) if name),
            "arguments": {"rule": self.measure},
        }
        return self.model_copy(update=read)
