"""The model of a grid point: its settings put together, and the width that a budget leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moelaws.accounting.flops import train_flops_per_token
from moelaws.grids.hyperparameters import Point, needed
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.experts import routers
from moelaws.spec.grid import WidthFromFlops, data_of
from moelaws.spec.model import DenseFFN, Model, Slices

_DENSE_LAYERS = ("n_dense_layers", "d_ffn")
MOST_WIDTH = 10**6  # hidden, of any model
TOLERANCE = 0.02  # of FLOPs a token: half of what a step of the width costs the smallest models


def model_data(point: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the data of the ``Model`` of ``point``; what the point lacks is missing there too."""
    data = {**data_of(point, Model), "ffn": _ffn(point)}
    if "n_slices" in point:
        heads = {"n_heads": point["n_heads"]} if "n_heads" in point else {}
        data["slices"] = heads | data_of(point, Slices)
    return data


def with_hidden_width(point: Point, rule: WidthFromFlops, where: str) -> Point:
    """Returns ``point`` with the hidden width whose training costs nearest ``flops_per_token``.

    Raises:
        UserError: for a missing setting, or where no width comes near the budget.
    """
    name = "d_ffn" if point.get("ffn", "moe") == "dense" else "d_expert"
    if name in point:
        return _at_width(point, name, point[name])
    budget: float = needed(point, "flops_per_token", rule.rule)

    def cost(width: int) -> float:
        model = parse(Model, model_data(_at_width(point, name, width)), where)
        return train_flops_per_token(model, rule.convention)

    low, high = 1, 2
    while cost(high) < budget and high < MOST_WIDTH:
        low, high = high, 2 * high
    while high - low > 1:  # cost(low) <= budget < cost(high), or the narrowest is too dear
        middle = (low + high) // 2
        low, high = (middle, high) if cost(middle) <= budget else (low, middle)
    width = min(low, high, key=lambda w: abs(cost(w) - budget))
    if abs(cost(width) / budget - 1) > TOLERANCE:
        raise UserError(
            f"flops_per_token is {budget:g}, and the nearest that {name} reaches is "
            f"{cost(width):.6g} with {name} = {width}; choose another budget, or a smaller d_model "
            "or fewer layers"
        )
    return _at_width(point, name, width)


def _at_width(point: Point, name: str, width: int) -> Point:
    point = point | {name: width}
    if name == "d_ffn" and "n_slices" in point:
        point.setdefault("slice_d_expert", max(1, round(width / point["n_slices"])))
    if name == "d_expert" and point.get("n_dense_layers"):
        point.setdefault("d_ffn", width * point["top_k"])
    return point


def _ffn(point: Mapping[str, Any]) -> dict[str, Any]:
    if point.get("ffn") == "dense":
        return {"kind": "dense", **data_of(point, DenseFFN)}
    # A setting of another router is refused, where it would mean nothing.
    ffn = {"kind": "moe", **data_of(point, *routers().values())}
    if not point.get("n_dense_layers"):
        ffn = {name: value for name, value in ffn.items() if name not in _DENSE_LAYERS}
    return ffn
