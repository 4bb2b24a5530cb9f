"""The sparsity paper's Eq 6 and Eq 8 against numbers worked out apart from this code."""

import numpy as np
import pytest

from moelaws import laws
from moelaws.spec.errors import UserError
from moelaws.studies.sparsity.laws import isoflop, loss

PAPER = loss.LAW.published


@pytest.mark.parametrize(
    ("N", "D", "S", "expected"),
    [
        (1e9, 2e10, 0.0, 2.5656813083550216),
        (1e9, 2e10, 0.98, 2.897756762516784),
        (5e8, 1e10, 0.5, 2.8546819868613635),
        (1e10, 1e11, 0.95, 2.1902190974445435),
    ],
)
def test_eq_6_with_table_3(N, D, S, expected):
    assert loss.LAW.predict(PAPER, {"N": N, "D": D, "S": S}) == pytest.approx(expected, rel=1e-6)


def test_optimal_sparsity_rises_with_size_and_falls_with_compute():
    S_opt = loss.optimal_sparsity(
        PAPER, [1e9, 1e10, 1e9, 1e8, 1e10], [1e20, 1e20, 1e21, 1e21, 1e21]
    )
    expected = [0.8723786514788564, 0.9832562970424884, 0.6232976665577132, 0.0, 0.942304]
    assert S_opt == pytest.approx(expected, rel=1e-5)
    budgets = loss.optimal_sparsity(PAPER, 1e9, [3e19, 1e20, 1e21])  # erratum E2.1
    assert budgets == pytest.approx([0.9335, 0.8724, 0.6233], abs=5e-5)


def test_optimal_size_at_fixed_compute():
    best = loss.optimal_size(PAPER, [0.0, 0.9, 0.98], 1e20)
    sizes, losses = best.N, best.L
    assert sizes == pytest.approx([639182900.274, 3969987325.979, 17068675012.26], rel=1e-4)
    assert best.N_active == pytest.approx([639182900.274, 396998732.598, 341373500.245], rel=1e-4)
    assert losses == pytest.approx([2.5885070341, 2.3637822529, 2.2707810017], rel=1e-4)


def test_optimal_active_size_falls_with_sparsity_and_rises_with_compute():
    """Against the paper's sec 6 and introduction (erratum E2.2)."""
    budgets = loss.optimal_size(PAPER, 0.9, [3e19, 1e20, 1e21]).N_active
    assert budgets == pytest.approx([1.85e8, 3.97e8, 1.81e9], rel=5e-3)
    S, C = np.linspace(0, 0.98, 50)[:, None], np.geomspace(3e19, 1e21, 7)
    active = loss.optimal_size(PAPER, S, C).N_active
    assert (np.diff(active, axis=0) < 0).all()
    assert (np.diff(active, axis=1) > 0).all()


def test_optimal_size_is_the_least_loss_of_a_fine_grid():
    N = np.geomspace(1e7, 1e12, 200_001)
    for S, C in [(0.0, 3e19), (0.75, 1e20), (0.98, 1e21)]:
        L = loss.LAW.predict(PAPER, {"N": N, "D": C / (6 * (1 - S) * N), "S": S})
        best = loss.optimal_size(PAPER, S, C)
        size, least = float(best.N), float(best.L)
        assert size == pytest.approx(N[L.argmin()], rel=1e-4)
        assert least <= L.min()


def test_dense_is_best_below_a_threshold():
    """As the errata print it; the paper's text, up to 5e8, holds at none of the budgets."""
    C = np.array([3e19, 6e19, 1e20, 3e20, 1e21])
    threshold = np.array([4.3e7, 6.4e7, 8.477e7, 1.53e8, 2.806e8])
    assert (loss.optimal_sparsity(PAPER, 0.985 * threshold, C) == 0).all()
    assert (loss.optimal_sparsity(PAPER, 1.015 * threshold, C) > 0).all()


def test_rows_implied_by_the_reported_huber_error():
    """As sums of Huber losses the paper's two errors are of about 196 and 18 rows (E2.3)."""
    rows = loss.implied_rows([0.0036, 0.0011], [0.00056, 0.0058])
    assert rows == pytest.approx([195.85020744953064, 18.25269360303175], rel=1e-4)
    # The exact mean of a Huber loss over Gaussian residuals, by integration.
    z = np.linspace(-10, 10, 400_001)
    r = np.abs(z) * 0.00056**0.5
    huber = np.where(r < 1e-3, r**2 / 2, 1e-3 * (r - 5e-4))
    mean = np.trapezoid(huber * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi), z)
    assert 0.0036 / mean == pytest.approx(195.79, abs=5e-3)
    assert np.isnan(loss.implied_rows(0.0036, 1e-8))


def test_every_degree_is_a_variant():
    variants = laws.variants("sparsity.isoflop")
    assert len(variants) == len(set(variants)) == 125
    assert laws.get("sparsity.isoflop:222").names == isoflop.LAW.names
    assert laws.get("sparsity.isoflop:000").names == ("d",)
    assert laws.get("sparsity.isoflop:402").names == ("a1", "a2", "a3", "a4", "c1", "c2", "d")
    for name, law in variants.items():
        assert (law.id, law.variant) == ("sparsity.isoflop", name)
        assert len(law.parameters) == 1 + sum(map(int, name))
    with pytest.raises(UserError, match="no variant '225'"):
        laws.get("sparsity.isoflop:225")
