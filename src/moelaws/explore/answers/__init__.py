"""What the runs of a tier say, in words: computed from fits, claims, contests and the outlook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moelaws.explore.answers.best import best
from moelaws.explore.answers.further import further
from moelaws.explore.answers.support import support
from moelaws.explore.answers.trained import trained
from moelaws.explore.fits import LossFit
from moelaws.explore.isoflop import IsoFlop
from moelaws.explore.material import Material
from moelaws.explore.runs import Runs


def answers(
    material: Material, runs: Runs, fits: Sequence[LossFit], curves: Sequence[IsoFlop]
) -> list[dict[str, Any]]:
    """Returns the four answers, each with a heading, paragraphs, points and maybe a table."""
    return [
        trained(material, runs),
        best(runs, curves),
        support(material, fits),
        further(material, runs, fits, curves),
    ]
