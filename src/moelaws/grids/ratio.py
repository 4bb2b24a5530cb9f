"""Widths of attention and experts from the ratio of their FLOPs, at constant FLOPs a token."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from moelaws.accounting.flops import attention_and_ffn
from moelaws.grids.hyperparameters import Point, needed
from moelaws.grids.model import model_data
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.grid import WidthsFromRatio
from moelaws.spec.model import Model

TOLERANCE = 0.01  # of FLOPs a token: half of what one column of narrow experts costs


@dataclass(frozen=True)
class Widths:
    """Widths at a ratio, and what they come to once rounded.

    Attributes:
        d_model: of the residual stream.
        d_expert: hidden width of each expert.
        r: C_E / C_A of the rounded widths.
        flops: C_A + C_E of the rounded widths, forward FLOPs a token.
    """

    d_model: int
    d_expert: int
    r: float
    flops: float


def base_flops(point: Point, rule: WidthsFromRatio) -> float:
    """Returns C_A + C_E, forward FLOPs a token, of the point at d_model = d_expert = ``d_base``.

    Raises:
        UserError: for a missing setting, or a ``d_base`` that the heads do not divide.
    """
    width = needed(point, "d_base", rule.rule)
    return sum(attention_and_ffn(_model(point, width, width, rule), "allocation"))


def widths_at_ratio(point: Point, flops: float, rule: WidthsFromRatio) -> Widths:
    """Returns widths whose C_E / C_A is nearest ``r``, as logarithms, with C_A + C_E = ``flops``.

    ``d_model`` is a multiple of 2 n_heads, so that rotary heads can divide it; ``d_expert`` takes
    up what remains. Layers, heads, experts and context are the point's. Source: allocation, App
    B.1, FLOPs as in App C corrected.

    Raises:
        UserError: for a missing setting, or a ratio that no widths reach.
    """
    ratio: float = needed(point, "r", rule.rule)
    unit = 2 * needed(point, "n_heads", rule.rule)
    reached: list[Widths] = []
    d_model = unit
    base = _model(point, unit, 1, rule)
    while (attention := _flops(base, d_model, 1)[0]) < flops:
        one, two = (_flops(base, d_model, width)[1] for width in (1, 2))
        width = round(1 + (flops - attention - one) / (two - one))
        if width >= 1:
            feed_forward = one + (width - 1) * (two - one)
            reached.append(
                Widths(d_model, width, feed_forward / attention, attention + feed_forward)
            )
        d_model += unit
    reached = [w for w in reached if abs(w.flops / flops - 1) <= TOLERANCE]
    if not reached:
        raise UserError(
            f"no widths give {flops:.4g} FLOPs a token with n_heads = {point['n_heads']}; "
            "raise d_base or lower n_heads"
        )
    low, high = reached[-1].r, reached[0].r
    best = min(reached, key=lambda w: abs(math.log(w.r / ratio)))
    if not low / _step(reached, -1) <= ratio <= high * _step(reached, 0):
        raise UserError(
            f"r is {ratio:g}; multiples of 2 n_heads = {unit} for d_model reach {low:.3g} to "
            f"{high:.3g} at these FLOPs a token; choose r among them, raise d_base or lower n_heads"
        )
    return best


def _step(reached: list[Widths], end: int) -> float:
    """Returns half a step of d_model at an ``end`` of what is reached, as a factor of r."""
    if len(reached) < 2:
        return 1.0
    inner, outer = (reached[-2], reached[-1]) if end else (reached[1], reached[0])
    return math.exp(abs(math.log(outer.r / inner.r)) / 2)


def _model(point: Point, d_model: int, d_expert: int, rule: WidthsFromRatio) -> Model:
    """Returns the point's model at these widths; logits are in neither count."""
    own = {"n_kv": needed(point, "n_heads", rule.rule), **point, "ffn": "moe", "vocab_size": 1}
    data = model_data(own | {"d_model": d_model, "d_expert": d_expert})
    return parse(Model, data, "the rule ratio")


@cache  # the points of a sweep differ in r and C alone
def _flops(base: Model, d_model: int, d_expert: int) -> tuple[float, float]:
    """Returns (C_A, C_E) of the model at other widths, forward FLOPs a token, of all layers."""
    ffn = base.ffn.model_copy(update={"d_expert": d_expert})
    model = base.model_copy(update={"d_model": d_model, "ffn": ffn})
    return attention_and_ffn(model, "allocation")
