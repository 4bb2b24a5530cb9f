"""Widths at a ratio of expert to attention FLOPs, at constant FLOPs a token (allocation, B.1)."""

import math
from typing import Any

import pytest
from grid_runs import TABLE_12
from hypothesis import given, settings
from hypothesis import strategies as st

from moelaws.accounting.flops import attention_and_ffn
from moelaws.grids.model import RATIO_TOLERANCE, TOLERANCE, base_flops, widths_at_ratio
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.grid import WidthsFromRatio
from moelaws.spec.model import Model

RULE = WidthsFromRatio(rule="ratio")


def at(**settings: Any) -> dict[str, Any]:
    base = {"n_layers": 8, "n_heads": 8, "context": 4096, "n_experts": 64, "top_k": 2}
    return {**base, "n_shared": 1, "d_base": 512, "r": 0.5, **settings}


def model(point: dict[str, Any], d_model: int, d_expert: int) -> Model:
    ffn = {"kind": "moe", "d_expert": d_expert, **{k: point[k] for k in ("n_experts", "top_k")}}
    shape = {k: point[k] for k in ("n_layers", "n_heads", "context")}
    data = {**shape, "n_kv": point.get("n_kv", point["n_heads"]), "d_model": d_model,
            "vocab_size": 512, "ffn": {**ffn, "n_shared": point["n_shared"]}}  # fmt: skip
    return parse(Model, data, "model")


@pytest.mark.parametrize("size", range(6))
def test_the_published_widths_follow_from_their_ratios(size: int) -> None:
    """Table 12 prints widths rounded to even numbers; FLOPs a token agree within 0.1 %."""
    layers, heads, kv, _, shapes = TABLE_12[size]
    point = at(n_layers=layers, n_heads=heads, n_kv=kv)
    flops = sum(attention_and_ffn(model(point, *shapes[2]), "allocation"))
    for d_model, d_expert in shapes:
        attention, experts = attention_and_ffn(model(point, d_model, d_expert), "allocation")
        widths = widths_at_ratio({**point, "r": experts / attention}, flops, RULE)
        published = attention + experts
        assert widths.flops == pytest.approx(published, rel=3e-3)  # their own spread
        assert widths.flops == pytest.approx(flops, rel=1e-3)
        assert abs(widths.d_model - d_model) <= heads
        exact = widths.d_model == d_model
        assert exact == (d_model % (2 * heads) == 0)  # not all of theirs are such a multiple
        if exact:
            assert widths.d_expert == pytest.approx(d_expert, rel=0.015)
            assert widths.r == pytest.approx(experts / attention, rel=0.01)


@settings(max_examples=60)
@given(
    r=st.floats(0.25, 1.3),
    d_base=st.sampled_from([384, 512, 768, 1024]),
    experts=st.sampled_from([16, 32, 64, 128]),
    kv=st.sampled_from([2, 8]),
)
def test_flops_stay_and_the_ratio_is_within_the_rounding_of_the_width(
    r: float, d_base: int, experts: int, kv: int
) -> None:
    point = at(r=r, d_base=d_base, n_experts=experts, n_kv=kv)
    flops = base_flops(point, RULE)
    widths = widths_at_ratio(point, flops, RULE)
    attention, feed_forward = attention_and_ffn(
        model(point, widths.d_model, widths.d_expert), "allocation"
    )
    assert attention + feed_forward == pytest.approx(flops, rel=5e-3)
    assert (widths.r, widths.flops) == pytest.approx(
        (feed_forward / attention, attention + feed_forward)
    )
    for aside in (-16, 16):  # no other multiple of 2 heads comes nearer
        other = attention_and_ffn(model(point, widths.d_model + aside, 1), "allocation")[0]
        aside_by = abs(math.log((flops / other - 1) / r))
        assert aside_by >= abs(math.log(widths.r / r)) - 0.01  # d_expert is rounded, too


@given(r=st.floats(0.25, 1.3), d_base=st.sampled_from([256, 512, 1024]), kv=st.sampled_from([2, 8]))
def test_widths_in_steps_of_16_keep_the_flops_and_come_near_the_ratio(r, d_base, kv) -> None:
    point = at(r=r, d_base=d_base, n_kv=kv)
    flops = base_flops(point, RULE)
    widths = widths_at_ratio(point, flops, RULE.model_copy(update={"multiple": 16}))
    assert widths.d_model % 16 == widths.d_expert % 16 == 0
    assert widths.flops == pytest.approx(flops, rel=TOLERANCE)
    assert widths.r == pytest.approx(r, rel=0.25)


def test_few_columns_cannot_keep_the_flops() -> None:
    point = at(n_layers=2, context=16, n_heads=1, n_experts=2, n_shared=0, d_base=2, r=1)
    with pytest.raises(UserError, match="raise d_base"):
        widths_at_ratio(point, base_flops(point, RULE) * (1 + 3 * RATIO_TOLERANCE), RULE)
    with pytest.raises(UserError, match=r"r is 1e-05, and the nearest that d_model in .* reaches"):
        widths_at_ratio(at(r=1e-5), base_flops(at(), RULE), RULE)
