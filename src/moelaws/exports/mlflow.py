"""Runs in MLflow's SQLite database or on its server: an experiment for each study.

MLflow keeps deleted runs in its trash, so a run that it already holds as it is now is left alone.
The last tag that is written is the digest of what was sent: a run without it is incomplete, and is
replaced.
"""

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from functools import cache, partial
from pathlib import Path

# Read when mlflow is imported: no telemetry, no address printed for each run, and a server that
# does not answer is given up after some seconds instead of minutes.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException

from moelaws.exports.material import TrackedRun
from moelaws.files.lock import one_at_a_time
from moelaws.spec.errors import UserError, quoted, without_password

RUN, SENT = "moelaws.run_id", "moelaws.sent"  # tags: our identity of a run, and its digest
MAX_PARAM, MAX_TAG = 6000, 8000  # characters of a value that MLflow takes


@contextmanager
def writer(uri: str) -> Iterator[Callable[[TrackedRun], None]]:
    """Yields what puts a run into MLflow at ``uri``, ``sqlite:///FILE.db`` or a server's address.

    The files of runs go to the folder ``FILE_artifacts`` beside a database; a server has its own
    place for them. Raises UserError for another kind of address, or one that does not answer.
    """
    for library in ("mlflow", "alembic"):
        logging.getLogger(library).setLevel(logging.WARNING)
    database = _database(uri)
    if database:  # another file is refused at once: MLflow would try to open it for minutes
        database.parent.mkdir(parents=True, exist_ok=True)
        try:
            with closing(sqlite3.connect(database)) as connection:
                connection.execute("PRAGMA schema_version")
        except sqlite3.Error as error:
            raise UserError(
                f"--to names {database}: {error}; give a SQLite database of MLflow's, or a new file"
            ) from None
    with one_at_a_time(database.parent) if database else nullcontext():
        try:
            client = MlflowClient(tracking_uri=uri)
            yield partial(_put, client, database)
        except (MlflowException, sqlite3.Error) as error:
            shown = without_password(uri)
            reason = " ".join(str(error).replace(uri, shown).split())[:500]
            raise UserError(f"--to {shown}: {reason}") from None


def _database(uri: str) -> Path | None:
    """Returns the file of a SQLite database; None for a server."""
    if uri.lower().startswith(("http://", "https://")):
        return None
    if uri.startswith("sqlite:///") and uri != "sqlite:///":
        return Path(uri.removeprefix("sqlite:///")).absolute()
    raise UserError(
        f"--to is {quoted(without_password(uri))}; give sqlite:///FILE.db, or the http address of "
        "an MLflow server. MLflow gave up its plain folders"
    )


@cache
def _experiment(client: MlflowClient, database: Path | None, study: str) -> str:
    """Returns MLflow's identity of a study's experiment, and makes one where there is none."""
    if known := client.get_experiment_by_name(study):
        if known.lifecycle_stage != "active":
            raise MlflowException(
                f"the experiment {study} was deleted; `mlflow experiments restore "
                f"--experiment-id {known.experiment_id}` brings it back"
            )
        return str(known.experiment_id)
    place = None
    if database:
        place = (database.with_name(f"{database.stem}_artifacts") / study).as_uri()
    return str(client.create_experiment(study, place))


def _put(client: MlflowClient, database: Path | None, run: TrackedRun) -> None:
    """Makes the experiment of a run's study hold the run once, as it is now."""
    experiment = _experiment(client, database, run.place.study)
    there = client.search_runs([experiment], f"tags.`{RUN}` = '{run.run_id}'")
    if [old.data.tags.get(SENT) for old in there] == [run.digest]:
        return
    for old in there:
        client.delete_run(old.info.run_id)
    began, ended = (int(1000 * t) for t in (run.started, run.started + run.seconds))
    identity = client.create_run(experiment, began, {RUN: run.run_id}, run.label).info.run_id
    metrics = [
        Metric(name, value, int(1000 * point.time), point.step)
        for point in run.points
        for name, value in point.values.items()
    ]
    params = [Param(name, str(value)[:MAX_PARAM]) for name, value in run.parameters.items()]
    named = {
        "mlflow.source.name": "moelaws train",
        "mlflow.source.git.commit": run.tags.get("commit"),
        **run.annotations.tags,
        "mlflow.note.content": run.annotations.note,
        **{f"moelaws.{name}": value for name, value in run.tags.items()},
    }
    tags = [RunTag(name, value[:MAX_TAG]) for name, value in named.items() if value]
    client.log_batch(identity, metrics, params, tags)  # in as many calls as MLflow needs
    for path in run.files:
        client.log_artifact(identity, str(path))
    client.set_terminated(identity, "FINISHED" if run.status == "completed" else "FAILED", ended)
    client.set_tag(identity, SENT, run.digest)
