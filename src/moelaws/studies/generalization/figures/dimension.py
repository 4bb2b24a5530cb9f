"""F2, F3: intrinsic dimension of the hidden states, by layer and by relative depth."""

from __future__ import annotations

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Sheet, one_panel
from moelaws.studies.generalization.derived.dimension import MIDDLE

NOTHING = "no hidden states:\nno completed run's weights are kept"


def draw(inputs: Inputs, x: str) -> Sheet:
    """Draws the dimension over ``x``, which is layer or depth, with a line for each model."""
    table = inputs.derived("dimension")
    table = table[table["dimension"].notna()]
    sheet, panel = one_panel(style.SINGLE + 0.6)
    if not len(table):
        panel.message(NOTHING)
        return sheet
    models = table.groupby(["n_layers", "width", "D", "seed", "run_id"], sort=True)
    colours = style.ordered_colours(models.ngroups)
    many = table.drop_duplicates("run_id")["D"].nunique() > 1
    for (key, rows), colour in zip(models, colours, strict=True):
        layers, width, D, seed, _ = key
        label = f"{layers} x {width}, seed {seed}"
        label += f", {style.short(float(str(D)))}" if many else ""
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
