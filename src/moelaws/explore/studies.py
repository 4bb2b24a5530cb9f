"""What each study shows: its figures, its paper tables and the verdicts on its claims."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from moelaws.claims.base import JudgedClaim, JudgedStudy, Verdict
from moelaws.claims.page import read_verdicts
from moelaws.explore.material import Material
from moelaws.explore.pictures import embedded
from moelaws.spec.errors import UserError
from moelaws.spec.study import Study

MOST_ROWS = 200  # of a paper table


def studies(material: Material) -> list[dict[str, Any]]:
    """Returns the studies of which a figure, a table or a verdict is there."""
    shown = (_study(material, study) for study in material.studies)
    return [each for each in shown if each["figures"] or each["tables"] or each["claims"]]


def verdicts_of(material: Material, study: Study) -> JudgedStudy | None:
    """Returns the verdicts on the study's claims; None where they are not there."""
    return material.read(read_verdicts, material.folder.verdicts(study.study))


def _study(material: Material, study: Study) -> dict[str, Any]:
    judged = verdicts_of(material, study)
    return {
        "key": study.study,
        "title": study.title,
        "source": source_of(material, study),
        "figures": list(_figures(material, study)),
        "tables": list(_tables(material, study)),
        "claims": [_claim(claim) for claim in judged["claims"]] if judged else [],
    }


def source_of(material: Material, study: Study) -> str:
    """Returns where the losses of a study come from."""
    if study.imported:
        return "imported"
    return "simulated" if material.simulated else "trained" if study.grids else "computed"


def _figures(material: Material, study: Study) -> Iterator[dict[str, Any]]:
    for figure in study.figures:
        path = material.folder.figure(study.study, figure.name)
        if image := material.read(embedded, path.with_suffix(".png")):
            yield {
                "name": figure.name,
                "caption": _one_line(figure.caption),
                "image": image,
                "csv": _link(material, path.with_suffix(".csv")),
                "pdf": _link(material, path),
            }


def _tables(material: Material, study: Study) -> Iterator[dict[str, Any]]:
    for table in study.tables:
        path = material.folder.paper_table(study.study, table.name)
        if rows := material.read(_cells, path):
            yield {
                "name": table.name,
                "caption": _one_line(table.caption),
                "csv": _link(material, path),
                "columns": rows[0],
                "rows": rows[1 : MOST_ROWS + 1],
            }


def _claim(claim: JudgedClaim) -> dict[str, Any]:
    told = claim["verdict"] != Verdict.CANNOT_TELL
    needed = f" What would decide: {claim['needed']}" if claim["needed"] else ""
    return {
        "title": claim["name"].replace("_", " ").capitalize(),
        "paper": claim["source"],
        "claim": claim["statement"],
        "verdict": claim["verdict"] if told else "cannot tell",
        "numbers": claim["measured"] + needed,
        "rule": claim["rule"],
        "figure": claim["figure"] or None,
    }


def _cells(path: Path) -> list[list[str]]:
    """Returns the cells of a CSV file, numbers with four significant digits."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [[_short(cell) for cell in row] for row in csv.reader(file)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} is no CSV file: {error}") from None


def _short(cell: str) -> str:
    try:
        number = float(cell)
    except ValueError:
        return cell
    return f"{number:.4g}" if len(cell) > 6 else cell


def _link(material: Material, path: Path) -> str:
    """Returns a path from the page, which lies in the tier's folder."""
    return path.relative_to(material.folder.root).as_posix()


def _one_line(text: str) -> str:
    return " ".join(text.split())
