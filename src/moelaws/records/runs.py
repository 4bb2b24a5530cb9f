"""The record of the sweep: which runs there are, in what state, made by which code."""

import gc
import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from moelaws.files import seal
from moelaws.files.atomic import json_object
from moelaws.files.layout import ANNOTATIONS, LOCK, Results
from moelaws.files.lock import holder
from moelaws.records.annotations import Annotations
from moelaws.records.annotations import of as annotations_of
from moelaws.records.code import training_code
from moelaws.records.summary import Status
from moelaws.spec.errors import UserError

STATUSES = (*get_args(Status), "running", "interrupted", "damaged")
UNSUCCESSFUL = ("diverged", "out_of_memory", "damaged")
# The files that hold a record, and the keys without which each is damaged.
_NEEDED: dict[str, set[str]] = {"config": set(), "summary": {"status"}, "provenance": {"code"}}


@dataclass(frozen=True)
class Record:
    """What is on record of one run; what a file does not hold yet is empty."""

    run_id: str
    config: dict[str, Any]
    summary: dict[str, Any]
    provenance: dict[str, Any]
    owner: dict[str, Any]  # of the lock, while a trainer is at work
    annotations: Annotations = field(default_factory=Annotations)
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

    def as_dict(self, code: str | None = None) -> dict[str, Any]:
        """Returns all of it as JSON data; ``code`` is that of ``is_stale``, today's by default."""
        return {
            "run_id": self.run_id,
            "status": self.status,
            "stale": self.is_stale(code or training_code()),
            "damaged": list(self.damaged),
            "tags": self.annotations.tags,
            "note": self.annotations.note,
            "config": self.config,
            "summary": self.summary,
            "provenance": self.provenance,
            "owner": self.owner,
        }


def all_records(results: Results) -> list[Record]:
    """Returns every run below ``results/runs``, by id."""
    if not results.runs.is_dir():
        return []
    with os.scandir(results.runs) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir())
    # Nothing of what is read here is garbage, and looking for it again and again takes a fifth.
    collects = gc.isenabled()
    gc.disable()
    try:
        above = os.fspath(results.runs)  # texts for paths: making these takes a tenth
        return [_read(results, name, f"{above}/{name}") for name in names]
    finally:
        if collects:
            gc.enable()


def read_record(results: Results, run_id: str) -> Record:
    """Returns the record of one run."""
    return _read(results, run_id, os.fspath(results.run(run_id)))


def _read(results: Results, run_id: str, folder: str) -> Record:
    there: Sequence[str] = ()
    with suppress(FileNotFoundError, NotADirectoryError):
        there = os.listdir(folder)
    contents: dict[str, dict[str, Any]] = {}
    damaged = []
    for name, needed in _NEEDED.items():
        contents[name], file, content = {}, f"{name}.json", b""
        if file not in there:
            continue
        with suppress(OSError, UserError):
            content = seal.read(f"{folder}/{file}")
            contents[name] = json_object(content, file)
        foreign = name == "config" and not _is_config_of(run_id, content)
        if not contents[name] or not needed <= contents[name].keys() or foreign:
            damaged.append(file)
    owner = holder(Path(folder)) if LOCK in there else {}
    notes = _annotations(results, run_id) if ANNOTATIONS in there else Annotations()
    return Record(run_id, **contents, owner=owner, annotations=notes, damaged=tuple(damaged))


def _annotations(results: Results, run_id: str) -> Annotations:
    """Returns the annotations of a run; its note says so where they cannot be read.

    The run itself is whole: neither its status nor the list of all runs depends on their file.
    """
    try:
        return annotations_of(results, run_id)
    except UserError as error:
        return Annotations(note=str(error))


def find_record(results: Results, prefix: str) -> Record:
    """Returns the run whose id begins with ``prefix``."""
    ids = sorted(p.name for p in results.runs.glob(f"{prefix}*")) if prefix.isalnum() else []
    if len(ids) != 1:
        reason = f"{len(ids)} runs begin so: {', '.join(ids[:5])}" if ids else "no such run"
        raise UserError(f"run {prefix!r}: {reason}; `moelaws runs` lists them")
    return read_record(results, ids[0])


def retry(results: Results, record: Record) -> None:
    """Asks for a run again: the next call of the workflow trains it."""
    for name in record.damaged:
        (results.run(record.run_id) / name).unlink(missing_ok=True)
    shutil.rmtree(results.checkpoint(record.run_id), ignore_errors=True)
    shutil.rmtree(results.weights(record.run_id), ignore_errors=True)
    results.history_so_far(record.run_id).unlink(missing_ok=True)
    results.summary(record.run_id).unlink(missing_ok=True)


def differences(*data: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Returns dotted key -> the value in each of nested mappings, for all in which they differ."""
    flat = [flatten(one) for one in data]
    keys = sorted({key for one in flat for key in one})
    values = {key: tuple(one.get(key) for one in flat) for key in keys}
    return {key: row for key, row in values.items() if any(value != row[0] for value in row)}


def flatten(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Returns nested mappings as one, with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _is_config_of(run_id: str, content: bytes) -> bool:
    """Tells whether a file's content is the configuration that ``run_id`` is the digest of."""
    if not re.fullmatch("[0-9a-f]{16}", run_id):
        return True  # a folder that somebody named
    return hashlib.sha256(content.rstrip(b"\n")).hexdigest()[:16] == run_id
