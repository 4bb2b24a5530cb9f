"""The model of a grid point, from its settings, and the widths that follow from its FLOPs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from moelaws.accounting.flops import attention_and_ffn, train_flops_per_token
from moelaws.grids.hyperparameters import Point, needed
from moelaws.spec.base import parse
from moelaws.spec.base_shape import BaseShape
from moelaws.spec.errors import UserError
from moelaws.spec.experts import routers
from moelaws.spec.grid import WidthFromFlops, WidthsFromRatio, data_of
from moelaws.spec.model import DenseFFN, Model, Slices

_DENSE_LAYERS = ("n_dense_layers", "d_ffn")
MAX_WIDTH = 10**6  # hidden, of any model
# Relative tolerance of FLOPs a token: half of what one more column costs the smallest models.
TOLERANCE = 0.02
# Relative tolerance of FLOPs a token: half of what one more column of narrow experts costs.
RATIO_TOLERANCE = 0.01
FARTHEST = 1.5  # factor between a ratio that is asked for and the one that widths reach


def model_data(point: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the data of the ``Model`` of ``point``, without the settings that it lacks."""
    data = {**data_of(point, Model), "ffn": _ffn(point)}
    if "n_slices" in point:
        heads = {"n_heads": point["n_heads"]} if "n_heads" in point else {}
        data["slices"] = heads | data_of(point, Slices)
    if point.get("parameterization", "standard") != "standard":
        data["base"] = data_of(point, BaseShape)
    return data


def with_hidden_width(point: Point, rule: WidthFromFlops, where: str) -> Point:
    """Returns ``point`` with the hidden width whose training FLOPs are nearest its budget's."""
    name = "d_ffn" if point.get("ffn", "moe") == "dense" else "d_expert"
    if name in point:
        return _at_width(point, name, point[name], rule.multiple)
    budget: float = needed(point, "flops_per_token", rule.rule)

    def at(units: int) -> Point:
        return _at_width(point, name, units * rule.multiple, rule.multiple)

    def cost(units: int) -> float:
        return train_flops_per_token(parse(Model, model_data(at(units)), where), rule.convention)

    low, high = 1, 2
    while cost(high) < budget and high * rule.multiple < MAX_WIDTH:
        low, high = high, 2 * high
    while high - low > 1:  # cost(low) <= budget < cost(high), unless the least costs too much
        middle = (low + high) // 2
        low, high = (middle, high) if cost(middle) <= budget else (low, middle)
    nearest = min(low, high, key=lambda units: abs(cost(units) - budget))
    if abs(cost(nearest) / budget - 1) > TOLERANCE:
        raise UserError(
            f"flops_per_token is {budget:g}, and the nearest that {name} reaches is "
            f"{cost(nearest):.6g} with {name} = {at(nearest)[name]}; choose another budget, or a "
            "smaller d_model or fewer layers"
        )
    return at(nearest)


def _at_width(point: Point, name: str, width: int, multiple: int) -> Point:
    point = point | {name: width}
    if name == "d_ffn" and "n_slices" in point:
        units = max(1, round(width / point["n_slices"] / multiple))
        point.setdefault("slice_d_expert", units * multiple)
    if name == "d_expert" and point.get("n_dense_layers"):
        point.setdefault("d_ffn", width * point["top_k"])
    return point


def _ffn(point: Mapping[str, Any]) -> dict[str, Any]:
    if point.get("ffn") == "dense":
        return {"kind": "dense", **data_of(point, DenseFFN)}
    # With the settings of all routers, so that parsing refuses one that is of another router.
    ffn = {"kind": "moe", **data_of(point, *routers().values())}
    if not point.get("n_dense_layers"):
        ffn = {name: value for name, value in ffn.items() if name not in _DENSE_LAYERS}
    return ffn


@dataclass(frozen=True)
class Widths:
    """Widths at a ratio, with the ratio and the FLOPs of the rounded widths."""

    d_model: int
    d_expert: int
    r: float  # C_E / C_A
    flops: float  # C_A + C_E, forward FLOPs a token


def base_flops(point: Point, rule: WidthsFromRatio) -> float:
    """Returns C_A + C_E, forward FLOPs a token, of the point at d_model = d_expert = ``d_base``."""
    width = needed(point, "d_base", rule.rule)
    return sum(attention_and_ffn(_model(point, width, width, rule), "allocation"))


def widths_at_ratio(point: Point, flops: float, rule: WidthsFromRatio) -> Widths:
    """Returns widths whose C_E / C_A is nearest ``r``, as logarithms, with C_A + C_E = ``flops``.

    ``d_model`` is a multiple of 2 n_heads, so that rotary heads can divide it; ``d_expert`` spends
    the FLOPs that remain; both are multiples of the rule's ``multiple``. Layers, heads, experts and
    context are the point's. Source: allocation, App B.1, FLOPs as in App C corrected. A ratio that
    no widths reach raises a UserError.
    """
    ratio: float = needed(point, "r", rule.rule)
    unit = math.lcm(2 * needed(point, "n_heads", rule.rule), rule.multiple)
    reached: list[Widths] = []
    d_model = unit
    base = _model(point, unit, 1, rule)
    while (attention := _flops(base, d_model, 1)[0]) < flops:
        one, two = (_flops(base, d_model, width)[1] for width in (1, 2))
        exact = 1 + (flops - attention - one) / (two - one)
        width = rule.multiple * round(exact / rule.multiple)
        if width >= 1:
            ffn = one + (width - 1) * (two - one)
            reached.append(Widths(d_model, width, ffn / attention, attention + ffn))
        d_model += unit
    tolerance = TOLERANCE if rule.multiple > 1 else RATIO_TOLERANCE
    reached = [w for w in reached if abs(w.flops / flops - 1) <= tolerance]
    if not reached:
        raise UserError(
            f"no widths give {flops:.4g} FLOPs a token with n_heads = {point['n_heads']}; "
            "raise d_base or lower n_heads"
        )
    best = min(reached, key=lambda w: abs(math.log(w.r / ratio)))
    if abs(math.log(best.r / ratio)) > math.log(FARTHEST):
        raise UserError(
            f"r is {ratio:g}, and the nearest that d_model in multiples of {unit} reaches at these "
            f"FLOPs a token is {best.r:.3g}; choose that, raise d_base or lower n_heads"
        )
    return best


def _model(point: Point, d_model: int, d_expert: int, rule: WidthsFromRatio) -> Model:
    """Returns the point's model at these widths, with one token: no count includes logits."""
    own = {"n_kv": needed(point, "n_heads", rule.rule), **point, "ffn": "moe", "vocab_size": 1}
    data = model_data(own | {"d_model": d_model, "d_expert": d_expert})
    return parse(Model, data, "the rule ratio")


@cache  # the points of a sweep differ in r and C alone
def _flops(base: Model, d_model: int, d_expert: int) -> tuple[float, float]:
    """Returns (C_A, C_E) of the model at other widths, forward FLOPs a token, of all layers."""
    ffn = base.ffn.model_copy(update={"d_expert": d_expert})
    model = base.model_copy(update={"d_model": d_model, "ffn": ffn})
    return attention_and_ffn(model, "allocation")
