"""The record of a run: what stands in its folder, written so that the summary comes last."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from moelaws.records.files import read_json, write_json
from moelaws.records.layout import LACKED_MEMORY
from moelaws.records.summary import RunSummary, Status
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig
from moelaws.training.evaluation import Evaluated
from moelaws.training.history import History
from moelaws.training.load import Load, balance


def finished(folder: Path, config: RunConfig) -> RunSummary | None:
    """The summary of a run that is done, or None where there is something to train.

    Lack of memory says something of the device, not of the run: such a run is not done.

    Raises:
        UserError: when the folder holds the record of another run, or a broken one.
    """
    for name in ("config.json", "summary.json"):
        path = folder / name
        if not path.exists():
            return None
        try:
            data = read_json(path)
        except UserError as error:  # as a power failure may leave it
            raise UserError(f"{error}; delete {folder} to train the run again") from None
        if name == "config.json":
            found = parse(RunConfig, data, path).run_id
        else:
            summary = parse(RunSummary, data, path)
            found = summary.run_id
        if found != config.run_id:
            raise UserError(
                f"{folder}: holds run {found}, not {config.run_id}; choose another folder"
            )
    return None if summary.status == "out_of_memory" else summary


def summarize(
    config: RunConfig,
    status: Status,
    history: History,
    found: Evaluated | None,
    *,
    epochs: float,
    training_seconds: float,
    wall_seconds: float,
    peak_memory: int,
    message: str = "",
) -> RunSummary:
    """The summary of a run that ended with ``status``; ``found`` is there for completed ones."""
    tokens = len(history) * config.batch * config.model.context
    return RunSummary(
        run_id=config.run_id,
        status=status,
        loss=found.loss if found else None,
        loss_se=found.loss_se if found else None,
        bits_per_byte=found.bits_per_byte if found else None,
        train_loss=history.recent_loss(),
        steps=len(history),
        tokens=tokens,
        epochs=epochs,
        balance=None if found is None or found.counts_LE is None else balance(found.counts_LE),
        wall_seconds=wall_seconds,
        tokens_per_second=tokens / training_seconds if training_seconds else 0.0,
        peak_memory_bytes=peak_memory,
        message=message,
    )


def write_record(
    folder: Path,
    provenance: dict[str, Any],
    history: History,
    load: Load,
    found: Evaluated | None,
    summary: RunSummary,
) -> None:
    """Write history.parquet, load.parquet (of experts), provenance.json and, last, summary.json.

    A run that lacked memory gets one file more, newer than its summary, by which the next call of
    the workflow tries it again.
    """
    history.write(folder / "history.parquet")
    load.write(folder / "load.parquet", found.counts_LE if found else None)
    write_json(folder / "provenance.json", provenance)
    write_json(folder / "summary.json", summary.model_dump(mode="json"))
    tell_lack_of_memory(folder, summary)


def tell_lack_of_memory(folder: Path, summary: RunSummary) -> None:
    """Write the file by which the next call tries a run again that ended out of memory."""
    if summary.status == "out_of_memory":
        ended = datetime.now(UTC).isoformat()
        write_json(folder / LACKED_MEMORY, {"ended": ended, "message": summary.message})
