"""What the study claims: rules on the effects of choices at equal FLOPs."""

import math

import numpy as np

from moelaws.analysis.inputs import Inputs
from moelaws.claims.base import Evidence
from moelaws.studies.routing_choices.arms import ARMS, BASE, MUON, Arms


def no_worse(inputs: Inputs, arm: str) -> Evidence:
    """Returns by how many percent an arm's loss is above the base's, at equal FLOPs and tokens."""
    arms = Arms(inputs)
    effect = arms.effect(arm)
    if not effect.n:
        return Evidence(f"no block has both {ARMS[arm]} and {ARMS[BASE]}")
    documents = arms.documents(arm)
    known = "" if math.isnan(documents) else f"; the error by documents is {documents:.2g}"
    words = f"the loss of {ARMS[arm]} is higher by {effect} % than that of {ARMS[BASE]}"
    return Evidence(f"{words}, in {effect.n} blocks{known}", effect, "%")


def fewer_flops(inputs: Inputs) -> Evidence:
    """Returns the FLOPs that Muon needs for the loss of AdamW, over those of AdamW."""
    arms = Arms(inputs)
    effect = arms.effect(MUON)
    if not effect.n or not arms.slope() < 0:
        return Evidence("Muon's runs, or AdamW's of two budgets whose loss falls, did not complete")
    ratio = effect.map(lambda change: np.exp(change / -arms.slope()))
    changes, budgets = arms.changes(MUON)
    by_budget = changes.groupby(budgets).mean()
    each = (f"{change:.2g} % at {C:.0e} FLOPs" for C, change in by_budget.items())
    return Evidence(
        f"for equal loss Muon needs {ratio} times the FLOPs of AdamW, in {ratio.n} blocks; "
        f"{ratio.value * (1 + arms.own_products()):.2f} times with its own products; "
        f"at equal FLOPs its loss differs by {', '.join(each)}",
        ratio,
    )


def order_matters(inputs: Inputs) -> Evidence:
    """Returns the slope of the loss over compute on shuffled text over that on text."""
    arms = Arms(inputs)
    if not arms.slope(BASE) < 0:
        return Evidence("the loss on text does not fall over two budgets")
    ratio = arms.flattening()
    return Evidence(
        f"d ln L / d ln C of shuffled text over that of text is {ratio}, in {ratio.n} blocks", ratio
    )
