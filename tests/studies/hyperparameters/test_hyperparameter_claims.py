"""Verdicts on the search's claims: right for known truths, and none where runs cannot tell."""

import json
from dataclasses import replace

import numpy as np
import pytest

from hyperparameters_case import DEMO, STUDY, Truth, published, table, write_case
from moelaws.claims.base import Verdict
from moelaws.claims.judge import judge, judged
from nulls.hyperparameters import made
from nulls.trial import decided

SUPPORTED, NOT_SUPPORTED, CANNOT_TELL = Verdict

# In the middle of the demo's search at every budget, and hardly any noise.
CLEAR = replace(
    DEMO,
    noise=1e-3,
    lr={"moe": (2.2e-2, -0.4), "dense": (2.0e-2, -0.1)},
    batch_tokens={"moe": (1000, 0.5), "dense": (800, 0.1)},
)


def verdicts(root, frame):
    inputs = write_case(root, frame).inputs
    return {claim["name"]: claim for claim in judge(STUDY, inputs)["claims"]}


def test_the_papers_search_supports_the_papers_laws(tmp_path):
    claims = verdicts(tmp_path, table("paper", published(1e19, batch=1.8, noise=1e-3)))
    assert {name: claim["verdict"] for name, claim in claims.items()} == dict.fromkeys(
        claims, SUPPORTED
    )


@pytest.mark.slow
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
    claims = verdicts(tmp_path, table("demo", truth))
    for name in ("lr_falls", "batch_rises", "moe_batch_larger"):
        assert claims[name]["verdict"] == NOT_SUPPORTED, claims[name]
    # By Table 5 the best mixture is the larger at such budgets: nothing is claimed of them.
    assert claims["smaller_model"]["verdict"] == CANNOT_TELL
    assert claims["smaller_model"]["low"] > 1
    assert claims["across_activation"]["verdict"] == CANNOT_TELL  # one ratio in the demo


def test_laws_that_miss_other_ratios_are_not_supported():
    """Where 2 and 6 of 64 experts are active, the best rate is the largest tried."""

    def largest(frame, rng):
        off = 0.5 * np.log(frame["lr"] / frame["lr"].max()) ** 2
        return frame.assign(L=frame["L"] + off.where(frame["sweep"] == "activation", 0.0))

    search = made(0, "paper", published(1e19, noise=1e-3), largest)
    assert decided(STUDY, "across_activation", search) == NOT_SUPPORTED
    once = made(0, "paper", published(1e19), lambda frame, _: frame.assign(L_seed_sd=np.nan))
    assert decided(STUDY, "across_activation", once) == CANNOT_TELL  # no seed was repeated


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["seeds", "least budget"])
def test_missing_runs_end_in_no_verdict_not_in_an_error(lost, tmp_path):
    frame = table("demo", CLEAR)
    if lost == "seeds":
        frame = frame[frame["sweep"] != "seeds"].assign(n_seeds=1, L_seed_sd=np.nan)
        silent = {"lr_falls", "batch_rises", "moe_batch_larger"}
    else:
        frame.loc[frame["C"] < 2e10, "status"] = "diverged"
        silent = {"equal_split", "smaller_model"}
    case = write_case(tmp_path, frame, every_fit=False)
    for claim in STUDY.claims:
        if set(claim.fits) <= set(case.fits):  # a law of one budget has none
            verdict = judged(STUDY, claim, case.inputs)
            json.dumps(verdict, allow_nan=False)
            if claim.name in silent:
                assert verdict["verdict"] == CANNOT_TELL
                assert verdict["needed"]
