"""How far a preparation is, on standard error: bars on a terminal, else lines every few seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

INTERVAL = 5.0  # seconds between lines

# Called with a stage of STAGES, bytes of text done, bytes in all (None where they are unknown)
# and the tokens made of them.
Progress = Callable[[str, int, int | None, int], None]

STAGES = {
    "fetch": "reading the data set",
    "index": "looking for documents",
    "words": "counting words for the BPE",
    "merges": "learning the BPE's merges",
    "train": "tokenising the training text",
    "validation": "tokenising the validation text",
}


@contextmanager
def reporting(name: str) -> Iterator[Progress]:
    """A function that shows the progress of corpus ``name`` while the block runs."""
    if sys.stderr.isatty():
        with _bars() as report:
            yield report
    else:
        yield _lines(name)


class _Rate:
    """Speed since a stage began."""

    def __init__(self) -> None:
        self.stage, self.began, self.told = "", 0.0, 0.0

    def due(self, stage: str, interval: float, last: bool) -> bool:
        """Whether it is time to show something: after ``interval`` s, and at a stage's end."""
        now = time.monotonic()
        if stage != self.stage:
            self.stage, self.began, self.told = stage, now, now
        if now - self.told < interval and not (last and self.told > self.began):
            return False
        self.told = now
        return True

    def shown(self, done: int, total: int | None, tokens: int) -> str:
        """MB/s, tokens/s and seconds left, as far as they are known."""
        seconds = max(time.monotonic() - self.began, 1e-9)
        shown = f"{done / seconds / 1e6:.1f} MB/s"
        if tokens:
            shown += f", {tokens / seconds:,.0f} tokens/s"
        if total is not None and done:
            shown += f", {seconds * (total - done) / done:.0f} s left"
        return shown


def _lines(name: str) -> Progress:
    rate = _Rate()

    def report(stage: str, done: int, total: int | None, tokens: int) -> None:
        if not rate.due(stage, INTERVAL, last=done == total):
            return
        of = "" if total is None else f" of {total / 1e6:.1f}"
        speed = rate.shown(done, total, tokens)
        print(
            f"{name}, {STAGES[stage]}: {done / 1e6:.1f}{of} MB, {speed}",
            file=sys.stderr,
            flush=True,
        )

    return report


@contextmanager
def _bars() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, TaskID, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[note]}"),
    )
    rate = _Rate()
    tasks: dict[str, TaskID] = {}
    with Bars(*columns, console=Console(stderr=True)) as bars:

        def report(stage: str, done: int, total: int | None, tokens: int) -> None:
            due = rate.due(stage, 0.1, last=True)
            if stage not in tasks:
                tasks[stage] = bars.add_task(STAGES[stage], total=total, note="")
            if due or done == total:
                note = rate.shown(done, total, tokens) if done else ""
                bars.update(tasks[stage], completed=done, note=note)

        yield report
