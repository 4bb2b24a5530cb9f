"""Zhao et al.'s law of mixtures against the optima that the paper states."""

import numpy as np
import pytest

from moelaws.laws.comprehensive import LAW

AT = {"N": 3e10, "N_active": 3e9, "D": 3e11}


def loss(**columns):
    return LAW.predict(LAW.published, AT | columns)


def test_best_active_experts_and_best_share_are_the_papers():
    """About 7 active experts and a share of .31, whatever the sizes and the data."""
    p = LAW.published
    assert np.sqrt(p["f"] / p["e"]) == pytest.approx(6.78, abs=5e-3)
    assert -p["n"] / (2 * p["m"]) == pytest.approx(0.315, abs=5e-4)
    G, share = np.meshgrid(np.linspace(1, 20, 381), np.linspace(0, 0.9, 181))
    for sizes in ({}, {"N": 1e9, "N_active": 1e9}, {"D": 1e9}):
        L = loss(k=G * (1 - share), E_s=G * share, **sizes)
        best = np.unravel_index(L.argmin(), L.shape)
        assert (G[best], share[best]) == pytest.approx((6.78, 0.315), abs=0.03)


@pytest.mark.parametrize(("N", "fraction"), [(30e9, 0.40), (671e9, 0.22)])
def test_the_best_active_fraction_is_the_papers_where_sizes_count_parameters(N, fraction):
    """In thousands of parameters it would be above four fifths, in millions above 1."""
    p, G, share = LAW.published, 6.78, 0.315
    N_active = N * np.geomspace(0.01, 1, 2001)
    L = loss(N=N, N_active=N_active, k=G * (1 - share), E_s=G * share)
    assert N_active[L.argmin()] / N == pytest.approx(fraction, abs=5e-3)
    structure = p["e"] * G + p["f"] / G + p["m"] * share**2 + p["n"] * share
    wanted = p["alpha"] * (p["kappa"] * structure + p["c"]) / (p["h"] * structure)
    for unit, least in ((1e3, 0.8), (1e6, 1.0)):
        in_unit = N / unit
        assert (wanted * in_unit) ** (1 / (1 + p["alpha"])) / in_unit > least


def test_a_sum_that_is_negative_is_no_nan():
    """As a search may meet it: a share that lowers the loss by far more than there is."""
    theta = LAW.vector(LAW.published | {"n": -900.0, "alpha": 0.01})
    value, jacobian = LAW.function(
        theta[None], LAW.columns({k: np.full(2, v) for k, v in AT.items()})
    )
    assert np.isfinite(value).all()
    assert np.isfinite(jacobian).all()
