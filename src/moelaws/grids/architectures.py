"""The runs of a sweep whose speed can differ: one stands for all that train alike."""

from __future__ import annotations

from collections.abc import Iterable

from moelaws.grids.expand import Run
from moelaws.spec.run import RunConfig


def architectures(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Returns the first of the ``runs`` of each configuration, in their order.

    Runs that differ in seed, learning rate and number of steps alone have one configuration: a step
    of theirs takes the same time and memory.
    """
    first: dict[str, Run] = {}
    for run in runs:
        first.setdefault(_of_any_run(run.config).canonical_json(), run)
    return tuple(first.values())


def _of_any_run(config: RunConfig) -> RunConfig:
    """The configuration without what runs of one architecture differ in."""
    optimizer = config.optimizer.model_copy(update={"lr": 1.0})
    return config.model_copy(update={"seed": 0, "steps": 1, "optimizer": optimizer})
