"""The figure of training curves, and what it shares with the figures that read fits."""

from collections.abc import Iterable

from moelaws.analysis.inputs import Inputs
from moelaws.figures import axes, style
from moelaws.figures.axes import VALIDATION_LOSS
from moelaws.figures.sheet import Sheet
from moelaws.studies.routing.routers import DENSE, main_runs

EXPERTS = "experts"
FIRST = 5e9  # tokens, before which all curves fall steeply


def expert_label(E: float) -> str:
    return "1 (dense)" if E == 1 else f"{E:g}"


def label_sizes(sheet: Sheet, sizes: Iterable[object], x: str, legend: str) -> None:
    """Labels a sheet of three columns that has a panel for each base size."""
    for place, (panel, size) in enumerate(zip(sheet.panels, sizes, strict=True)):
        panel.title(f"{size} base parameters")
        if place % 3 == 0:
            panel.ax.set_ylabel(VALIDATION_LOSS)
        if place >= 3:
            panel.ax.set_xlabel(x)
    sheet.panels[2].legend(legend)


def curves(inputs: Inputs, router: str) -> Sheet:
    """Draws the losses of a router's runs and of the dense model over tokens."""
    curves = main_runs(inputs.derived("curves"))
    curves = curves[curves["router"].isin([router, DENSE]) & (curves["D"] >= FIRST)]
    order = inputs.completed.groupby("size")["N_dense"].first().sort_values()
    sheet = Sheet(style.DOUBLE, 4.2, len(order), columns=3)
    colours = style.palette(curves["E"])
    for panel, size in zip(sheet.panels, order.index, strict=True):
        own = curves[curves["size"] == size]
        for E, colour, of_E in style.groups(own, "E", colours):
            for i, (run, rows) in enumerate(of_E.groupby("run_id")):
                label = expert_label(E) if i == 0 else None
                panel.line(f"E={E:g}, run {run}", rows["D"], rows["L"], color=colour, label=label)
        axes.log(panel.ax.xaxis, "", [5e9, 1e10, 2e10, 5e10, 1e11], style.short)
    label_sizes(sheet, order.index, "training tokens", EXPERTS)
    return sheet
