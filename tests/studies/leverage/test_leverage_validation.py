"""The claim that Eq 4, fitted to leverages below 6, predicts those of 6 and more (sec 4.2.3)."""

import numpy as np
import pytest

from moelaws.claims.base import Verdict
from moelaws.claims.judge import judged
from nulls.leverage import EQ_4, STUDY, leverages, of_points


def verdict(points):
    return judged(STUDY, STUDY.entry("claims", EQ_4), of_points(points))


@pytest.mark.slow
def test_a_law_that_steepens_above_4_is_not_predicted(project_folder):
    points = leverages(np.random.default_rng(1), curves=0.01)
    steeper = points["EL"] * np.maximum(points["EL"] / 4, 1) ** 2
    judgement = verdict(points.assign(EL=steeper))
    assert judgement["verdict"] is Verdict.NOT_SUPPORTED
    assert "are extrapolated" in judgement["measured"]


@pytest.mark.slow
def test_few_points_of_6_decide_nothing(project_folder):
    points = leverages(np.random.default_rng(1))
    few = points[(points["EL"] < 6) | points["architecture"].isin(["5", "6"])]
    assert verdict(few)["verdict"] is Verdict.CANNOT_TELL
