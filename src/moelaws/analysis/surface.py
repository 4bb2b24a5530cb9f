"""A fitted isoFLOP surface L(N, S) at each budget: its parts, its draws, where it was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.inputs import Inputs, at
from moelaws.analysis.minimum import Array
from moelaws.spec.errors import UserError


@dataclass(frozen=True)
class Surface:
    """The surface fitted at one budget, with the rows that it was fitted to or is to be read at."""

    law: str
    C: float
    size: str  # the table's column that the fit calls N
    params: Mapping[str, float]
    draws: pd.DataFrame  # a row a draw of the coefficients
    level: float
    rows: pd.DataFrame

    def loss(self, N: Array, S: Array) -> Array:
        """Loss (n,) in nats per token at sizes ``N`` (n,) and sparsities ``S`` (n,)."""
        return laws.fittable(self.law).predict(self.params, _columns(N, S))

    def loss_draws(self, N: Array, S: Array) -> Array:
        """Loss (draws, n): one row a draw of the coefficients."""
        law = laws.fittable(self.law)
        return law.predict_batch(self.draws[list(law.names)].to_numpy(), _columns(N, S))

    def sizes_measured(self) -> pd.DataFrame:
        """For each S measured at this budget: S, v = -ln(1 - S), and the ends of ln N."""
        sizes = self.rows.groupby("S")[self.size]
        ends = {"u_low": np.log(sizes.min()), "u_high": np.log(sizes.max())}
        frame = pd.DataFrame(ends).reset_index()
        return frame.assign(v=-np.log1p(-frame["S"]))


def surfaces(inputs: Inputs, fit: str) -> Iterator[Surface]:
    """The surfaces of the fit ``fit``, a budget each, in the order of the report.

    Raises:
        UserError: where the fit is not split by C.
    """
    report, spec, rows = inputs.fit(fit), inputs.spec(fit), inputs.rows(fit)
    if spec.split_by != "C":
        raise UserError(
            f"fit {fit!r}: split_by is {spec.split_by!r}; an isoFLOP surface holds at one budget, "
            "so the study's entry must say split_by: C"
        )
    draws = inputs.draws(fit)
    for part in report.parts:
        C = float(part.where["C"])
        yield Surface(
            law=report.law,
            C=C,
            size=spec.mapping.get("N", "N"),
            params=part.estimates(),
            draws=at(draws, "C", C),
            level=report.level,
            rows=at(rows, "C", C),
        )


def _columns(N: Array, S: Array) -> dict[str, Array]:
    return {"N": np.asarray(N, dtype=np.float64), "S": np.asarray(S, dtype=np.float64)}
