"""Krajewski et al.'s law of fine-grained experts against the losses that the paper predicts."""

import numpy as np
import pytest

from moelaws import laws
from moelaws.laws.mapping import sources
from moelaws.laws.vocabulary import same_quantity
from moelaws.spec.errors import UserError

LAW = laws.get("granularity.loss")
DENSE = laws.get("granularity.loss:dense")

# Table 2: active parameters, tokens, granularity and predicted loss of compute-optimal models.
TABLE_2 = np.array(
    [
        (100e6, 4.37e9, 8, 3.133),
        (1e9, 28.94e9, 16, 2.491),
        (3e9, 72.90e9, 16, 2.245),
        (7e9, 137.60e9, 32, 2.076),
        (70e9, 941.07e9, 32, 1.694),
        (300e9, 2.96e12, 64, 1.503),
        (1e12, 7.94e12, 64, 1.367),
    ]
)


def test_losses_of_table_2():
    """Within 1 %, what coefficients of two to three digits allow; N = (8 E + 4)/12 N_active."""
    active, D, G, loss = TABLE_2.T
    N = active * (8 * 64 + 4) / 12
    assert LAW.predict(LAW.published, {"N": N, "D": D, "G": G}) == pytest.approx(loss, rel=0.01)


def test_dense_models_need_twenty_times_the_compute():
    """The abstract's claim at 1e20 FLOPs: the best dense loss at 20 times the compute is equal."""
    N = np.geomspace(1e8, 1e11, 4001)
    best = DENSE.predict(DENSE.published, {"N": N, "D": 20 * 1.93e20 / (6 * N)}).min()
    assert best == pytest.approx(2.491, rel=0.01)


def test_finer_experts_approach_the_limit_of_the_form_without_granularity():
    at = {"N": 1e9, "D": 2e10}
    falling = LAW.predict(LAW.published, at | {"G": 2.0 ** np.arange(12)})
    limit = DENSE.predict({k: LAW.published[k] for k in DENSE.names}, at)
    assert (np.diff(falling) < 0).all()
    assert (falling > limit).all()
    assert LAW.predict(LAW.published, at | {"G": 1e12}) == pytest.approx(float(limit), rel=1e-6)


def test_the_leverage_paper_s_granularity_does_not_stand_in_for_twice_it():
    """2 d_model / d_expert, which follows from a table's widths, is half of this law's G."""
    G = {v.name: v for v in LAW.variables}["G"]
    assert not same_quantity(G)
    assert same_quantity(laws.get("leverage.granularity").variables[0])
    with pytest.raises(UserError, match=r"no column 'G' for G of granularity\.loss"):
        sources(LAW, {}, ["N", "D", "L", "d_model", "d_expert"])
    assert sources(LAW, {}, ["N", "D", "L", "G"]).columns["G"] == "G"
