"""Where nothing is pinned, ``moelaws grid`` says what Step Law would set in place of Eq 5."""

import re

import pytest

from moelaws.grids.sweep import sweep_of
from moelaws.spec.project import Project


@pytest.mark.parametrize(("tier", "source", "said"), [
    ("gpu", "auto", True), ("gpu", "step_law", False),
    ("demo", "auto", False),  # pinned
    ("paper", "auto", False),  # the grid's own table
])  # fmt: skip
def test_step_law_stands_beside_eq_5_where_auto_chooses_that(tier, source, said):
    project = Project(tier=tier, hyperparameters=source)
    text = sweep_of("allocation", project).beside_eq_5(project)
    assert bool(text) is said
    if said:
        low, high = map(float, re.search(r"take (\S+) to (\S+) times as much", text).groups())
        own = sweep_of("allocation", project).runs
        step = sweep_of("allocation", Project(tier=tier, hyperparameters="step_law")).runs
        ratios = [
            b.config.optimizer.lr / a.config.optimizer.lr for a, b in zip(own, step, strict=True)
        ]
        assert (low, high) == pytest.approx((min(ratios), max(ratios)), rel=0.05)
