"""What the rules say of tables in which the claims' effects are not there, and in which they are.

Tables have marin's budgets and sizes, the noise of its repeated runs at most, and losses of a law.
"""

from collections import Counter

import pytest

from moelaws.claims.base import Verdict
from public_case import Register, best_size, isoflop_losses, write_isoflop, write_ladder

TABLES = 40
SUPPORTED, NOT_SUPPORTED = str(Verdict.SUPPORTED), str(Verdict.NOT_SUPPORTED)


def judged(claim, name, write, **options):
    """How often each verdict is given on the tables."""
    verdicts = Counter()
    for seed in range(TABLES):
        register = Register().add(name, write, seed=seed, **options)
        if name != "marin-v16":
            register.add("marin-v16", write_isoflop)
        verdicts[register.judge(claim)["verdict"]] += 1
    return verdicts


@pytest.mark.slow
def test_a_loss_that_falls_no_further_is_not_predicted(project_folder):
    """The null plateau: beyond 3e20 FLOP the least loss stays as it is."""

    def plateau(C, N):
        best = best_size(C)
        return isoflop_losses(min(C, 3e20), N * best_size(min(C, 3e20)) / best)

    claim = "the_frontier_predicts_a_larger_budget"
    verdicts = judged(claim, "marin-v16", write_isoflop, losses=plateau)
    assert verdicts[SUPPORTED] <= 4
    verdicts = judged(claim, "marin-v16", write_isoflop)
    assert verdicts[SUPPORTED] >= 20  # where the law holds


@pytest.mark.slow
def test_growth_as_the_root_of_compute_is_not_called_faster(project_folder):
    """The null even_growth, at which a 90 % interval lies above 0.5 in one table of twenty."""
    claim = "the_best_size_grows_faster_than_the_tokens"
    verdicts = judged(claim, "marin-v16", write_isoflop, noise=0.003)
    assert verdicts[SUPPORTED] <= 5
    faster = judged(
        claim, "marin-v16", write_isoflop, losses=lambda C, N: isoflop_losses(C, N, 0.6)
    )
    assert faster[SUPPORTED] >= 20


@pytest.mark.slow
def test_mixtures_of_the_dense_loss_save_nothing(project_folder):
    """The null no_leverage, at which each of three floors must lie above 1."""
    claim = "a_mixture_needs_several_times_less_compute"
    ladder = {"noise": 0.005}
    verdicts = judged(claim, "marin-ladder", write_ladder, leverage=1.0, **ladder)
    assert verdicts[SUPPORTED] <= 4
    verdicts = judged(claim, "marin-ladder", write_ladder, leverage=4.2, **ladder)
    assert verdicts[SUPPORTED] == TABLES


def test_a_rule_cannot_tell_where_its_table_is_missing(register):
    """The isoFLOP runs alone are here."""
    register.add("marin-v16", write_isoflop)
    verdict = register.judge("a_mixture_needs_several_times_less_compute")
    assert verdict["verdict"] == str(Verdict.CANNOT_TELL)
    assert verdict["measured"] == "the table leverage has no row"
    assert verdict["needed"] == "import marin-ladder"
