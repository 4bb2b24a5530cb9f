"""A page of advice with its picture: the worst-case regret of each model that can be built."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import LogNorm

from moelaws.analysis.advice import Advice, Plans
from moelaws.analysis.advice.blocks import Block, markdown
from moelaws.figures import axes, style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.files.atomic import replacing, write_text

_LEAST = 1e-3  # nats: one colour below
_AROUND = 3.0  # times the smallest and the largest active size of the laws' plans
_MARKERS = "osD^vPX<>hd"


def write_page(out: Path, blocks: Iterable[Block], answers: Mapping[str, Advice]) -> None:
    """Writes a page as Markdown, and beside it (PNG) the picture of its ``answers`` by title."""
    picture = out.with_suffix(".png")
    sheet = draw(answers)
    with replacing(picture) as path, mpl.rc_context(style.RC):
        sheet.figure.savefig(path, metadata={"Software": None})
    link = f"[A picture]({picture.name}) shows the worst-case regret of all models of these sizes."
    write_text(out, markdown([*blocks, "", link]))


@mpl.rc_context(style.RC)
def draw(answers: Mapping[str, Advice]) -> Sheet:
    """Draws models by active size and sparsity, a panel for each titled answer.

    Their colour is the worst-case regret. Marks are the best models by each law, and the robust
    one.
    """
    sheet = Sheet(style.DOUBLE, 3.5, len(answers))
    shown = [_shown(answer) for answer in answers.values()]
    regrets = np.concatenate([worst for _, worst in shown])
    norm = LogNorm(max(_LEAST, regrets.min()), max(10 * _LEAST, regrets.max()), clip=True)
    every = [row.name for answer in answers.values() for row in answer.recommendations]
    markers = dict(zip(dict.fromkeys(every), _MARKERS, strict=False))
    for panel, (title, answer), (plans, worst) in zip(
        sheet.panels, answers.items(), shown, strict=True
    ):
        panel.title(title)
        sizes = plans.N_active, plans.S
        dots = panel.ax.scatter(
            *sizes, c=worst, cmap=style.ORDERED.reversed(), norm=norm, s=14, marker="s", linewidth=0
        )
        for row in answer.recommendations:
            _mark(panel, row.name, row.plan, marker=markers[row.name], markerfacecolor="white")
        _mark(panel, "robust", answer.robust.plan, 10, marker="*", markerfacecolor=style.WARN)
        ceiling = answer.limits.max_sparsity
        axes.sparsity(panel.ax, {*(S for S in axes.USUAL if ceiling > S), ceiling}, "y")
        axes.log(panel.ax.xaxis, "active parameters $N_a$", text=style.short)
        panel.ax.grid(False)
    drawn = [panel.ax for panel in sheet.panels]
    bar = sheet.figure.colorbar(dots, ax=drawn, pad=0.02, label="worst-case regret (nats/token)")
    bar.outline.set_visible(False)
    marks = sheet.entries()
    sheet.figure.legend([*marks.values()], [*marks], loc="outside lower center", ncols=5)
    return sheet


def _shown(answer: Advice) -> tuple[Plans, Any]:
    """Returns models of about the sizes that laws want, and their worst-case regret.

    Those of least regret come last, so that no other one hides them.
    """
    plans = answer.minimax.space.plans
    worst, sizes = answer.minimax.worst(plans), [row.plan.N_active for row in answer.rows]
    near = (plans.N_active > min(sizes) / _AROUND) & (plans.N_active < max(sizes) * _AROUND)
    order = np.argsort(-worst)
    order = order[(near & np.isfinite(worst))[order]]
    return plans.at(order), worst[order]


def _mark(panel: Panel, name: str, plan: Plans, size: float = 5.5, **options: Any) -> None:
    options |= {"markeredgecolor": style.INK, "markeredgewidth": 0.8, "zorder": 4}
    options |= {"label": name, "markersize": size}
    panel.points(name, plan.N_active, plan.S, **options)
