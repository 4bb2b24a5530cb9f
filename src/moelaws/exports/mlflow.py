"""Runs in MLflow's SQLite database or on its server: an experiment for each study.

A tag that is written last says what was sent. So a run without it is half of one, and is replaced.
"""

from __future__ import annotations

import logging
import math
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

# Read when mlflow is imported: no telemetry, no address printed for each run, and a server that
# does not answer is given up after some seconds instead of minutes.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException

from moelaws.exports.material import Point, TrackedRun
from moelaws.exports.send import Outcome
from moelaws.records.lock import one_at_a_time
from moelaws.spec.errors import UserError, quoted

OURS = "moelaws."  # begins each tag of ours
RUN = f"{OURS}run_id"
SENT = f"{OURS}sent"  # tag: digest of what was sent, without annotations
OWN = f"{OURS}tags"  # tag: the names of the user's own tags that were sent
NAME, NOTE, COMMIT = "mlflow.runName", "mlflow.note.content", "mlflow.source.git.commit"
# What MLflow takes in one call: 1000 values in all, of which 100 are parameters and 100 tags.
MOST_METRICS, MOST_OTHERS, LONGEST_PARAM, LONGEST_TAG = 800, 100, 6000, 8000
PAGE = 1000
LARGEST = sys.float_info.max

Kept = tuple[str, dict[str, str]]  # MLflow's identity of a run, and its tags
Known = dict[str, list[Kept]]  # our identity of a run -> what is there of it
T = TypeVar("T")


@contextmanager
def opened(uri: str) -> Iterator[Experiments]:
    """Yields the tracker at ``uri``, ``sqlite:///FILE.db`` or the address of a server.

    The files of runs go to the folder ``FILE_artifacts`` beside a database; a server has its own
    place for them.

    Raises:
        UserError: for another kind of address, or one that does not answer.
    """
    logging.getLogger("mlflow").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    database = _database(uri)
    if database:
        _check(database)
    with one_at_a_time(database.parent) if database else nullcontext():
        try:
            yield Experiments(MlflowClient(tracking_uri=uri), database)
        except (MlflowException, sqlite3.Error) as error:
            raise UserError(f"--to {uri}: {' '.join(str(error).split())[:500]}") from None


def _database(uri: str) -> Path | None:
    """Returns the file of a SQLite database; None for a server."""
    if uri.startswith(("http://", "https://")):
        return None
    if uri.startswith("sqlite:///") and uri != "sqlite:///":
        return Path(uri.removeprefix("sqlite:///")).absolute()
    raise UserError(
        f"--to is {quoted(uri)}; give sqlite:///FILE.db, or the http address of an MLflow server. "
        "MLflow gave up its plain folders"
    )


def _check(database: Path) -> None:
    """Refuses at once what MLflow would try to open for minutes."""
    database.parent.mkdir(parents=True, exist_ok=True)
    try:
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("PRAGMA schema_version")
    except sqlite3.Error as error:
        raise UserError(
            f"--to names {database}: {error}; give a SQLite database of MLflow's, or a new file"
        ) from None


