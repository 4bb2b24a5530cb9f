"""Rules whose other tests make one verdict alone support and refute their claim by clear tables."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from nulls import leverage, routing
from nulls.trial import NOT_SUPPORTED, SUPPORTED, decided


def moving(middle, change):
    return lambda C: middle + change * np.log10(C / 3.5e19)


def worse(router):
    """The real losses of routing, one nat higher with a router, or with each of the three."""
    own = ~routing.IS_DENSE if router is None else routing.RUNS["router"] == router
    return routing.gains(routing.RUNS["L"] + 1.0 * own)


def by_balance(seed, weakly_balanced_are_coarse):
    """Best granularities of 12 and 3, of which either is that with the weaker balance loss."""
    frame = leverage.over_balance(seed, 3.0)
    names = ("granularity", "granularity_weak")
    swapped = frame["sweep"].map(dict(zip(names, names[::-1], strict=True)))
    return frame if weakly_balanced_are_coarse else frame.assign(sweep=swapped)


def estimates(c, log10_size, E_max):
    """What the rules on Eq 1 read, where each number has an interval of a hundredth about it."""
    around = [
        {"router": "Hash", "quantity": name, "estimate": x, "low": x - 0.01, "high": x + 0.01}
        for name, x in (("c", c), ("log10_N", log10_size))
    ]
    profile = {"E_max": SimpleNamespace(estimate=E_max, low=0.9 * E_max, high=1.1 * E_max)}
    report = SimpleNamespace(parts=[SimpleNamespace(where={}, n=9, profile=profile)])
    return SimpleNamespace(derived={"sizes": pd.DataFrame(around)}.get, fit=lambda name: report)


LEVERAGE = {
    "best_granularity_is_the_same_at_all_budgets": (
        partial(leverage.over_more, curvature=0.02), 0.0, 2.0,
    ),
    "weak_balance_favours_coarse": (by_balance, True, False),
    "fewer_shared_with_compute": (
        partial(leverage.over_shares, curvature=1.0), moving(0.3, -0.1), moving(0.3, 0.1),
    ),
    "more_dense_layers_with_compute": (
        leverage.over_more_layers, moving(0.08, 0.03), moving(0.08, -0.03),
    ),
    "heads_hardly_matter": (leverage.over_heads, 0.0, 0.02),
    "sparser_is_better": (
        leverage.over_ratios, leverage.law_of_A, lambda C, A: 1 / leverage.law_of_A(C, A),
    ),
}  # fmt: skip
ROUTING = {
    "routing_helps_at_every_size": ("none", None),
    "s_base_is_the_best_router": ("Hash", "S-Base"),
}


@pytest.mark.parametrize("claim", LEVERAGE)
def test_of_leverage(claim):
    made, supports, refutes = LEVERAGE[claim]
    for effect, verdict in ((supports, SUPPORTED), (refutes, NOT_SUPPORTED)):
        assert decided(leverage.STUDY, claim, made(0, effect)) is verdict


def test_a_leverage_that_falls_refutes_that_it_grows(project_folder):
    inputs = leverage.growing(0, -0.15)
    assert decided(leverage.STUDY, "grows_with_compute", inputs) is NOT_SUPPORTED


@pytest.mark.parametrize("claim", ROUTING)
def test_of_routing(claim):
    for router, verdict in zip(ROUTING[claim], (SUPPORTED, NOT_SUPPORTED), strict=True):
        assert decided(routing.STUDY, claim, worse(router)) is verdict


@pytest.mark.parametrize("claim", [routing.SHRINKS, routing.BEYOND, "gains_saturate_in_experts"])
def test_of_coefficients_of_routing(claim):
    for given, verdict in ((0.1, 12.0, 1e3), SUPPORTED), ((-0.1, 8.0, 1e8), NOT_SUPPORTED):
        assert decided(routing.STUDY, claim, estimates(*given)) is verdict
