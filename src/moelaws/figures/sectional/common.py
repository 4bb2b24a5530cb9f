"""What the sectional paper's figures share: the shapes computed and how the two forms look."""

from __future__ import annotations

from typing import Any

from moelaws import laws
from moelaws.figures import style
from moelaws.figures.sheet import Panel
from moelaws.laws.base import Array

PRINTED, CORRECTED = "sectional.cost:printed", "sectional.cost"
FORMS = {PRINTED: "as printed", CORRECTED: "corrected"}
# As printed in grey dashes, as every published curve; corrected in ink.
LOOKS: dict[str, dict[str, Any]] = {
    PRINTED: {"linestyle": (0, (4, 2))},
    CORRECTED: {"linestyle": "-"},
}

# (L, d0): the example of the text, a shorter and a longer sequence, a narrower and a wider model.
SHAPES = ((512, 512), (4096, 512), (4096, 4096), (4096, 16384), (32768, 4096))
EXAMPLE = {"L": 4096.0, "d0": 4096.0, "alpha": 1e8}
EXPERTS = 8  # of the worked example


def evaluate(form: str, **columns: Any) -> dict[str, Array]:
    """All results of a form of the cost model at ``columns``, which broadcast."""
    return laws.get(form).evaluate({}, columns)


def shape_name(L: float, d0: float) -> str:
    """How a legend calls a shape."""
    return f"$L$ = {style.short(L)}, $d_0$ = {style.short(d0)}"


def explain_forms(panel: Panel) -> None:
    """Legend entries for the two line styles."""
    for form, name in FORMS.items():
        label = f"published ({name})" if form == PRINTED else name
        panel.ax.plot([], [], color=style.GREY, label=label, **LOOKS[form])
