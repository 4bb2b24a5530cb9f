"""What the claims on scores at equal loss say of scores without the effect.

The runs are those of docs/evidence/scores.parquet, with their losses and sparsities. Scores follow
the regression of the real ones, with a shift by sparsity of our choice. Their noise is the
residuals of that regression, times a normal number for each run, or for each width.
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from moelaws.claims.base import Verdict, verdict
from moelaws.claims.measure import measured
from moelaws.spec.project import load_study
from moelaws.studies.sparsity.derived import scores
from repository import REPOSITORY

STUDY = load_study("sparsity", REPOSITORY)
CLAIMS = {claim.name: claim for claim in STUDY.claims}
READING = "reading comprehension"
EQUAL, READ_WORSE = "sparsity_changes_no_score_at_equal_loss", "sparser_models_read_worse"
SCORES = pd.read_parquet(REPOSITORY / "docs/evidence/scores.parquet").query("by == 'group'")
MARGIN = CLAIMS[EQUAL].expect.below
TABLES = 100


def scored(rows, equivalent, rng, by):
    """Bits per byte of a group's ``rows``; the residuals times a normal number for each ``by``."""
    coefficients = scores.regress(rows, "bits_per_byte")[0].copy()
    X = scores.regressors(rows, rows["L"].to_numpy(), rows["S"].to_numpy())
    residuals = rows["bits_per_byte"] - X @ coefficients
    coefficients[3] = equivalent * coefficients[1] / np.ptp(X[:, 3])
    factor = {value: rng.standard_normal() for value in sorted(rows[by].unique())}
    return rows.assign(bits_per_byte=X @ coefficients + residuals * rows[by].map(factor))


def supported(claim, equivalent_of_group, by):
    """How many of the tables support the claim."""
    count = 0
    for seed in range(TABLES):
        rng = np.random.default_rng(seed)
        drawn = []
        for group, equivalent in equivalent_of_group.items():
            source = "continuation" if group == READING else group
            rows = SCORES[SCORES["skill"] == source].assign(skill=group, group=group)
            drawn.append(scored(rows, equivalent, rng, by))
        downstream = SimpleNamespace(derived={"downstream": pd.concat(drawn)}.get)
        relation = {"relation": pd.DataFrame(scores.relation(downstream))}
        inputs, entry = SimpleNamespace(derived=relation.get), CLAIMS[claim]
        evidence = measured(inputs, entry.measure)
        decision = verdict(evidence.intervals, entry.expect.above, entry.expect.below)
        count += decision == Verdict.SUPPORTED
    return count


@pytest.mark.slow
@pytest.mark.parametrize("by", ["run_id", "d_model"])
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_group_off_by_the_margin_is_seldom_called_equal(sign, by):
    for off in ("continuation", "syntax"):
        shifts = {"continuation": 0.0, "syntax": 0.0, off: sign * MARGIN}
        assert supported(EQUAL, shifts, by) <= 10, off


@pytest.mark.slow
@pytest.mark.parametrize("by", ["run_id", "d_model"])
def test_reading_alike_is_seldom_called_worse(by):
    assert supported(READ_WORSE, {READING: 0.0}, by) <= 10
    assert supported(READ_WORSE, {READING: MARGIN}, by) >= 90
