"""An answer on one page: words, the regret of all models, and what the answer depends on."""

import io
import textwrap
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np

from moelaws.analysis.advice import Advice, Constraints
from moelaws.figures import style
from moelaws.figures.advice import draw_regret
from moelaws.figures.sheet import Panel, Sheet
from moelaws.files.atomic import replacing
from moelaws.laws.base import Array
from moelaws.spec.errors import UserError

_BUDGETS = 10 ** np.linspace(-1, 1, 9)  # factors of the budget, and of the model's parameters below
_MEMORIES = 2.0 ** np.arange(-4, 2)
_COLUMNS = 118  # characters of a line of words

Ask = Callable[[Constraints], Advice]


@mpl.rc_context(style.RC)
def one_page(answer: Advice, ask: Ask, lines: Sequence[str], price: float) -> Sheet:
    """Draws the page; ``ask`` answers by other limits, ``price`` is that of a GPU's hour."""
    wrapped = [part for line in lines for part in textwrap.wrap(line, _COLUMNS)]
    above = 0.2 + 0.16 * len(wrapped)  # inches
    sheet = Sheet(style.DOUBLE, 6.2 + above, 4, columns=2)
    top = 1 - above / (6.2 + above)
    sheet.figure.set_layout_engine("constrained", rect=(0, 0, 1, top))
    sheet.figure.text(0.01, 0.995, "\n".join(wrapped), va="top", fontsize=7.5, linespacing=1.4)
    regret, budgets, memories, served = sheet.panels
    draw_regret([regret], [answer])
    regret.title("worst regret over size and sparsity")
    _sensitivity(budgets, ask, [
        (x * answer.limits.compute, replace(answer.limits, compute=x * answer.limits.compute))
        for x in _BUDGETS
    ])  # fmt: skip
    budgets.title("over the budget")
    budgets.ax.set_xlabel("budget (FLOP)")
    total = float(answer.robust.plan.N)
    _sensitivity(memories, ask, [
        (x * total, replace(answer.limits, max_parameters={"a limit": x * total}))
        for x in _MEMORIES
    ])  # fmt: skip
    memories.title("over a limit of total parameters")
    memories.ax.set_xlabel("parameters that memory holds")
    style.size_axis(memories.ax.xaxis, "parameters that memory holds")
    memories.ax.legend(loc="upper left")
    _serving(served, answer, price)
    marks = regret.ax.get_legend_handles_labels()
    sheet.figure.legend(*marks, loc="outside lower center", ncols=5, title="(a)")
    return sheet


def _sensitivity(panel: Panel, ask: Ask, cases: Sequence[tuple[float, Constraints]]) -> None:
    """Draws total and active parameters of the answer by other limits, where there is one."""
    found = []
    for x, limits in cases:
        with suppress(UserError):  # no law judges it, or no model keeps to it
            plan = ask(limits).robust.plan
            found.append((x, float(plan.N), float(plan.N_active)))
    at, *sizes = np.array(found, float).reshape(-1, 3).T
    looks = (("total", style.INK, "o"), ("active", style.WARN, "s"))
    for (name, colour, mark), y in zip(looks, sizes, strict=True):
        panel.line(f"{name} parameters", at, y, color=colour, marker=mark, ms=3, lw=0.9, label=name)
    panel.ax.set(xscale="log", yscale="log", ylabel="parameters of the answer")
    style.size_axis(panel.ax.yaxis, "parameters of the answer")


def _serving(panel: Panel, answer: Advice, price: float) -> None:
    """Draws the least worst regret of models that cost no more to serve than so much."""
    plans, worst = answer.minimax.space.plans, answer.minimax.worst(answer.minimax.space.plans)
    order = np.argsort(plans.N_active)
    order = order[np.isfinite(worst[order])]
    least: Array = np.minimum.accumulate(worst[order])
    device = answer.limits.device
    speed = device.flops_per_second if device else np.nan
    dollars = 2e6 * plans.N_active[order] / speed / 3600 * price
    falls = np.append(True, np.diff(least) < 0)
    panel.line("least worst regret", dollars[falls], least[falls], color=style.INK, lw=1.0,
               drawstyle="steps-post")  # fmt: skip
    own = 2e6 * float(answer.robust.plan.N_active) / speed / 3600 * price
    panel.points("robust", own, answer.robust.worst, marker="*", ms=10, color=style.WARN)
    panel.ax.set(xscale="log", yscale="log", xlabel="dollars for 1M served tokens (products alone)")
    panel.ax.set_ylabel("least worst regret (nats/token)")
    panel.title("over the cost of serving")


def write_page(sheet: Sheet, out: Path) -> None:
    """Writes the page as PDF, or as HTML with the picture in it."""
    with replacing(out) as path, mpl.rc_context({**style.RC, "svg.fonttype": "none"}):
        if out.suffix == ".pdf":
            sheet.figure.savefig(path, format="pdf", metadata={"CreationDate": None})
            return
        picture = io.StringIO()
        sheet.figure.savefig(picture, format="svg", metadata={"Date": None})
        path.write_text(
            f"<!doctype html><meta charset=utf-8><title>How to spend the budget</title>\n"
            f"<style>svg {{ width: 100%; max-width: 60em; height: auto }}</style>\n"
            f"{picture.getvalue().partition('?>')[2]}\n"
        )
