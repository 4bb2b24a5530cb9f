"""What each study shows: figures, paper tables, derived tables and the verdicts on its claims."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image, UnidentifiedImageError

from moelaws.claims.base import JudgedClaim, Verdict
from moelaws.claims.page import read_verdicts
from moelaws.explore.material import Material
from moelaws.spec.errors import UserError
from moelaws.spec.study import Study
from moelaws.tables.parquet import column_metadata, read_table

MOST_ROWS = 200  # of a table
WIDEST = 900  # pixels of a figure
COLOURS = 64


def studies(material: Material) -> list[dict[str, Any]]:
    """Returns the studies of which a figure, a table or a verdict is there."""
    shown = (_study(material, study) for study in material.studies)
    return [each for each in shown if each["figures"] or each["tables"] or each["claims"]]


def source_of(material: Material, study: Study) -> str:
    """Returns where the losses of a study come from."""
    if study.imported:
        return "imported"
    return "simulated" if material.simulated else "trained" if study.grids else "computed"


def _study(material: Material, study: Study) -> dict[str, Any]:
    judged = material.read(read_verdicts, material.folder.verdicts(study.study))
    return {
        "key": study.study,
        "title": study.title,
        "source": source_of(material, study),
        "figures": list(_figures(material, study)),
        "tables": list(_tables(material, study)),
        "claims": [_claim(claim) for claim in judged["claims"]] if judged else [],
    }


def _figures(material: Material, study: Study) -> Iterator[dict[str, Any]]:
    for figure in study.figures:
        path = material.folder.figure(study.study, figure.name)
        if image := material.read(embedded, path.with_suffix(".png")):
            files = {"csv": _link(material, path.with_suffix(".csv")), "pdf": _link(material, path)}
            caption = " ".join(figure.caption.split())
            yield {"name": figure.name, "caption": caption, "image": image, **files}


def _tables(material: Material, study: Study) -> Iterator[dict[str, Any]]:
    """Yields the paper tables, and the derived tables behind the figures and claims."""
    for table in study.tables:
        path = material.folder.paper_table(study.study, table.name)
        if rows := material.read(_cells, path):
            caption = " ".join(table.caption.split())
            shown = {"columns": rows[0], "rows": rows[1 : MOST_ROWS + 1]}
            yield {"name": table.name, "caption": caption, "csv": _link(material, path), **shown}
    for derived in study.derived:
        path = material.folder.derived(study.study, derived.name)
        if read := material.read(_derived, path):
            caption = "Figures and claims of the study read it."
            yield {"name": derived.name, "caption": caption, **read}


def _claim(claim: JudgedClaim) -> dict[str, Any]:
    decided = claim["verdict"] != Verdict.CANNOT_TELL
    needed = f". What would decide: {claim['needed']}" if claim["needed"] else ""
    return {
        "title": claim["name"].replace("_", " ").capitalize(),
        "paper": claim["source"],
        "claim": claim["statement"],
        "verdict": claim["verdict"] if decided else "cannot tell",
        "numbers": claim["measured"] + needed,
        "rule": claim["rule"],
        "figure": claim["figure"] or None,
    }


def embedded(path: Path) -> str:
    """Returns the PNG at ``path`` as a data URI, at most ``WIDEST`` wide and in few colours."""
    try:
        with Image.open(path) as image:
            picture = image.convert("RGB")
    except (UnidentifiedImageError, OSError) as error:
        raise UserError(f"{path} is no image: {error}") from None
    if picture.width > WIDEST:
        height = max(1, round(picture.height * WIDEST / picture.width))
        picture = picture.resize((WIDEST, height), Image.Resampling.LANCZOS)
    # An octree finds its colours in half the time of a median cut, and lines keep theirs.
    few = picture.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    few.save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _cells(path: Path) -> list[list[str]]:
    """Returns the cells of a CSV file, numbers with four significant digits."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [[_short(cell) for cell in row] for row in csv.reader(file)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} is no CSV file: {error}") from None


def _derived(path: Path) -> dict[str, Any]:
    """Returns a derived table's columns with their units, and its first rows."""
    frame, units = read_table(path).head(MOST_ROWS), column_metadata(path)
    named = [(str(name), units.get(str(name), ("1", ""))[0]) for name in frame]
    return {
        "columns": [f"{name} ({unit})" if unit != "1" else name for name, unit in named],
        "rows": frame.astype(object).where(frame.notna(), None).to_numpy().tolist(),
    }


def _short(cell: str) -> str:
    try:
        number = float(cell)
    except ValueError:
        return cell
    return f"{number:.4g}" if len(cell) > 6 else cell


def _link(material: Material, path: Path) -> str:
    """Returns a path from the page, which lies in the tier's folder."""
    return path.relative_to(material.folder.root).as_posix()