class Experiments:
    """Keeps runs in the experiments of their studies."""

    def __init__(self, client: MlflowClient, database: Path | None) -> None:
        self.client, self.database = client, database
        self._there: dict[str, tuple[str, Known]] = {}

    def put(self, run: TrackedRun) -> Outcome:
        """Makes the experiment hold ``run`` once. What it replaces goes to MLflow's trash."""
        experiment, there = self._experiment(run.study)
        olds = there.get(run.run_id, [])
        kept = [old for old in olds if old[1].get(SENT) == run.record_digest][:1]
        if not kept:
            points = run.points()  # a damaged file is told before anything changes
            there[run.run_id] = [self._add(run, experiment, points)]
        for old, _ in olds:
            if not kept or old != kept[0][0]:
                self.client.delete_run(old)
        if not kept:
            return "updated" if olds else "added"
        there[run.run_id] = kept
        return "updated" if self._annotate(run, *kept[0]) or len(olds) > 1 else "unchanged"

    def _experiment(self, study: str) -> tuple[str, Known]:
        """Returns the study's experiment and its runs by our identity: MLflow's, and the tags."""
        if study not in self._there:
            known = self.client.get_experiment_by_name(study)
            if known is not None and known.lifecycle_stage != "active":
                raise MlflowException(
                    f"the experiment {study} was deleted; `mlflow experiments restore "
                    f"--experiment-id {known.experiment_id}` brings it back"
                )
            self._there[study] = (
                known.experiment_id if known else self._create(study),
                self._runs(known.experiment_id) if known else {},
            )
        return self._there[study]

    def _create(self, study: str) -> str:
        place = None
        if self.database:
            folder = self.database.with_name(f"{self.database.stem}_artifacts")
            place = (folder / study).as_uri()
        return str(self.client.create_experiment(study, place))

    def _runs(self, experiment: str) -> Known:
        runs: Known = {}
        token = None
        while True:
            page = self.client.search_runs([experiment], max_results=PAGE, page_token=token)
            for run in page:
                tags = dict(run.data.tags)
                if identity := tags.get(RUN):
                    runs.setdefault(identity, []).append((run.info.run_id, tags))
            if not (token := page.token):
                return runs

    def _add(self, run: TrackedRun, experiment: str, points: list[Point]) -> Kept:
        """Writes a run; the tag that says so comes last."""
        client, tags = self.client, _tags(run)
        began, ended = (int(1000 * t) for t in (run.started, run.started + run.seconds))
        made = client.create_run(experiment, began, {RUN: run.run_id}, run.label).info.run_id
        last = self._write_steps(made, points)
        params = [Param(k, str(v)[:LONGEST_PARAM]) for k, v in run.parameters.items()]
        named = [RunTag(name, value) for name, value in tags.items()]
        for some in zip_longest(
            _batches(last, MOST_METRICS),
            _batches(params, MOST_OTHERS),
            _batches(named, MOST_OTHERS),
        ):
            client.log_batch(made, *(batch or [] for batch in some))
        for path in run.files:
            client.log_artifact(made, str(path))
        client.set_terminated(made, "FINISHED" if run.status == "completed" else "FAILED", ended)
        client.set_tag(made, SENT, run.record_digest)
        return made, {**tags, SENT: run.record_digest}

    def _write_steps(self, run: str, points: list[Point]) -> list[Metric]:
        """Writes the steps of all metrics into a database; returns what is left for the client.

        MLflow's client takes 70 microseconds for a value, and SQLite 8. So all but the last value
        of each metric go into MLflow's table at once, and MLflow, which keeps the last values in
        another table too, writes these. A server gets all values from the client.
        """
        steps: dict[str, list[tuple[str, float, int, int]]] = {}
        for point in points:
            for name, value in point.values.items():
                steps.setdefault(name, []).append((name, value, int(1000 * point.time), point.step))
        if self.database:
            _insert(self.database, run, [row for rows in steps.values() for row in rows[:-1]])
            steps = {name: rows[-1:] for name, rows in steps.items()}
        return [Metric(*row) for rows in steps.values() for row in rows]

    def _annotate(self, run: TrackedRun, identity: str, there: dict[str, str]) -> bool:
        """Brings the tags of a run up to date; tells whether any had to be changed."""
        tags = _tags(run)
        written = there.get(OWN, "").split(",")
        ours = {name for name in there if name.startswith(OURS)} - {SENT}
        gone = (ours | ({*written, NOTE} & there.keys())) - tags.keys()
        changed = {name: value for name, value in tags.items() if there.get(name) != value}
        for name in gone:
            self.client.delete_tag(identity, name)
        for some in _batches([RunTag(*pair) for pair in changed.items()], MOST_OTHERS):
            self.client.log_batch(identity, tags=some)
        return bool(gone or changed)


def _insert(database: Path, run: str, rows: list[tuple[str, float, int, int]]) -> None:
    """Writes rows of key, value, time in milliseconds and step, in one transaction."""
    # As MLflow itself stores NaN and the infinities, for which SQL has no numbers.
    stored = (
        (key, 0.0, time, step, run, True)
        if math.isnan(value)
        else (key, max(-LARGEST, min(LARGEST, value)), time, step, run, False)
        for key, value, time, step in rows
    )
    with closing(sqlite3.connect(database, timeout=60)) as connection, connection:
        columns = "key, value, timestamp, step, run_uuid, is_nan"
        connection.executemany(f"INSERT INTO metrics ({columns}) VALUES (?, ?, ?, ?, ?, ?)", stored)


def _tags(run: TrackedRun) -> dict[str, str]:
    """Returns MLflow's tags of a run: its name, the user's own tags and note, and ours."""
    own = {n: v for n, v in run.annotations.tags.items() if not n.startswith(OURS)}
    tags = {NAME: run.label, "mlflow.source.name": "moelaws train", COMMIT: run.tags.get("commit")}
    tags |= own
    tags |= {NOTE: run.annotations.note, OWN: ",".join(own)}
    tags |= {f"{OURS}{name}": value for name, value in run.tags.items()}
    return {name: value[:LONGEST_TAG] for name, value in tags.items() if value}


def _batches(items: list[T], most: int) -> Iterator[list[T]]:
    for start in range(0, len(items), most):
        yield items[start : start + most]
