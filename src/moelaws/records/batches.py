"""Batches: the file that names the runs of one job, and the marker that says that they are done.

The workflow writes ``results/batches/<digest>.runs.json`` while it is parsed, and ``moelaws train``
writes ``<digest>.json`` once each run has a summary. The marker alone decides whether a batch is
done. The workflow removes a marker that is no longer true, so it needs no memory of its own.
"""

import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from moelaws.files import seal
from moelaws.files.atomic import read_json, write_json
from moelaws.files.layout import Results
from moelaws.spec.base import Frozen, parse
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig


class Order(Frozen):
    """One run of a batch: its configuration, and which of its weights are kept."""

    config: RunConfig
    keep: bool = False  # whether the final weights are kept
    steps: tuple[int, ...] = ()  # the steps on the way after which weights are kept, too
    lengths: tuple[int, ...] = ()  # the steps of the runs that share its trunk, its own among them


class Orders(Frozen):
    """The runs of one batch, in the order of their grid."""

    runs: tuple[Order, ...]

    @classmethod
    def read(cls, path: Path) -> Self:
        return parse(cls, read_json(path), path)

    def write(self, path: Path) -> None:
        """Writes the runs to ``path`` unless the file holds them already."""
        data = self.model_dump(mode="json", exclude_defaults=True)
        with suppress(UserError):  # the file does not exist yet, or is damaged
            if read_json(path) == data:
                return
        write_json(path, data)


def by_trunk(orders: Iterable[Order]) -> list[Order]:
    """Returns the orders with the ``lengths`` of those that share a trunk.

    The shortest run of each trunk comes first, then the second shortest of each, and so on: a run
    goes on where a shorter one has left the trunk, and several workers have several trunks to
    train. A run that keeps weights on the way trains all of its steps alone.
    """
    families: dict[str | None, list[Order]] = {}
    for order in orders:
        trunk = None if order.steps else order.config.trunk
        families.setdefault(trunk, []).append(order)
    placed = [(0, order) for order in families.pop(None, [])]
    for family in families.values():
        lengths = tuple(sorted({order.config.steps for order in family}))
        alike = {"lengths": lengths} if len(lengths) > 1 else {}
        for order in family:
            place = lengths.index(order.config.steps)
            placed.append((place, order.model_copy(update=alike)))
    return [order for _, order in sorted(placed, key=lambda pair: pair[0])]


def forget_trunks(orders: Iterable[Order], results: Results) -> None:
    """Removes the states of the trunks of ``orders``, which have summaries.

    They stay where another process trains, and where a run lacked memory: it is tried again.
    """
    from moelaws.files.lock import holder  # what measures kept runs reads batches without a lock

    ended: dict[str | None, set[str]] = {}
    for order in orders:
        status = read_json(results.summary(order.config.run_id))["status"]
        ended.setdefault(order.config.trunk, set()).add(status)
    for trunk in ended.keys() - {None}:
        if "out_of_memory" not in ended[trunk] and not holder(folder := results.trunk(trunk)):
            shutil.rmtree(folder, ignore_errors=True)


def failures(results: Results, run_id: str) -> int:
    """Returns how often the training of a run failed by itself."""
    with suppress(UserError):
        return int(read_json(results.failures(run_id))["count"])
    return 0


class Marker(Frozen):
    runs: dict[str, str]  # run -> the SHA-256 of its summary
    again: tuple[str, ...] = ()  # the runs that lacked memory, which the next call tries again
    # Run -> the steps on the way whose weights are kept, in addition to the final ones
    kept: dict[str, tuple[int, ...]] = {}


def write_marker(path: Path, orders: Iterable[Order], results: Results) -> None:
    """Writes the marker of a batch whose runs all have a summary."""
    runs, again, kept = {}, [], {}
    for order in orders:
        run_id = order.config.run_id
        summary = results.summary(run_id)
        runs[run_id] = seal.digest(summary)
        if read_json(summary)["status"] == "out_of_memory":
            again.append(run_id)
        if order.keep:
            kept[run_id] = order.steps
    write_json(path, Marker(runs=runs, again=tuple(again), kept=kept).model_dump(mode="json"))


def is_done(path: Path, keeps: Mapping[str, tuple[int, ...]], results: Results) -> bool:
    """Returns whether the batch with the marker ``path`` is done and its runs have not changed.

    ``keeps`` is run -> the steps on the way after which weights must be kept.
    """
    try:
        marker = parse(Marker, read_json(path), path)
        written = path.stat().st_mtime_ns
        for run, sha in marker.runs.items():
            summary = results.summary(run)
            if summary.stat().st_mtime_ns > written and seal.digest(summary) != sha:
                return False
    except (UserError, FileNotFoundError):
        return False
    return not marker.again and all(
        run in marker.kept and set(steps) <= set(marker.kept[run]) and results.kept(run).is_file()
        for run, steps in keeps.items()
    )
