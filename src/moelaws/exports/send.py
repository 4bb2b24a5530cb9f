"""Sends runs to a tracker one after the other, and counts what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

from moelaws.exports.chosen import Chosen, LeftOut
from moelaws.exports.material import TrackedRun
from moelaws.records.progress import Report
from moelaws.spec.errors import UserError

# ``updated``: it was there with other content, or half of it after an interruption.
Outcome = Literal["added", "updated", "unchanged"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


class Tracker(Protocol):
    """What keeps runs."""

    def put(self, run: TrackedRun) -> Outcome:
        """Makes the tracker hold ``run`` as it is now, once.

        Raises:
            UserError: where a file of the run is damaged; the tracker is then as it was.
        """


@dataclass
class Sent:
    """What became of the runs."""

    runs: dict[Outcome, list[TrackedRun]] = field(
        default_factory=lambda: {outcome: [] for outcome in OUTCOMES}
    )
    left_out: Sequence[LeftOut] = ()


def send(chosen: Chosen, tracker: Tracker, report: Report) -> Sent:
    """Puts each chosen run into ``tracker``; a damaged one is left out with the reason."""
    sent = Sent()
    left_out = list(chosen.left_out)
    for number, run in enumerate(chosen.runs, 1):
        try:
            sent.runs[tracker.put(run)].append(run)
        except UserError as error:
            left_out.append(LeftOut(run.run_id, str(error)))
        report("export", number, len(chosen.runs), f"{number}/{len(chosen.runs)} runs")
    sent.left_out = left_out
    return sent
