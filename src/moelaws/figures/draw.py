"""A study's figures (PDF, PNG, the plotted numbers as CSV) and tables (CSV, Markdown, LaTeX).

Each has a record (JSON) beside it: the digests of its files, and of its entry, code and inputs.
"""

from collections.abc import Iterable, Sequence
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
from moelaws.spec.references import resolve
from moelaws.spec.study import Figure, PaperTable, Study

FIGURE = (".pdf", ".png", ".csv")
PAPER_TABLE = (".csv", ".md", ".tex")


def draw(study: Study, figure: str, inputs: Inputs, out: Path) -> list[str]:
    """Draws the study's ``figure`` from ``inputs`` to ``out`` (.pdf); PNG, CSV, record beside it.

    The same inputs write the same bytes. Returns warnings for the reader. A UserError refuses an
    unknown figure, and an input that is missing or that the entry does not declare.
    """
    entry, sheet = study.entry("figures", figure), make(study, figure, inputs)
    save(sheet, out)
    own = inputs.declared_by(entry)
    write_json(out.with_suffix(".json"), _record(study, entry, own.code, own.files, out))
    return sheet.warnings


def save(sheet: Sheet, out: Path) -> None:
    """Writes a sheet to ``out`` (.pdf), PNG and the plotted numbers (CSV) beside it."""
    with replacing(out.with_suffix(".csv")) as path:
        sheet.data.to_csv(path, index=False, lineterminator="\n")
    for suffix, changing in ((".png", "Software"), (".pdf", "CreationDate")):
        with replacing(out.with_suffix(suffix)) as path, mpl.rc_context(style.RC):
            sheet.figure.savefig(path, metadata={changing: None})


def make(study: Study, figure: str, inputs: Inputs) -> Sheet:
    """Returns the sheet of ``figure``, made from the ``inputs`` that its entry declares."""
    entry = study.entry("figures", figure)
    own = inputs.declared_by(entry)
    with mpl.rc_context(style.RC):
        sheet: Sheet = resolve(study.home, entry.code)(own, **entry.arguments)
        sheet.mark = _mark(study, own.sources)
        if sheet.mark:
            sheet.figure.suptitle(
                sheet.mark, x=0.99, ha="right", fontsize=6.5, color=style.WARN, weight="bold"
            )
    return sheet


def tabulate(study: Study, table: str, inputs: Inputs, out: Path) -> list[str]:
    """Sets ``table`` at ``out`` (.csv), Markdown and LaTeX beside it; returns warnings."""
    entry, tabular = study.entry("tables", table), set_table(study, table, inputs)
    own = inputs.declared_by(entry)
    caption = f"{entry.name}: {' '.join(entry.caption.split())}"
    label = f"tab:{study.study}-{entry.name}"
    tabular.write(out, caption, label, _mark(study, own.sources))
    write_json(out.with_suffix(".json"), _record(study, entry, own.code, own.files, out))
    return tabular.warnings


def set_table(study: Study, table: str, inputs: Inputs) -> Tabular:
    """Returns the rows of ``table``, made from the ``inputs`` that its entry declares."""
    entry = study.entry("tables", table)
    tabular: Tabular = resolve(study.home, entry.code)(inputs.declared_by(entry), **entry.arguments)
    return tabular


def is_current(study: Study, entry: Figure | PaperTable, inputs: Inputs, out: Path) -> bool:
    """Returns whether the files at ``out`` are whole, and made of this entry and these ``inputs``.

    The inputs are those that are declared, and the records of runs that were read before.
    """
    try:
        known = read_json(out.with_suffix(".json"))
        files = list(map(Path, known["made_of"]["files"]))
        declared = set(inputs.declared_by(entry).files)
        return declared <= set(files) and known == _record(study, entry, inputs.code, files, out)
    except (UserError, OSError, KeyError):
        return False


def _record(
    study: Study, entry: Figure | PaperTable, code: str, inputs: Iterable[Path], out: Path
) -> dict[str, Any]:
    """Returns the record of a figure or table at ``out``: its files, and what they are made of."""
    suffixes = FIGURE if isinstance(entry, Figure) else PAPER_TABLE
    files = seal.digests(out.with_suffix(suffix) for suffix in suffixes)
    about = {"study": study.study, "name": entry.name, "entry": entry.fingerprint(), "files": files}
    return about | {"made_of": made_of(inputs, code)}


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
