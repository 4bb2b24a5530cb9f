"""Where a sweep leads: advice at budgets beyond its largest, as a page."""

import math
from collections.abc import Iterator, Mapping

from moelaws.analysis.advice.advise import Advice
from moelaws.analysis.advice.page import Block, Table, details, summary
from moelaws.analysis.advice.short import beside, quantities, shape_in_words

EPOCHS = 4  # the largest number of passes over the text of the runs


def page(answers: Mapping[str, Advice], tier: str, left_out: Mapping[str, str]) -> Iterator[Block]:
    """Yields the answers under their titles, and why fits take no part."""
    yield f"# What these runs advise ({tier} tier)"
    yield (
        "Each law of the loss is taken as the truth in turn: the published ones, and those that "
        "were fitted to the runs of this tier. The robust plan is the model of the least "
        "worst-case regret, among all that can be built. "
        "`moelaws advise` answers for any other budget and for constraints."
    )
    limits = next(iter(answers.values())).limits
    if limits.max_tokens < math.inf:
        yield (
            f"A plan trains on at most {limits.max_tokens:.3g} tokens: the text of these runs, "
            f"{EPOCHS} times over, which costs little against new text (Muennighoff et al. 2023)."
        )
    yield from (f"`{name}` takes no part: {reason}." for name, reason in left_out.items())
    for title, answer in answers.items():
        yield f"## {title}"
        yield f"Build {shape_in_words(answer.configuration.model)}."
        yield Table(("", "robust"), beside({"": quantities(answer)}))
        yield from summary(answer)
        yield from details(answer)
