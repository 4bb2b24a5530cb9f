"""Where a sweep leads: advice at budgets beyond its largest, as a table and as a page."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moelaws.analysis.advice.advise import Advice
from moelaws.analysis.advice.page import Block, details, markdown
from moelaws.analysis.advice.regret import LEVEL
from moelaws.analysis.advice.short import in_short
from moelaws.tables.column import Column

EPOCHS = 4  # the largest number of passes over the text of the runs

COLUMNS = (
    Column("budget", "float", "FLOP", "budget of the plans"),
    Column("plan", "string", "1", "the law that recommends it, or robust"),
    Column("judge", "string", "1", "the law that is taken as the truth"),
    Column("N", "float", "parameters", "total parameters of the plan"),
    Column("N_active", "float", "parameters", "parameters of the plan that a token passes"),
    Column("S", "float", "1", "sparsity of the plan"),
    Column("D", "float", "tokens", "training tokens of the plan"),
    Column("regret", "float", "nats/token", "loss above that of the best plan by this law", True),
    Column("regret_low", "float", "nats/token", f"{LEVEL:.0%} interval over draws", nullable=True),
    Column("regret_high", "float", "nats/token", "its upper end", nullable=True),
    Column("compute_factor", "float", "1", "compute that the best plan would save", nullable=True),
)


def rows(answers: Sequence[Advice]) -> Iterator[dict[str, Any]]:
    """Yields a row, with the ``COLUMNS``, for each budget, plan and law taken as the truth."""
    for answer in answers:
        for row in answer.rows:
            plan = row.plan.values()
            for law, regret in row.regret.items():
                yield {
                    "budget": answer.limits.compute,
                    "plan": row.name,
                    "judge": law,
                    **{name: plan[name] for name in ("N", "N_active", "S", "D")},
                    "regret": regret.nats,
                    "regret_low": regret.low,
                    "regret_high": regret.high,
                    "compute_factor": regret.compute_factor,
                }


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
        text += [f"## {factor:g} times the largest budget: {budget}", *in_short(answer)]
        text += details(answer)
    return markdown(text)
