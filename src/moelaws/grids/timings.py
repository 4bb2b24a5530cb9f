"""The speed of this machine in finished runs, on which the estimate of the next sweep rests."""

from itertools import islice

from moelaws.accounting.cost import CPU, Device, Timing, fitted_to
from moelaws.files.layout import Results
from moelaws.records.pace import seconds_a_step
from moelaws.records.provenance import machine
from moelaws.records.runs import Record, all_records
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig

ENOUGH = 300


def learned(device: Device, results: Results) -> Device:
    """Returns ``device`` with the speed that it had in this machine's finished runs."""
    return fitted_to(device, timings(results, device))


def timings(results: Results, device: Device) -> list[Timing]:
    """Returns the completed runs that this machine trained on ``device`` without interruption.

    Runs of a processor count if one core trained them, runs of a GPU if they had it to themselves.
    Damaged records are passed over. The result has at most ``ENOUGH`` runs, the first by id; they
    have all sizes, because an id is a digest.
    """
    here = machine()
    timed = (
        timing
        for record in all_records(results)
        if here.items() <= record.provenance.items()
        and _is_on(device, record)
        and (timing := _timing(results, record))
    )
    return list(islice(timed, ENOUGH))


def _is_on(device: Device, record: Record) -> bool:
    made_by = record.provenance
    if made_by.get("resumed_from") or made_by.get("devices", 1) > 1:
        return False  # another machine may have trained its first steps
    if made_by.get("deterministic") and device is not CPU:
        return False  # slower than others
    if device is CPU:
        return made_by.get("device") == "cpu" and made_by.get("threads") == 1
    return device.name in str(made_by.get("device")) and made_by.get("gpu_share") in (None, 1)


def _timing(results: Results, record: Record) -> Timing | None:
    """Returns the time of a run's steps, by their median; None if the record does not have it."""
    if record.status != "completed":
        return None
    try:
        config = parse(RunConfig, record.config, record.run_id)
        seconds = seconds_a_step(results, record.run_id)
    # Another version wrote the run with other settings, or its history is damaged.
    except UserError:
        return None
    return Timing(config, config.steps * seconds) if seconds else None
