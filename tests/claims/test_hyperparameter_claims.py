"""Verdicts on the search's claims: right for known truths, and none where runs cannot tell."""

from dataclasses import replace

import numpy as np
import pytest

from hyperparameters_case import DEMO, Truth, published, table, write_case
from moelaws.claims.base import CANNOT_TELL, NOT_SUPPORTED, SUPPORTED
from moelaws.claims.hyperparameters import CLAIMS, mean_interval
from moelaws.claims.judge import judge

# In the middle of the demo's search at every budget, and hardly any noise.
CLEAR = replace(
    DEMO,
    noise=1e-3,
    lr={"moe": (2.2e-2, -0.4), "dense": (2.0e-2, -0.1)},
    batch_tokens={"moe": (1000, 0.5), "dense": (800, 0.1)},
)


def verdicts(root, frame):
    case = write_case(root, frame)
    return {claim["id"]: claim for claim in judge(case.study, case.inputs)["claims"]}


def test_the_papers_search_supports_the_papers_laws(tmp_path):
    found = verdicts(tmp_path, table("paper", published(1e19, batch=1.8, noise=1e-3)))
    assert {name: claim["verdict"] for name, claim in found.items()} == dict.fromkeys(
        CLAIMS, SUPPORTED
    )
    assert all(claim["needed"] == "" for claim in found.values())


def test_opposite_laws_are_not_supported(tmp_path):
    """Rates that rise, batches that fall, and larger best mixtures."""
    truth = Truth(
        3e10,
        lr={"moe": (2.0e-2, 0.4), "dense": (1.4e-2, 0.3)},
        batch_tokens={"moe": (1000, -0.5), "dense": (1300, 0.5)},
        M={"moe": (1.1e5, 0.35), "dense": (0.7e5, 0.35)},
        noise=1e-3,
        curvature=0.08,
    )
    found = verdicts(tmp_path, table("demo", truth))
    for name in ("lr_falls", "batch_rises", "moe_batch_larger"):
        assert found[name]["verdict"] == NOT_SUPPORTED, found[name]
    # By Table 5 the best mixture is the larger at such budgets: nothing is claimed of them.
    assert found["smaller_model"]["verdict"] == CANNOT_TELL
    assert found["smaller_model"]["low"] > 1
    assert found["across_activation"]["verdict"] == CANNOT_TELL  # one ratio in the demo


def test_the_ends_of_the_search_flatten_a_trend_and_do_not_turn_it(tmp_path):
    """Rates whose best lies above all that were tried at the two larger budgets."""
    truth = replace(CLEAR, lr={"moe": (4e-2, 0.9), "dense": (2e-2, 0.0)})
    found = verdicts(tmp_path, table("demo", truth))["lr_falls"]
    assert found["verdict"] == NOT_SUPPORTED
    assert 0 < found["value"] < 0.9


@pytest.mark.parametrize("lost", ["seeds", "dense", "least budget"])
def test_missing_runs_end_in_no_verdict_not_in_an_error(lost, tmp_path):
    frame = table("demo", CLEAR)
    if lost == "seeds":
        frame = frame[frame["sweep"] != "seeds"].assign(n_seeds=1, L_seed_sd=np.nan)
        silent = {"lr_falls", "batch_rises", "moe_batch_larger"}
    elif lost == "dense":
        of_dense = frame["sweep"].isin(["dense", "dense_sizes"])
        frame.loc[of_dense & (frame["C"] < 8e10), "status"] = "diverged"
        silent = {"moe_batch_larger", "smaller_model"}
    else:
        frame.loc[frame["C"] < 2e10, "status"] = "diverged"
        silent = {"equal_split", "smaller_model"}
    found = judge_what_can_be(tmp_path, frame)
    for name in silent & set(found):
        assert found[name]["verdict"] == CANNOT_TELL
        assert found[name]["needed"]


def judge_what_can_be(root, frame):
    """The verdicts of the claims whose fits exist: a law of one budget has none."""
    case = write_case(root, frame, needed=False)
    return {
        name: vars(claim.judge(case.inputs))
        for name, claim in CLAIMS.items()
        if set(next(c.fits for c in case.study.claims if c.id == name)) <= set(case.fits)
    }


def test_students_interval_of_a_mean():
    low, high = mean_interval(np.array([1.0, 2.0, 3.0]))
    half = 2.92 / np.sqrt(3)  # t of 2 degrees of freedom at 95 %
    assert (low, high) == pytest.approx((2 - half, 2 + half), abs=0.03)
