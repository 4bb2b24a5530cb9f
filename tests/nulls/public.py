"""Tables of marin's budgets and sizes, with the noise of its repeated runs at most."""

from dataclasses import replace
from functools import partial

from nulls.trial import null, seen
from public_case import Register, best_size, isoflop_losses, write_isoflop, write_ladder

FRONTIER = "the_frontier_predicts_a_larger_budget"
FASTER = "the_best_size_grows_faster_than_the_tokens"
LEVERAGE = "a_mixture_needs_several_times_less_compute"


def isoflop(seed, claim, **options):
    return Register().add("marin-v16", write_isoflop, seed=seed, **options).inputs_of(claim)


def ladder(seed, leverage):
    options = {"seed": seed, "leverage": leverage, "noise": 0.005}
    register = Register().add("marin-ladder", write_ladder, **options)
    return register.add("marin-v16", write_isoflop).inputs_of(LEVERAGE)


def plateau(C, N):
    """Beyond 3e20 FLOP the least loss stays as it is."""
    best = best_size(C)
    return isoflop_losses(min(C, 3e20), N * best_size(min(C, 3e20)) / best)


def steep(C, N):
    """The best size grows as C^0.6."""
    return isoflop_losses(C, N, 0.6)


TRIALS = [
    null(FRONTIER, partial(isoflop, claim=FRONTIER, losses=plateau), 40),
    seen(FRONTIER, partial(isoflop, claim=FRONTIER), 20, 40),
    # At even growth a 90 % interval lies above 0.5 in one table of twenty
    replace(null(FASTER, partial(isoflop, claim=FASTER, noise=0.003), 40), supported=(0, 5)),
    seen(FASTER, partial(isoflop, claim=FASTER, losses=steep), 20, 40),
    null(LEVERAGE, partial(ladder, leverage=1.0), 40),
    seen(LEVERAGE, partial(ladder, leverage=4.2), 40, 40),
]
