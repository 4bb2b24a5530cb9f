"""Where a sweep leads: advice at budgets beyond its largest, as a page."""

import math
from collections.abc import Mapping

from moelaws.analysis.advice.advise import Advice
from moelaws.analysis.advice.page import Block, details, markdown, summary
from moelaws.analysis.advice.short import build, expected

EPOCHS = 4  # the largest number of passes over the text of the runs


def page(answers: Mapping[float, Advice], tier: str, left_out: Mapping[str, str]) -> str:
    """Returns the answers by their factor over the largest budget, and why fits take no part."""
    text: list[Block] = [
        f"# What these runs advise ({tier} tier)",
        "Each law of the loss is taken as the truth in turn: the published ones, and those that "
        "were fitted to the runs of this tier. The robust plan is the model of the least "
        "worst-case regret, among all that can be built. "
        "`moelaws advise` answers for any other budget and for constraints.",
    ]
    limits = next(iter(answers.values())).limits
    if limits.max_tokens < math.inf:
        text.append(
            f"A plan trains on at most {limits.max_tokens:.3g} tokens: the text of these runs, "
            f"{EPOCHS} times over, which costs little against new text (Muennighoff et al. 2023)."
        )
    text += [f"`{name}` takes no part: {reason}." for name, reason in left_out.items()]
    for factor, answer in answers.items():
        budget = f"{answer.limits.compute:.3g} FLOPs"
        text += [f"## {factor:g} times the largest budget: {budget}", build(answer)]
        text += [expected(answer), *summary(answer), *details(answer)]
    return markdown(text)
