"""A study's figures (PDF, PNG, the plotted numbers as CSV) and tables (CSV, Markdown, LaTeX).

Each has a record (JSON) beside it: the digests of its files, and of its entry, code and inputs.
"""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import matplotlib as mpl

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Sheet
from moelaws.figures.tabular import Tabular
from moelaws.files import seal
from moelaws.files.atomic import read_json, replacing, write_json
from moelaws.files.seal import made_of
from moelaws.spec.errors import UserError
from moelaws.spec.readers import Figure, PaperTable
from moelaws.spec.references import resolve
from moelaws.spec.study import Study

FIGURE = (".pdf", ".png", ".csv")
PAPER_TABLE = (".csv", ".md", ".tex")

Picture = Figure | PaperTable


def draw(study: Study, name: str, inputs: Inputs, out: Path) -> list[str]:
    """Makes the study's figure or paper table ``name``; its files and record have ``out``'s stem.

    The same inputs write the same bytes. Returns warnings for the reader. A UserError refuses an
    input that is missing or that the entry does not declare.
    """
    entry = next(picture for picture in study.pictures if picture.name == name)
    own = inputs.declared_by(entry)
    drawn: Sheet | Tabular
    if isinstance(entry, Figure):
        drawn = make(study, name, inputs)
        save(drawn, out)
    else:
        drawn = set_table(study, name, inputs)
        caption = f"{name}: {' '.join(entry.caption.split())}"
        drawn.write(out, caption, f"tab:{study.study}-{name}", _mark(study, own.sources))
    write_json(out.with_suffix(".json"), _record(study, entry, own.code, own.files, out))
    return drawn.warnings


def save(sheet: Sheet, out: Path) -> None:
    """Writes a sheet to ``out`` (.pdf), PNG and the plotted numbers (CSV) beside it."""
    # All take their places once they are drawn: a kill before that leaves those of the old record.
    with ExitStack() as written, mpl.rc_context(style.RC):
        pdf, png, csv = (written.enter_context(replacing(out.with_suffix(x))) for x in FIGURE)
        sheet.data.to_csv(csv, index=False, lineterminator="\n")
        for path, changing in ((png, "Software"), (pdf, "CreationDate")):
            sheet.figure.savefig(path, metadata={changing: None})
            sheet.figure.set_layout_engine("none")  # what it has laid out once stays in its place


def make(study: Study, figure: str, inputs: Inputs) -> Sheet:
    """Returns the sheet of ``figure``, made from the ``inputs`` that its entry declares."""
    entry = study.entry("figures", figure)
    own = inputs.declared_by(entry)
    with mpl.rc_context(style.RC):
        sheet: Sheet
        if entry.code:
            sheet = resolve(study.home, entry.code)(own, **entry.arguments)
        else:  # by its name, so that figures of code do not depend on the module
            sheet = resolve("moelaws.figures", "series:draw")(own, entry, study.home)
        stages = f"stages shown: {own.stages}".upper() if own.stages else ""
        marks = [*filter(None, [_mark(study, own.sources), stages])]
        sheet.mark = ", ".join(marks)
        if marks:
            sheet.figure.suptitle(
                "\n".join(marks), x=0.99, ha="right", fontsize=6.5, color=style.WARN, weight="bold"
            )
    return sheet


def set_table(study: Study, table: str, inputs: Inputs) -> Tabular:
    """Returns the rows of ``table``, made from the ``inputs`` that its entry declares."""
    entry = study.entry("tables", table)
    tabular: Tabular = resolve(study.home, entry.code)(inputs.declared_by(entry), **entry.arguments)
    return tabular


def files_at(out: Path, entry: Picture) -> list[Path]:
    """Returns the files of a figure or paper table, which have the stem of ``out``."""
    suffixes = FIGURE if isinstance(entry, Figure) else PAPER_TABLE
    return [out.with_suffix(suffix) for suffix in suffixes]


def is_current(study: Study, entry: Picture, inputs: Inputs, out: Path) -> bool:
    """Returns whether the files at ``out`` are whole, and made of this entry and these ``inputs``.

    The inputs are those that are declared, and the records of runs that were read before.
    """
    try:
        known = read_json(out.with_suffix(".json"))
        files = list(map(Path, known["made_of"]["files"]))
        declared = set(inputs.declared_by(entry).files)
        return declared <= set(files) and known == _record(study, entry, inputs.code, files, out)
    except (UserError, OSError, KeyError, TypeError):
        return False


def _record(
    study: Study, entry: Picture, code: str, inputs: Iterable[Path], out: Path
) -> dict[str, Any]:
    """Returns the record of a figure or table at ``out``: its files, and what they are made of."""
    about = {"study": study.study, "name": entry.name, "entry": entry.fingerprint()}
    return about | {"files": seal.digests(files_at(out, entry)), "made_of": made_of(inputs, code)}


def _mark(study: Study, sources: Sequence[str]) -> str:
    """Returns the mark of what shows losses that were not trained here; empty if all were."""
    others = [source for source in sources if source != "trained"]
    if not others:
        return ""
    mixed = " and trained" if "trained" in sources else ""
    if others == ["imported"] and study.imported and not mixed:
        return study.imported.called.upper()
    assumed = "simulated" in sources and study.simulation and study.simulation.assumed
    return f"{' and '.join(others)}{mixed} data{', partly assumed' if assumed else ''}".upper()
