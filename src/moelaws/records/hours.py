"""The hours that runs took of cores and GPUs, by study."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from moelaws.files.layout import Results
from moelaws.records.runs import Record
from moelaws.spec.from_json import parse_json


def device_hours(record: Record) -> tuple[str, float]:
    """Returns what trained and evaluated a run, and the hours of one such core or GPU.

    A fraction of a GPU counts as such, and what came before an interruption as the last device's.
    Shared steps count for the run that trained them.
    """
    made_by, summary = record.provenance, record.summary
    hours = (summary.get("wall_seconds", 0.0) - summary.get("shared_seconds", 0.0)) / 3600
    if (device := str(made_by.get("device") or "unknown")) == "cpu":
        return "CPU core", hours * (made_by.get("threads") or 1)
    return device, hours * (made_by.get("devices") or 1) * (made_by.get("gpu_share") or 1)


def by_study(results: Results, records: Iterable[Record]) -> list[dict[str, Any]]:
    """Returns the hours of the runs that have ended, for each study of each tier and in sum.

    A run counts in every study whose table has it, and once in the sum.
    """
    ended = {record.run_id: device_hours(record) for record in records if record.summary}
    groups: dict[tuple[str, str], set[str]] = {}
    for file in sorted(results.root.glob(str(Results(Path()).tier("*").spec("runs", "*")))):
        lines = file.read_text(encoding="utf-8").splitlines()[1:]
        groups[file.stem, file.parents[2].name] = {parse_json(line, str(file))[0] for line in lines}
    groups["of no study", "-"] = ended.keys() - set().union(*groups.values())
    groups["in sum", "-"] = {*ended}
    hours: dict[tuple[str, str, str], list[float]] = {}
    for group, runs in groups.items():
        for device, each in sorted(ended[run] for run in runs & ended.keys()):
            hours.setdefault((*group, device), []).append(each)
    return [
        {"study": study, "tier": tier, "runs": len(each), "device": device, "hours": sum(each)}
        for (study, tier, device), each in hours.items()
    ]
