"""Rules of claims are right as often as their intervals say, with the effect and without it."""

from importlib import import_module

import pytest

from moelaws.spec.project import load_study
from nulls.trial import NOT_SUPPORTED, SUPPORTED, decided
from repository import REPOSITORY

STUDIES = {
    name: import_module(f"nulls.{name}").TRIALS
    for name in (
        "allocation", "generalization", "hyperparameters", "leverage", "public", "routing",
        "routing_choices", "sectional", "sparsity", "transfer",
    )
}  # fmt: skip
# Those that say nothing of how many may support or refute are for benchmarks/nulls.py to count.
EVERY = [
    (study, trial)
    for study, trials in STUDIES.items()
    for trial in trials
    if trial.supported != (0, trial.tables) or trial.refuted[1] < trial.tables
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "trial"), EVERY, ids=[f"{name}-{trial.claims[0]}" for name, trial in EVERY]
)
def test_a_rule_is_right_as_often_as_its_interval_says(name, trial, project_folder):
    study = load_study(name, REPOSITORY)
    verdicts = {claim: [] for claim in trial.claims}
    for given in map(trial.made, range(trial.tables)):
        for claim, own in verdicts.items():
            own.append(decided(study, claim, given))
    for claim, own in verdicts.items():
        assert trial.supported[0] <= own.count(SUPPORTED) <= trial.supported[1], claim
        assert trial.refuted[0] <= own.count(NOT_SUPPORTED) <= trial.refuted[1], claim


OF_DIMENSIONS = {"small_dimension", "simplest_corpus", "depth_profile"}  # which no loss moves


@pytest.mark.parametrize("name", STUDIES)
def test_every_claim_with_a_null_is_tried(name):
    claims = {claim.name for claim in load_study(name, REPOSITORY).claims if claim.null_model}
    tried = {claim for trial in STUDIES[name] for claim in trial.claims}
    assert claims - OF_DIMENSIONS == tried
