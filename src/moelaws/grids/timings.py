"""What finished runs say of this machine's speed: the estimate of the next sweep rests on it."""

from __future__ import annotations

from moelaws.accounting.cost import CPU, Device, Timing
from moelaws.records.layout import Results
from moelaws.records.provenance import machine
from moelaws.records.runs import Record, all_records
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig


def timings(results: Results, device: Device) -> list[Timing]:
    """Returns the completed runs that this machine trained on ``device`` without interruption.

    Those of a processor count where one core trained them. Damaged records are passed over.
    """
    here = machine()
    return [
        timing
        for record in all_records(results)
        if here.items() <= record.provenance.items()
        and _is_on(device, record)
        and (timing := _timing(record))
    ]


def _is_on(device: Device, record: Record) -> bool:
    made_by = record.provenance
    if made_by.get("resumed_from"):
        return False  # the time between two processes is not known
    if device is CPU:
        return made_by.get("device") == "cpu" and made_by.get("threads") == 1
    return device.name in str(made_by.get("device"))


def _timing(record: Record) -> Timing | None:
    seconds = record.summary.get("wall_seconds", 0)
    if record.status != "completed" or seconds <= 0:
        return None
    try:
        return Timing(parse(RunConfig, record.config, record.run_id), seconds)
    except UserError:  # of a version with other settings
        return None
