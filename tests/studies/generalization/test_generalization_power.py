"""What `needed` says of the claims over experts: the paper tier finds them, and not by chance."""

import pytest

from moelaws.analysis.fitted import FittedInputs
from moelaws.claims.base import Verdict
from moelaws.claims.judge import judged
from moelaws.fitting.fit import fit
from moelaws.fitting.report import write_fit
from moelaws.grids.sweep import expand_study
from moelaws.laws.joint import loss as joint
from moelaws.spec.project import Project, load_study
from moelaws.tables.simulate import design, simulate
from repository import REPOSITORY

STUDY = load_study("generalization", REPOSITORY)
# Exponents that no number of experts changes; and a best ratio that none does
ALIKE = {"gamma": 0.0, "zeta": 0.0}
NULLS = {"kappa_grows": ALIKE, "ratio_rises": {**ALIKE, "omega": joint.LAW.published["delta"]}}


@pytest.fixture(scope="module")
def runs():
    sweep = expand_study(STUDY, Project(tier="paper", source="simulated"), REPOSITORY)
    return design(sweep, sweeps=STUDY.simulation.sweeps)


def supported(folder, runs, changes, tables):
    """In how many simulated tables, with the study's noise, the rules support their claims."""
    params, entry = {**joint.LAW.published, **changes}, STUDY.simulation
    quick = {"bootstrap": 60, "protocol": {"sample": 5}}
    spec = STUDY.fit("joint").model_copy(update=quick)
    counts = dict.fromkeys(NULLS, 0)
    for seed in range(tables):
        table = simulate(
            runs, joint.LAW, params, mapping=entry.mapping, noise=entry.noise, seed=seed
        )
        write_fit(fit(joint.LAW, table.frame, spec), folder / "joint.json")
        inputs = FittedInputs(frame=table.frame, fits={"joint": folder / "joint.json"})
        for claim in counts:
            verdict = judged(STUDY, STUDY.entry("claims", claim), inputs)["verdict"]
            counts[claim] += verdict is Verdict.SUPPORTED
    return counts


@pytest.mark.slow
def test_the_paper_tier_finds_what_changes_with_experts(tmp_path, runs):
    """As `needed` of the claims says."""
    assert min(supported(tmp_path, runs, {}, 6).values()) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("claim", NULLS)
def test_without_the_change_chance_supports_it_at_most_once_in_ten(tmp_path, runs, claim):
    # Of 20 tables with a chance of 1 in 20, more than 3 have it once in 60.
    assert supported(tmp_path, runs, NULLS[claim], 20)[claim] <= 3
