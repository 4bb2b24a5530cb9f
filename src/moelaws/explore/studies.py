"""The figures, tables and claims of each study, and the pages of claims, laws and advice."""

import base64
import csv
import io
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from markdown_it import MarkdownIt
from PIL import Image, UnidentifiedImageError

from moelaws.claims.base import JudgedClaim, JudgedStudy, Verdict
from moelaws.claims.page import read_judged
from moelaws.explore.material import Data, Material
from moelaws.files import seal
from moelaws.files.atomic import read_page
from moelaws.spec.errors import UserError
from moelaws.spec.study import Study
from moelaws.spec.words import natural, on_one_line
from moelaws.tables.parquet import column_metadata, read_table

MAX_ROWS = 200  # of a table
WIDEST = 900  # pixels of a figure
COLOURS = 64


def studies(material: Material) -> list[Data]:
    """Returns the studies that have a figure, a table or a verdict."""
    shown = []
    for study in material.studies:
        path = material.folder.verdicts(study.study)
        judged = material.read(partial(read_judged, JudgedStudy), path)
        parts = {
            "figures": list(_figures(material, study)),
            "tables": list(_tables(material, study)),
            "claims": [_claim(claim) for claim in judged["claims"]] if judged else [],
        }
        if any(parts.values()):
            about = {"key": study.study, "title": study.title}
            shown.append({**about, "source": source_of(material, study), **parts})
    return shown


def source_of(material: Material, study: Study) -> str:
    if study.imported:
        return "imported"
    return "simulated" if material.simulated else "trained" if study.grids else "computed"


def _figures(material: Material, study: Study) -> Iterator[Data]:
    for figure in sorted(study.figures, key=lambda figure: natural(figure.name)):
        path = material.folder.figure(study.study, figure.name)
        if image := material.read(embedded, path.with_suffix(".png")):
            files = {"csv": material.link(path.with_suffix(".csv")), "pdf": material.link(path)}
            caption = on_one_line(figure.caption)
            yield {"name": figure.name, "caption": caption, "image": image, **files}


def _tables(material: Material, study: Study) -> Iterator[Data]:
    """Yields the paper tables, and the derived tables behind the figures and claims."""
    for table in study.tables:
        path = material.folder.paper_table(study.study, table.name)
        if rows := material.read(_cells, path):
            caption = on_one_line(table.caption)
            shown = {"columns": rows[0], "rows": rows[1 : MAX_ROWS + 1]}
            yield {"name": table.name, "caption": caption, "csv": material.link(path), **shown}
    for derived in study.derived:
        path = material.folder.derived(study.study, derived.name)
        if read := material.read(_derived, path):
            caption = "Figures and claims of the study read it."
            yield {"name": derived.name, "caption": caption, **read}


def _claim(claim: JudgedClaim) -> Data:
    decided = claim["verdict"] != Verdict.CANNOT_TELL
    number, interval = claim["shown"]
    more = f" What would decide: {claim['needed'].rstrip('.')}." if claim["needed"] else ""
    if own := claim.get("registered"):
        more += f" The claim is {'; '.join([own['state'], *own['deviations']])}."
    return {
        "title": claim["name"].replace("_", " ").capitalize(),
        "paper": claim["source"],
        "claim": claim["statement"],
        "verdict": claim["verdict"] if decided else "cannot tell",
        "says": claim["says"],
        "effect": f"{number} ({interval})" if interval else number,
        "numbers": claim["measured"].rstrip(".") + "." + more,
        "rule": claim["rule"],
        "figure": claim["figure"] or None,
    }


def embedded(path: Path) -> str:
    """Returns the PNG at ``path`` as a data URI, at most ``WIDEST`` wide and in few colours."""
    try:
        with Image.open(io.BytesIO(seal.read(path))) as image:
            picture = image.convert("RGB")
    except (UnidentifiedImageError, OSError) as error:
        raise UserError(f"{path} is no image: {error}") from None
    if picture.width > WIDEST:
        height = max(1, round(picture.height * WIDEST / picture.width))
        picture = picture.resize((WIDEST, height), Image.Resampling.LANCZOS)
    # An octree takes half the time of a median cut, and keeps the colours of lines.
    few = picture.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    few.save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _cells(path: Path) -> list[list[str]]:
    """Returns the cells of a CSV file, numbers with four significant digits."""
    try:
        lines = csv.reader(io.StringIO(read_page(path), newline=""))
        return [[_short(cell) for cell in row] for row in lines]
    except csv.Error as error:
        raise UserError(f"{path} is no CSV file: {error}") from None


def _derived(path: Path) -> Data:
    """Returns a derived table's columns with their units, and its first rows."""
    frame, units = read_table(path).head(MAX_ROWS), column_metadata(path)
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


def pages(material: Material) -> Iterator[dict[str, str]]:
    """Yields the pages of claims, laws and outlook as HTML, the first two up to their summary."""
    folder = material.folder
    for path, whole in ((folder.claims, False), (folder.laws, False), (folder.outlook, True)):
        href = material.link(path)
        if html := material.read(partial(_html, whole=whole, href=href), path):
            yield {"html": html, "href": href}


def _html(path: Path, whole: bool, href: str) -> str:
    """Returns a page of Markdown as HTML: the ``whole``, or what precedes its first section.

    Markup in the text stays text. Links within the page lead to its file, at ``href``.
    """
    text = read_page(path)
    if seal.inspect(path)[0] != "whole":
        raise UserError(f"{path} has no seal: it was cut short, or an earlier version wrote it")
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    tokens = parser.parse(text if whole else text.partition("\n## ")[0])
    for token in tokens:
        if token.type.startswith("heading_"):
            token.tag = f"h{int(token.tag[1:]) + 2}"
        for child in token.children or ():
            if str(child.attrs.get("href", "")).startswith("#"):
                child.attrs["href"] = href
    return str(parser.renderer.render(tokens, parser.options, {}))
