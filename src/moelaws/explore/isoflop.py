"""IsoFLOP curves: the loss over size at one budget, by the fits that are split by budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from moelaws.explore.encode import shortened
from moelaws.explore.fits import LossFit
from moelaws.explore.material import Material
from moelaws.explore.studies import source_of
from moelaws.fitting.report import FitPart
from moelaws.laws.base import Mask, Variable

BUDGET = "C"
POINTS = 61  # of a curve that is drawn


def isoflops(material: Material, fits: Iterable[LossFit]) -> list[dict[str, Any]]:
    """Returns the fits that are split by budget and have a size among their variables."""
    curves = (material.attempt(partial(_isoflop, material, fit)) for fit in fits)
    return [each for each in curves if each is not None]


def _isoflop(material: Material, fit: LossFit) -> dict[str, Any] | None:
    size = next((v for v in fit.variables if v.unit == "parameters"), None)
    if fit.spec.split_by != BUDGET or size is None:
        return None
    column, key = fit.sources.get(size.name, size.name), fit.study.study
    counted = "total " if "total" in column else "active " if "active" in column else ""
    return {
        "study": key,
        "title": f"Loss over {counted}parameters at each budget ({key}, fit {fit.spec.name})",
        "x": {"name": column, "unit": size.unit},
        "source": source_of(material, fit.study),
        "level": fit.report.level,
        "series": [series for part in fit.report.parts for series in _series(fit, part, size)],
    }


def _series(fit: LossFit, part: FitPart, size: Variable) -> Iterator[dict[str, Any]]:
    """Yields the runs and the curve of one budget, for each value of the other variables."""
    fitted, held_out = fit.rows(part)
    used = fitted | held_out
    names = [v.name for v in fit.variables if v.name != size.name]
    kinds = np.column_stack([np.zeros(len(used)), *(fit.values[name] for name in names)])
    for kind in np.unique(kinds[used], axis=0):
        others = dict(zip(names, kind[1:].tolist(), strict=True))
        chosen: Mask = used & (kinds == kind).all(axis=1)
        C, x = float(part.where[BUDGET]), fit.values[size.name][chosen]
        grid = np.geomspace(x.min(), x.max(), POINTS)
        columns = {name: np.full(POINTS, value) for name, value in others.items()}
        mean, low, high = map(shortened, fit.predicted(part, {size.name: grid, **columns}))
        yield {
            "C": C,
            **others,
            "label": ", ".join(f"{name} = {v:.4g}" for name, v in {"C": C, **others}.items()),
            "run": [row for row, own in zip(fit.row, chosen, strict=True) if own],
            "x": shortened(x),
            "L": shortened(fit.values[fit.law.response.name][chosen]),
            "curve": {"x": shortened(grid), "mean": mean, "low": low, "high": high},
        }
