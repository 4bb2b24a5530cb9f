"""The record of the sweep: its runs, their states, and the code that made them."""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moelaws.files import seal
from moelaws.files.atomic import json_object, read_json, write_json
from moelaws.files.layout import ANNOTATIONS, LOCK, Results
from moelaws.files.lock import holder, one_at_a_time
from moelaws.records.code import training_code
from moelaws.spec.base import Frozen, parse
from moelaws.spec.errors import UserError, quoted
from moelaws.spec.run import RunConfig

Data = dict[str, Any]  # what a JSON file holds

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


class Annotations(Frozen):
    """Tags and a note that people wrote about a run. They lie beside its record, no part of it.

    No rule of the workflow reads them, so writing them reruns nothing. They may be written while
    the run trains, and they stay when it is trained again.
    """

    tags: dict[str, str] = {}  # name -> value, any text
    note: str = ""  # any text; empty if there is none

    @property
    def text(self) -> str:
        """Returns the tags on one line, such as ``baseline=yes, optimizer=muon``."""
        return ", ".join(f"{name}={' '.join(value.split())}" for name, value in self.tags.items())


def annotations_of(results: Results, run_id: str) -> Annotations:
    """Returns the annotations of a run, which may be empty."""
    path = results.annotations(run_id)
    return parse(Annotations, read_json(path), path) if path.is_file() else Annotations()


def annotate(
    results: Results, run_id: str, tags: Mapping[str, str], note: str | None = None
) -> Annotations:
    """Adds ``tags`` to a run, sets its ``note``, and returns all its annotations.

    An empty value removes a tag, and an empty ``note`` removes the note; None leaves the note.
    """
    for name in tags:
        if not _NAME.fullmatch(name):
            raise UserError(
                f"tag {quoted(name)}: the name of a tag begins with a letter and has at most 64 of "
                "the characters A-Z a-z 0-9 _ . -"
            )
    for text in (*tags.values(), note or ""):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UserError(f"{quoted(text)} is not UTF-8; give a text that is") from None
    with one_at_a_time(results.run(run_id)):  # if two wrote at once, the text of one would be lost
        old = annotations_of(results, run_id)
        kept = {name: value for name, value in sorted({**old.tags, **tags}.items()) if value}
        new = Annotations(tags=kept, note=old.note if note is None else note)
        if new == Annotations():
            results.annotations(run_id).unlink(missing_ok=True)
        elif new != old:
            write_json(results.annotations(run_id), new.model_dump())
    return new


UNSUCCESSFUL = ("diverged", "out_of_memory", "damaged")
# The files that hold a record, and the keys without which each counts as damaged
_NEEDED: dict[str, set[str]] = {"config": set(), "summary": {"status"}, "provenance": {"code"}}


@dataclass(frozen=True)
class Record:
    """What is on record of one run; it is empty where a file does not exist yet."""

    run_id: str
    config: Data
    summary: Data
    provenance: Data
    owner: Data  # the holder of the lock, while a trainer is at work
    annotations: Annotations = field(default_factory=Annotations)
    damaged: tuple[str, ...] = ()  # the names of damaged files

    @property
    def status(self) -> str:
        """Returns that of its summary, or damaged, running, interrupted or waiting."""
        if self.damaged:
            return "damaged"
        if self.summary:
            return str(self.summary["status"])
        if self.owner:
            return "running"
        # A trainer writes the configuration first; before that the folder has a log at most.
        return "interrupted" if self.config else "waiting"

    def is_stale(self, code: str) -> bool:
        """Returns whether training code other than ``code`` trained it, or some of its steps."""
        made_by = [self.provenance, *self.provenance.get("resumed_from", [])]
        return bool(self.provenance) and any(p.get("code") != code for p in made_by)

    def as_dict(self) -> Data:
        """Returns all of it as JSON data; a run that other code than today's made is stale."""
        return {
            "run_id": self.run_id,
            "status": self.status,
            "stale": self.is_stale(training_code()),
            "damaged": list(self.damaged),
            "tags": self.annotations.tags,
            "note": self.annotations.note,
            **{name: getattr(self, name) for name in ("config", "summary", "provenance", "owner")},
        }


def all_records(results: Results) -> list[Record]:
    """Returns every run below ``results/runs``, by id."""
    if not results.runs.is_dir():
        return []
    with os.scandir(results.runs) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir())
    return [read_record(results, name) for name in names]


def read_record(results: Results, run_id: str) -> Record:
    folder = os.fspath(results.run(run_id))  # a text: ``Path`` would take a tenth of the time
    there: Sequence[str] = ()
    with suppress(FileNotFoundError, NotADirectoryError):
        there = os.listdir(folder)
    contents: dict[str, Data] = {}
    damaged = []
    for name, needed in _NEEDED.items():
        contents[name], file = {}, f"{name}.json"
        if file not in there:
            continue
        with suppress(OSError, UserError):
            contents[name] = json_object(seal.read(f"{folder}/{file}"), file)
        if not contents[name] or not needed <= contents[name].keys():
            damaged.append(file)
    owner = holder(Path(folder)) if LOCK in there else {}
    try:
        notes = annotations_of(results, run_id) if ANNOTATIONS in there else Annotations()
    except UserError as error:  # neither the run's status nor the list of all runs depends on them
        notes = Annotations(note=str(error))
    return Record(run_id, **contents, owner=owner, annotations=notes, damaged=tuple(damaged))


def retry(results: Results, record: Record) -> None:
    """Removes a run's results, so that the next call of the workflow trains it again."""
    for name in record.damaged:
        (results.run(record.run_id) / name).unlink(missing_ok=True)
    shutil.rmtree(results.checkpoint(record.run_id), ignore_errors=True)
    shutil.rmtree(results.weights(record.run_id), ignore_errors=True)
    with suppress(UserError):  # a damaged configuration names no trunk
        trunk = parse(RunConfig, record.config, record.run_id).trunk
        if trunk and not holder(results.trunk(trunk)):
            shutil.rmtree(results.trunk(trunk), ignore_errors=True)
    results.history_so_far(record.run_id).unlink(missing_ok=True)
    results.summary(record.run_id).unlink(missing_ok=True)


def differences(*data: Data) -> dict[str, tuple[Any, ...]]:
    """Returns dotted key -> values of nested mappings, for the keys in which these differ."""
    flat = [flatten(one) for one in data]
    keys = sorted({key for one in flat for key in one})
    values = {key: tuple(one.get(key) for one in flat) for key in keys}
    return {key: row for key, row in values.items() if any(value != row[0] for value in row)}


def flatten(data: Data, prefix: str = "") -> Data:
    """Returns nested mappings as one, with dotted keys."""
    flat: Data = {}
    for key, value in data.items():
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat
