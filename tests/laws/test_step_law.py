"""Step Law on the searches of its authors, dense models and mixtures."""

import numpy as np
import pytest

from public_runs import public
from repository import REPOSITORY


@pytest.mark.parametrize(
    ("file", "searches", "mean", "worst"),
    [
        ("dense_lr_bs_loss.csv", 17, 0.002, 0.008),
        ("moe_lr_bs_loss.csv", 16, 0.004, 0.011),  # with all experts in N
    ],
)
def test_its_rate_and_batch_end_near_the_best_of_each_search(
    monkeypatch, file, searches, mean, worst
):
    """In nats above the best run of a search; Eq 5 (leverage) ends five times as far above."""
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")
    import step_law

    lost = step_law.losses(public(file))
    own = lost["Step Law"]
    assert len(own) == searches
    assert (np.mean(own), max(own)) == pytest.approx((mean, worst), abs=5e-4)
    assert np.mean(lost["Eq 5"]) > 5 * np.mean(own)
    by_active = np.mean(lost["Step Law, N active"])
    assert by_active == pytest.approx(0.025 if "moe" in file else mean, abs=5e-4)
