"""Clark et al.'s law of routed models against the paper's other numbers and its own text."""

import itertools
from dataclasses import replace
from math import log10

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws.laws.clark.routing import (
    LAW,
    STATED_CUTOFFS,
    VARIANTS,
    effective_experts,
    effective_parameters,
    log10_cutoff,
)

ROUTERS = [LAW, *VARIANTS.values()]


@pytest.mark.parametrize("law", ROUTERS, ids=lambda law: law.ref)
def test_dense_models_follow_the_papers_dense_law(law):
    """L = (3.568e13/N)^.078, fitted to the dense models alone, within 2 % over their sizes."""
    N = np.geomspace(15e6, 1.3e9, 7)
    dense = (3.568e13 / N) ** 0.078
    assert law.predict(law.published, {"N_active": N, "E": 1}) == pytest.approx(dense, rel=0.02)


def test_its_curvature_is_that_of_differences_by_all_parameters():
    """It is taken by E_start and E_max alone, for Eq 1 is linear in the others."""
    rng = np.random.default_rng(0)
    columns = {"N_active": 10 ** rng.uniform(7, 9, 30), "E": 2.0 ** rng.integers(0, 9, 30)}
    theta, psi = LAW.vector(LAW.published) + rng.normal(0, 0.3, (5, 6)), rng.normal(size=(5, 30))
    own, whole = (law.model(columns) for law in (LAW, replace(LAW, linear=0)))
    curvature, expected = (m.curvature(m.evaluate(theta)[1], psi) for m in (own, whole))
    np.testing.assert_allclose(curvature, expected, atol=1e-7)


def test_the_papers_example_of_effective_parameters():
    """5e6 parameters with 128 experts do as well as 55e6 dense ones."""
    effective = effective_parameters(LAW.published, 5e6, 128)
    assert effective == pytest.approx(55e6, rel=0.1)
    pair = {"N_active": [5e6, float(effective)], "E": [128, 1]}
    routed, dense = LAW.predict(LAW.published, pair)
    assert routed == pytest.approx(dense, rel=1e-12)


def cutoff(params):
    return float(10 ** log10_cutoff(params))


@pytest.mark.parametrize(("law", "stated"), [(law, STATED_CUTOFFS[law.variant]) for law in ROUTERS])
def test_cutoff_agrees_with_the_text_within_the_printed_digits(law, stated):
    """The sizes of the paper's text lie within what b and c can be, printed to three digits."""
    p = law.published
    near = [
        cutoff(p | {"b": p["b"] + db, "c": p["c"] + dc})
        for db, dc in itertools.product((-5e-4, 5e-4), repeat=2)
    ]
    assert min(near) < stated < max(near)
    open_by = [abs(log10(size) / log10(cutoff(p)) - 1) for size in near]
    assert 0.04 < max(open_by) < 0.065  # of the decimal exponent -b/c
    at = law.predict(p, {"N_active": cutoff(p), "E": [1, 8, 512]})
    assert at == pytest.approx(float(at[0]), rel=1e-12)


@given(
    start=st.floats(0.2, 50), more=st.floats(1.01, 1e4), E=st.floats(1, 1e5), step=st.floats(1.1, 9)
)
def test_effective_experts_start_rise_and_saturate(start, more, E, step):
    top = start * more
    assert effective_experts(1, start, top) == pytest.approx(start)
    assert effective_experts(1e15, start, top) == pytest.approx(top, rel=1e-6)
    assert start * (1 - 1e-12) <= effective_experts(E, start, top) <= top
    assert effective_experts(E, start, top) <= effective_experts(E * step, start, top)
    assert effective_experts(E, top, start) == pytest.approx(start)  # saturated at once
