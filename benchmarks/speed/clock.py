"""Times of calls that take turns, so that a shared machine's slow spells hit all alike."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping

Call = Callable[[], object]
Times = dict[str, list[float]]  # seconds, one entry a round

FEWEST = 5  # rounds, however long they take
WARM = 2  # rounds that are not counted


def take_turns(
    calls: Mapping[str, Call], seconds: float, synchronize: Call = lambda: None
) -> Times:
    """Time each call once a round, in turn, for about ``seconds`` and at least FEWEST rounds."""
    times: Times = {name: [] for name in calls}
    end = math.inf
    rounds = -WARM
    while rounds < FEWEST or time.perf_counter() < end:
        for name, call in calls.items():
            synchronize()
            began = time.perf_counter()
            call()
            synchronize()
            if rounds >= 0:
                times[name].append(time.perf_counter() - began)
        rounds += 1
        if rounds == 0:
            end = time.perf_counter() + seconds
    return times


def speed(times: Times, of: str, against: str) -> dict[str, float]:
    """How fast ``of`` is, as a multiple of ``against``.

    ``best`` compares each one's fastest round, what the machine does when left alone; ``median``
    is over the rounds.
    """
    rounds = (b / a for a, b in zip(times[of], times[against], strict=True))
    return {
        "best": min(times[against]) / min(times[of]),
        "median": statistics.median(rounds),
        "rounds": len(times[of]),
    }


def geometric_mean(values: Iterable[float]) -> float:
    return statistics.geometric_mean(values)
