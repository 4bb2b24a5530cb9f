"""Draw one figure of a study: PDF, PNG and the plotted numbers as CSV."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl

from moelaws.analysis.derive import named
from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Sheet
from moelaws.records.files import replacing
from moelaws.spec.errors import UserError
from moelaws.spec.study import Figure, Study


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
        sheet = _code(entry, study.study)(seen)
        _tag(sheet, seen.sources)
    return sheet


def _code(figure: Figure, study: str) -> Callable[[Inputs], Sheet]:
    module = f"moelaws.figures.{study}.{figure.code}"
    try:
        figures: dict[str, Callable[[Inputs], Sheet]] = importlib.import_module(module).FIGURES
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        raise UserError(
            f"figure {figure.id!r}: code is {figure.code!r}; no module {module}"
        ) from None
    if figure.id not in figures:
        raise UserError(
            f"figure {figure.id!r}: {module} does not draw it; it draws {', '.join(figures)}"
        )
    return figures[figure.id]


def _tag(sheet: Sheet, sources: Sequence[str]) -> None:
    """Say on the figure's face where its losses come from, unless all were trained here."""
    others = [source for source in sources if source != "trained"]
    if not others:
        return
    mixed = " and trained" if "trained" in sources else ""
    sheet.figure.suptitle(
        f"{' and '.join(others)}{mixed} data".upper(),
        x=0.99,
        ha="right",
        fontsize=6.5,
        color=style.WARN,
        weight="bold",
    )
