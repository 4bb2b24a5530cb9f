"""All that a page shows of a tier, as one JSON object."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from moelaws import __version__
from moelaws.explore.answers import pages, trained
from moelaws.explore.curves import curves, load
from moelaws.explore.fits import loss_fits
from moelaws.explore.isoflop import isoflops
from moelaws.explore.laws import fitted_laws
from moelaws.explore.material import Material
from moelaws.explore.runs import read_runs
from moelaws.explore.studies import studies


def gather(material: Material) -> dict[str, Any]:
    """Returns what is there of a tier, as ``page.render`` embeds it.

    What is missing is left out; what cannot be read is left out and named in ``notes``.
    """
    runs = read_runs(material)
    fits = list(loss_fits(material, runs))
    sources = sorted(set(runs.frame.get("source", [])))
    return {
        "tier": material.project.tier,
        "title": f"Scaling laws of mixtures of experts: the tier {material.project.tier}",
        "source": sources[0] if len(sources) == 1 else "mixed" if sources else "none",
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "version": __version__,
        "trained": trained(material, runs),
        "pages": list(pages(material)),
        "runs": {"count": len(runs.frame), "columns": runs.columns()},
        "details": runs.details(),
        "curves": curves(material, runs),
        "load": load(material, runs),
        "isoflop": isoflops(material, fits),
        "laws": fitted_laws(material, fits),
        "studies": studies(material),
        "report": material.folder.report.name,
        "notes": material.notes,
    }
