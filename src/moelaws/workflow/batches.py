"""Which runs train together in one job: batches, which follow from a study's runs alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

START = 2.0  # seconds that a run takes beside its training
BITS = 64  # of a run_id


@dataclass(frozen=True)
class Batch:
    """Runs that one job trains, in the order in which they train."""

    runs: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Returns the batch's name: 16 hex digits of the SHA-256 of its run_ids."""
        return hashlib.sha256("\n".join(sorted(self.runs)).encode()).hexdigest()[:16]


def batches_of(
    runs: Iterable[str], seconds: Callable[[str], float], longest: float
) -> tuple[Batch, ...]:
    """Returns the batches of one study's ``runs``, each of up to ``longest`` seconds by estimate.

    Runs are divided by the bits of their run_ids, as often as a batch would be too long: so one run
    more changes the batch that it falls into and no other. A run that is too long is alone.

    Args:
        seconds: run -> its training by estimate; infinity for one that must be alone.
    """
    return tuple(map(Batch, map(tuple, _divided(list(runs), seconds, longest, BITS - 1))))


def _divided(
    runs: Sequence[str], seconds: Callable[[str], float], longest: float, bit: int
) -> list[Sequence[str]]:
    if len(runs) <= 1 or sum(START + seconds(run) for run in runs) <= longest:
        return [runs] if runs else []
    halves = [[run for run in runs if (int(run, 16) >> bit & 1) == side] for side in (0, 1)]
    return [runs for half in halves for runs in _divided(half, seconds, longest, bit - 1)]
