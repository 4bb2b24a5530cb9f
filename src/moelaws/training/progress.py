"""How far a run is, on standard error: a bar on a terminal, else a line every few seconds."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

INTERVAL = 5.0  # seconds between lines

Report = Callable[[int, float], None]  # steps done, newest known training loss


@contextmanager
def reporting(run_id: str, steps: int, tokens_per_step: int, start: int) -> Iterator[Report]:
    """A function to call after each step while the block runs; ``start`` steps were done before."""
    if sys.stderr.isatty():
        with _bar(run_id, steps, tokens_per_step, start) as report:
            yield report
    else:
        yield _lines(run_id, steps, tokens_per_step, start)


def _lines(run_id: str, steps: int, tokens_per_step: int, start: int) -> Report:
    began = told = time.monotonic()

    def report(step: int, loss: float) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= INTERVAL:
            told = now
            speed = (step - start) / (now - began)
            print(
                f"{run_id} step {step}/{steps}: loss {_shown(loss, 4)}, "
                f"{speed * tokens_per_step:,.0f} tokens/s, {(steps - step) / speed:.0f} s left",
                file=sys.stderr,
                flush=True,
            )

    return report


def _shown(loss: float, digits: int) -> str:
    """Losses come from the device a few steps late: at first there is none."""
    return "-" if math.isnan(loss) else f"{loss:.{digits}f}"


@contextmanager
def _bar(run_id: str, steps: int, tokens_per_step: int, start: int) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
    )
    began = told = time.monotonic()
    with Progress(*columns, console=Console(stderr=True), auto_refresh=False) as bar:
        task = bar.add_task(run_id, total=steps, completed=start, note="")

        def report(step: int, loss: float) -> None:
            nonlocal told
            now = time.monotonic()
            if now - told >= 0.1 or step == steps:
                told = now
                speed = (step - start) * tokens_per_step / max(now - began, 1e-9)
                note = f"loss {_shown(loss, 3)}  {speed:,.0f} tokens/s"
                bar.update(task, completed=step, note=note, refresh=True)

        yield report
