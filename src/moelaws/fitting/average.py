"""An average of laws for predictions beyond the fitted compute, weighted by their roll-out errors.

Each law's logarithm of the loss counts by the inverse square of its error per decade, as its fits
to the cheaper rows showed it. The average errs in a round of the roll-outs as its members do,
weighted, so that its interval is calibrated on the same rounds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moelaws.fitting.diagnostics import Calibration
from moelaws.fitting.prediction import Prediction, reaches
from moelaws.fitting.report import GroupFit
from moelaws.laws.base import Columns, FittableLaw

LEAST = 1e-6  # error per decade below which a law's weight does not grow


@dataclass(frozen=True)
class Average:
    """Fitted laws of one response with their weights, which sum to 1."""

    laws: Sequence[FittableLaw]
    fits: Sequence[GroupFit]
    weights: Sequence[float]
    calibration: Calibration

    @classmethod
    def of(cls, laws: Sequence[FittableLaw], fits: Sequence[GroupFit]) -> "Average":
        """Returns the average of ``laws``, whose ``fits`` are all calibrated."""
        calibrations = [fit.calibration for fit in fits if fit.calibration]
        raw = np.array([max(own.per_decade, LEAST) ** -2 for own in calibrations])
        weights = (raw / raw.sum()).tolist()
        # A law of more parameters has fewer rounds, which are the later ones.
        rounds = min(len(own.rates) for own in calibrations)
        rates = np.array(weights) @ [own.rates[-rounds:] for own in calibrations]
        scatter = max(own.scatter for own in calibrations)
        own = replace(calibrations[0], rates=rates.tolist(), scatter=scatter)
        return cls(laws, fits, weights, own)

    def predict(self, columns: Sequence[Columns], level: float) -> Prediction:
        """Returns the average at rows (n,), given as each member's variables.

        Up to the fitted compute the intervals are NaN: an average of laws tells nothing new there.
        """
        each = [
            law.on_scale(law.predict(fit.estimates(), own))
            for law, fit, own in zip(self.laws, self.fits, columns, strict=True)
        ]
        centre = np.array(self.weights) @ each
        ends: list[Any] = []
        for reach in reaches(self.calibration, columns[0], level):
            ends += [np.exp(centre - reach), np.exp(centre + reach)]
        return Prediction(np.exp(centre), *ends)

    def to_json(self) -> Mapping[str, float]:
        """Returns law -> weight."""
        return {law.ref: w for law, w in zip(self.laws, self.weights, strict=True)}
