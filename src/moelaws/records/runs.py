"""The record of the sweep: which runs there are, in what state, made by which code."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from moelaws.records.code import training_code
from moelaws.records.files import read_json
from moelaws.records.layout import Results
from moelaws.records.lock import holder
from moelaws.records.summary import Status
from moelaws.spec.errors import UserError

STATUSES = (*get_args(Status), "running", "interrupted", "damaged")
UNSUCCESSFUL = ("diverged", "out_of_memory", "damaged")


@dataclass(frozen=True)
class Record:
    """What is on record of one run; what a file does not hold yet is empty."""

    run_id: str
    config: dict[str, Any]
    summary: dict[str, Any]
    provenance: dict[str, Any]
    owner: dict[str, Any]  # of the lock, while a trainer is at work
    damaged: tuple[str, ...] = ()  # the files that are not what was written

    @property
    def status(self) -> str:
        """Is one of ``STATUSES``."""
        if self.damaged:
            return "damaged"
        if self.summary:
            return str(self.summary["status"])
        return "running" if self.owner else "interrupted"

    def is_stale(self, code: str) -> bool:
        """Tells whether other training code than ``code`` trained it, or some of its steps."""
        made_by = [self.provenance, *self.provenance.get("resumed_from", [])]
        return bool(self.provenance) and any(p.get("code") != code for p in made_by)

    def as_dict(self) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "status": self.status,
            "stale": self.is_stale(training_code()),
            "damaged": list(self.damaged),
            "config": self.config,
            "summary": self.summary,
            "provenance": self.provenance,
            "owner": self.owner,
        }


def all_records(results: Results) -> list[Record]:
    """Returns every run below ``results/runs``, by id."""
    folders = sorted(results.runs.iterdir()) if results.runs.is_dir() else []
    return [read_record(results, folder.name) for folder in folders if folder.is_dir()]


def read_record(results: Results, run_id: str) -> Record:
    """Returns the record of one run."""
    folder, damaged = results.run(run_id), []
    contents: dict[str, dict[str, Any]] = {}
    for name, needed in (("config", set()), ("summary", {"status"}), ("provenance", {"code"})):
        contents[name], path = {}, folder / f"{name}.json"
        if not path.is_file():
            continue
        with contextlib.suppress(UserError):
            contents[name] = read_json(path)
        if not contents[name] or not needed <= contents[name].keys():
            damaged.append(path.name)
    if contents["config"] and not _is_config_of(run_id, folder / "config.json"):
        damaged.append("config.json")
    return Record(run_id, **contents, owner=holder(folder), damaged=tuple(damaged))


def find_record(results: Results, prefix: str) -> Record:
    """Returns the run whose id begins with ``prefix``.

    Raises:
        UserError: where there is none, or more than one.
    """
    ids = sorted(p.name for p in results.runs.glob(f"{prefix}*")) if prefix.isalnum() else []
    if len(ids) != 1:
        reason = f"{len(ids)} runs begin so: {', '.join(ids[:5])}" if ids else "no such run"
        raise UserError(f"run {prefix!r}: {reason}; `moelaws runs` lists them")
    return read_record(results, ids[0])


def retry(results: Results, record: Record) -> None:
    """Asks for a run again: the next call of the workflow trains it.

    Its tables must go as well (``tables.retry``): Snakemake does not make again what is missing
    as long as all that follows from it is there.
    """
    for name in record.damaged:
        (results.run(record.run_id) / name).unlink(missing_ok=True)
    shutil.rmtree(results.checkpoint(record.run_id), ignore_errors=True)
    shutil.rmtree(results.weights(record.run_id), ignore_errors=True)
    results.history_so_far(record.run_id).unlink(missing_ok=True)
    results.summary(record.run_id).unlink(missing_ok=True)


def differences(a: dict[str, Any], b: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Returns dotted key -> the two values, for all that differs between two nested mappings."""
    flat_a, flat_b = flatten(a), flatten(b)
    keys = sorted(flat_a.keys() | flat_b.keys())
    pairs = {key: (flat_a.get(key), flat_b.get(key)) for key in keys}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def flatten(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Returns nested mappings as one, with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _is_config_of(run_id: str, path: Path) -> bool:
    """Tells whether a file holds the configuration that ``run_id`` is the digest of."""
    if not re.fullmatch("[0-9a-f]{16}", run_id):
        return True  # a folder that somebody named
    return hashlib.sha256(path.read_bytes().rstrip(b"\n")).hexdigest()[:16] == run_id
