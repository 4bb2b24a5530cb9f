"""The page explore.html as one file: a template into which a tier's data is put as JSON."""

import html
import re
from datetime import UTC, datetime
from importlib.resources import files

from moelaws import __version__
from moelaws.explore.fits import fitted_law, isoflop, loss_fits
from moelaws.explore.material import Data, Material, packed, to_json
from moelaws.explore.runs import curves, load, read_runs
from moelaws.explore.studies import pages, studies
from moelaws.spec.errors import UserError


def render(data: Data) -> str:
    """Returns the whole page of the data that ``gather`` returned; it needs no file or host."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise UserError(
            "the page needs the package plotly, which is not installed here: `pip install plotly`"
        ) from None
    page = files("moelaws.explore") / "page"
    contents = {
        "title": html.escape(data["title"]),
        "plotly": packed(get_plotlyjs()),
        "data": packed(to_json(data)),
    }

    def content(field: re.Match[str]) -> str:
        """Returns what stands for a name in double braces: one of these, or a file of the page."""
        return contents.get(field[1]) or (page / field[1]).read_text(encoding="utf-8")

    # One pass leaves braces within the contents as they are. Scripts share one scope, in the order
    # of the template, and each may use those before it.
    template = (page / "index.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{([\w.]+)\}\}", content, template)


def gather(material: Material) -> Data:
    """Returns the data of a tier that ``render`` embeds.

    Missing files are left out, and unreadable ones too, which ``notes`` name.
    """
    runs = read_runs(material)
    fits = list(loss_fits(material, runs))
    return {
        "tier": material.project.tier,
        "title": f"Scaling laws of mixtures of experts: the tier {material.project.tier}",
        "source": "+".join(sorted(set(runs.frame.get("source", [])))) or "none",
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "version": __version__,
        "pages": list(pages(material)),
        "runs": {"count": len(runs.frame), "columns": runs.columns()},
        "details": runs.details(),
        "curves": curves(material, runs),
        "load": load(material, runs),
        "isoflop": material.each(isoflop, fits),
        "laws": material.each(fitted_law, fits),
        "studies": studies(material),
        "report": material.link(material.folder.report),
        "notes": material.notes,
    }
