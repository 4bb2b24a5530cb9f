"""The record of a run: what stands in its folder, written so that the summary comes last."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from moelaws.model.transformer import Transformer
from moelaws.records.files import write_json
from moelaws.records.layout import DOCUMENTS, HISTORY_SO_FAR, LACKED_MEMORY, Results
from moelaws.records.summary import RunSummary
from moelaws.training.evaluation import Evaluation
from moelaws.training.expert_load import ExpertLoad
from moelaws.training.history import History


@dataclass(frozen=True)
class RunFolders:
    """Where one run's files lie."""

    record: Path
    weights: Path
    checkpoint: Path  # a file in a folder of its own

    @classmethod
    def of(cls, results: Results, run_id: str, out: Path | None = None) -> RunFolders:
        """Returns the places in ``results``, or below ``out``, a folder for this run alone."""
        if out:
            return cls(out, out / "weights", out / "checkpoint" / "latest.json")
        checkpoint = results.checkpoint(run_id) / "latest.json"
        return cls(results.run(run_id), results.weights(run_id), checkpoint)


@dataclass(frozen=True)
class Outcome:
    """What one training of a run leaves behind."""

    summary: RunSummary
    provenance: dict[str, Any]
    history: History
    expert_load: ExpertLoad
    evaluation: Evaluation | None  # of completed runs
    model: Transformer | None  # of completed runs


def write_record(folder: Path, outcome: Outcome) -> None:
    """Writes history, load (of experts) and documents (of completed runs), all Parquet, then
    provenance.json and, last, summary.json.

    A run that lacked memory gets one file more, newer than its summary, by which the next call of
    the workflow tries it again.
    """
    evaluation = outcome.evaluation
    held_out = evaluation.counts_LE if evaluation else None
    outcome.history.write(folder / "history.parquet")
    drop_history_so_far(folder)
    outcome.expert_load.write(folder / "load.parquet", held_out)
    if evaluation:
        evaluation.documents.write(folder / DOCUMENTS)
    else:  # an earlier training of the run may have left some
        (folder / DOCUMENTS).unlink(missing_ok=True)
    write_json(folder / "provenance.json", outcome.provenance)
    write_json(folder / "summary.json", outcome.summary.model_dump(mode="json"))
    note_lack_of_memory(folder, outcome.summary)


def drop_history_so_far(folder: Path) -> None:
    """Removes what a training wrote of its history on the way, for those who watch it."""
    (folder / HISTORY_SO_FAR).unlink(missing_ok=True)


def note_lack_of_memory(folder: Path, summary: RunSummary) -> None:
    """Writes the file by which the next call tries a run again that ended out of memory."""
    if summary.status == "out_of_memory":
        ended = datetime.now(UTC).isoformat()
        write_json(folder / LACKED_MEMORY, {"ended": ended, "message": summary.message})
