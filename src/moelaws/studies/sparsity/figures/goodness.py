"""F6a, F6b: measured losses over those predicted by Eq 6, and by the laws that it should beat."""

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.predictions import predicted, rmse
from moelaws.figures import axes, style
from moelaws.figures.axes import BUDGET
from moelaws.figures.losses import observed_over_predicted
from moelaws.figures.sheet import Panel, Sheet, one_panel
from moelaws.studies.sparsity.figures.common import colours

# Eq 6, and two laws without sparsity, of which one has the number of experts.
FITS = {"loss": "Eq 6", "chinchilla": "Chinchilla ($N_a$)", "wang": "Wang ($N_a, E$)"}


def draw(inputs: FittedInputs, held_out: bool) -> Sheet:
    """Draws the observed loss over the loss predicted by Eq 6, coloured by budget."""
    sheet, panel = one_panel()
    if _draw_runs(panel, inputs, "loss", held_out):
        holdout = inputs.spec("loss").holdout
        title = f"held-out runs ({holdout})" if held_out else "fitted runs"
        panel.ax.set_title(title, loc="left")
        panel.legend(BUDGET)
    return sheet


def baselines(inputs: FittedInputs) -> Sheet:
    """Draws the held-out runs as Eq 6 and two baselines predict them, on the same axes.

    A law whose error exceeds the range of the losses is named and not drawn: common axes would
    leave the others no room.
    """
    sheet = Sheet(style.DOUBLE, 2.4, len(FITS))
    drawn = []
    for panel, (fit, name) in zip(sheet.panels, FITS.items(), strict=True):
        panel.title(name)
        prediction = predicted(inputs, fit, inputs.table)
        error, L = rmse(prediction, prediction.held), prediction.rows["L"][prediction.held]
        if error > L.max() - L.min():
            said = f"{name} is not drawn:\nits RMSE of {error:.2g} nats"
            panel.message(f"{said}\nexceeds the range of the losses")
        elif _draw_runs(panel, inputs, fit, held_out=True):
            drawn.append(panel)
    limits = [panel.ax.get_xlim() for panel in drawn]
    for panel in drawn:
        ends = min(low for low, _ in limits), max(high for _, high in limits)
        panel.ax.set(xlim=ends, ylim=ends)
    for panel in drawn[1:]:
        panel.ax.set_ylabel("")
    if drawn:
        drawn[-1].legend(BUDGET)
    return sheet


def _draw_runs(panel: Panel, inputs: FittedInputs, fit: str, held_out: bool) -> bool:
    """Draws the runs by budget and returns whether there are any."""
    prediction = predicted(inputs, fit, inputs.table)
    rows = prediction.of(prediction.held if held_out else prediction.used)
    if not len(rows):
        holdout = inputs.spec(fit).holdout
        reason = f"none has {holdout}" if holdout else "the fit holds nothing out"
        panel.message(f"no held-out run:\n{reason}")
        return False
    observed_over_predicted(panel, {"": rows}, "C", colours(inputs, "C"), axes.power)
    return True
