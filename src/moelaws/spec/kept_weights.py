"""Which runs of a study keep their weights, and at which steps."""

from pydantic import field_validator

from moelaws.spec.base import Frozen, Positive
from moelaws.spec.fit import NoName
from moelaws.spec.rows import RowExpression
from moelaws.spec.tier import Tier
from moelaws.spec.validation import must_be


class KeptWeights(Frozen):
    """Which runs of a study keep their weights: at the end, and at steps on the way."""

    # Selects the runs by columns that are known before training, such as ``C >= 1e11``
    rows: RowExpression = ""
    sweep: NoName = ""  # a sweep of the grid, to whose runs this is limited
    # Steps on the way: whole numbers, or fractions of a run's steps, such as 0.25
    steps: tuple[Positive, ...] = ()
    tiers: tuple[Tier, ...] = ()  # the tiers at which weights are kept; none named: all

    @field_validator("steps")
    @classmethod
    def _are_steps_or_fractions(cls, steps: tuple[float, ...]) -> tuple[float, ...]:
        for step in steps:
            if step >= 1 and not step.is_integer():
                raise must_be("a whole number of steps, or a fraction of all steps below 1")
        return steps

    def keeps_any(self, tier: str) -> bool:
        return bool(self.rows.strip() or self.sweep) and tier in (self.tiers or (tier,))

    def steps_of(self, total: int) -> tuple[int, ...]:
        """Returns the steps on the way at which a run of ``total`` steps keeps weights, sorted."""
        steps = {round(step * total) if step < 1 else int(step) for step in self.steps}
        return tuple(sorted(step for step in steps if 0 < step < total))
