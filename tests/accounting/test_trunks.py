"""What runs of one trunk really spend."""

import pytest

from moelaws.accounting.cost import CPU, apart, estimate, shared_steps, spent
from moelaws.spec.corpus import Corpus, Text
from random_corpus import VOCABULARY, run_of

TEXT = Corpus(source=Text(digest="0" * 64), vocab_size=VOCABULARY)
WSD = {"kind": "wsd", "warmup_steps": 20, "decay": 0.1}
DECADE = [round(200 * 10 ** (i / 7)) for i in range(8)]


def runs_of(lengths, schedule=WSD, **changes):
    return [run_of(TEXT, steps=n, schedule=schedule, **changes) for n in lengths]


def test_eight_budgets_in_a_decade_cost_less_than_half():
    """All of the longest, and of each other one its decay: (10 + 0.1 * 23.1) / 33.1."""
    runs = runs_of(DECADE)
    steps = sum(run.steps for run in spent(runs)) / sum(DECADE)
    assert steps == pytest.approx(0.372, abs=0.002)
    whole, own = ([estimate(run, CPU) for run in some] for some in (runs, spent(runs)))
    assert sum(c.flops for c in own) / sum(c.flops for c in whole) == pytest.approx(steps)
    # Each run starts a process and is evaluated, whatever it shares.
    per_step = (whole[1].seconds - whole[0].seconds) / (DECADE[1] - DECADE[0])
    saved = sum(c.seconds for c in whole) - sum(c.seconds for c in own)
    assert saved == pytest.approx(per_step * (1 - steps) * sum(DECADE))


def test_each_step_of_a_trunk_is_trained_once():
    runs = runs_of(DECADE)
    branches = [run.branch_step for run in runs]
    assert shared_steps(reversed(runs)) == dict(
        zip((run.run_id for run in runs[1:]), branches, strict=False)
    )
    decays = sum(run.steps - run.branch_step for run in runs)
    assert sum(run.steps for run in spent(runs)) == branches[-1] + decays


def test_what_shares_no_trunk_is_spent_whole():
    for changes in ({"kind": "cosine", "warmup_steps": 20}, {"kind": "wsd", "warmup": 0.1}):
        assert not shared_steps(runs_of(DECADE, changes))
    other_seeds = [*runs_of(DECADE[:1]), *runs_of(DECADE[1:2], seed=1)]
    assert not shared_steps(other_seeds)
    runs = runs_of(DECADE[:3])
    assert shared_steps(runs, {runs[0].run_id: (), runs[1].run_id: (9,)}) == {
        runs[2].run_id: runs[0].branch_step
    }


def test_rates_by_length_are_told_from_other_reasons_to_share_nothing():
    rates = [run_of(TEXT, steps=n, schedule=WSD, optimizer={"lr": 1 / n}) for n in DECADE]
    batches = [run_of(TEXT, steps=n, schedule=WSD, batch=2 * i) for i, n in enumerate(DECADE, 1)]
    assert apart(rates)
    assert apart(batches)
    assert not apart(runs_of(DECADE))
    assert not apart(runs_of(DECADE, {"kind": "wsd", "warmup": 0.1}))
    assert not apart([run_of(TEXT, schedule=WSD, optimizer={"lr": lr}) for lr in (0.1, 0.2)])


def test_lengths_with_rates_of_their_own_are_told_beside_those_that_share_a_trunk():
    def at(lr, lengths):
        return [run_of(TEXT, steps=n, schedule=WSD, optimizer={"lr": lr}) for n in lengths]

    trunk = at(0.1, DECADE[:3])
    assert apart([*trunk, *at(0.2, DECADE[3:4])])
    assert not apart([*trunk, *at(0.2, DECADE[1:2])])  # one more rate tried at one of its lengths
    assert not apart([*trunk, *runs_of(DECADE[3:4], seed=1)])
