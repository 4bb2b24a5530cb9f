"""A study's figures (PDF, PNG, the plotted numbers as CSV) and tables (CSV, Markdown, LaTeX)."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

from moelaws.analysis.derive import named
from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Sheet
from moelaws.figures.tabular import Tabular
from moelaws.records.files import replacing
from moelaws.spec.errors import UserError
from moelaws.spec.study import Figure, PaperTable, Study


def draw(study: Study, figure: str, inputs: Inputs, out: Path) -> list[str]:
    """Draw the study's ``figure`` from ``inputs`` to ``out`` (.pdf), PNG and CSV beside it.

    The same inputs write the same bytes. Returns what the reader should be warned of.

    Raises:
        UserError: for an unknown figure, a missing input or one that the entry does not declare.
    """
    sheet = make(study, figure, inputs)
    with replacing(out.with_suffix(".csv")) as path:
        sheet.data.to_csv(path, index=False, lineterminator="\n")
    with replacing(out.with_suffix(".png")) as path, mpl.rc_context(style.RC):
        sheet.figure.savefig(path, metadata={"Software": None})
    with replacing(out.with_suffix(".pdf")) as path, mpl.rc_context(style.RC):
        sheet.figure.savefig(path, metadata={"CreationDate": None})
    return sheet.warnings


def make(study: Study, figure: str, inputs: Inputs) -> Sheet:
    """The sheet of ``figure``, which sees of ``inputs`` only what its entry declares.

    Raises:
        UserError: as ``draw``.
    """
    entry = named(study.figures, "id", figure, f"study {study.study!r} has no figure")
    seen = inputs.only(entry.fits, entry.derived)
    with mpl.rc_context(style.RC):
        sheet: Sheet = _code(entry, study.study)(seen)
        sheet.mark = _mark(study, seen.sources)
        _tag(sheet)
    return sheet


def tabulate(study: Study, table: str, inputs: Inputs, out: Path) -> list[str]:
    """Set the study's ``table`` from ``inputs`` at ``out`` (.csv), Markdown and LaTeX beside it.

    Returns what the reader should be warned of.

    Raises:
        UserError: as ``draw``.
    """
    entry = named(study.tables, "id", table, f"study {study.study!r} has no table")
    seen = inputs.only(entry.fits, entry.derived)
    made: Tabular = _code(entry, study.study, "TABLES")(seen)
    caption = f"{entry.id}: {' '.join(entry.caption.split())}"
    made.write(out, caption, f"tab:{study.study}-{entry.id}", _mark(study, seen.sources))
    return made.warnings


def _code(entry: Figure | PaperTable, study: str, kind: str = "FIGURES") -> Any:
    """The function that makes the entry's sheet or table."""
    module = f"moelaws.figures.{study}.{entry.code}"
    where = f"{'figure' if kind == 'FIGURES' else 'table'} {entry.id!r}"
    try:
        made = getattr(importlib.import_module(module), kind, {})
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        raise UserError(f"{where}: code is {entry.code!r}; no module {module}") from None
    if entry.id not in made:
        raise UserError(f"{where}: {module} does not make it; it makes {', '.join(made)}")
    return made[entry.id]


def _tag(sheet: Sheet) -> None:
    """Say the sheet's mark on the figure's face."""
    if sheet.mark:
        sheet.figure.suptitle(
            sheet.mark, x=0.99, ha="right", fontsize=6.5, color=style.WARN, weight="bold"
        )


def _mark(study: Study, sources: Sequence[str]) -> str:
    others = [source for source in sources if source != "trained"]
    if not others:
        return ""
    mixed = " and trained" if "trained" in sources else ""
    assumed = "simulated" in sources and study.simulation and study.simulation.assumed
    return f"{' and '.join(others)}{mixed} data{', partly assumed' if assumed else ''}".upper()
