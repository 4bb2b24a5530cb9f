"""Runs as offline runs of Weights & Biases, which `wandb sync` sends to a server.

wandb writes each run in a hidden folder, which is renamed to ``FOLDER/STUDY/offline-run-*`` when it
is complete. A study is a project of W&B.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

os.environ["WANDB_ERROR_REPORTING"] = "false"  # wandb reads it when it is imported

import wandb

from moelaws.exports.material import TrackedRun
from moelaws.files.leftovers import discard, sweep, temporary
from moelaws.files.lock import one_at_a_time

MAX_TAG = 64  # characters of a tag that W&B takes


@contextmanager
def writer(folder: Path) -> Iterator[Callable[[TrackedRun], None]]:
    folder.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(folder):
        sweep(folder)
        hidden = temporary(folder / "wandb")
        hidden.mkdir()
        try:
            yield partial(_put, folder, hidden)
        finally:
            wandb.teardown()  # ends the process in which wandb writes
            discard(hidden)


def _put(folder: Path, hidden: Path, run: TrackedRun) -> None:
    """Writes ``FOLDER/STUDY/offline-run-DATE_TIME-RUN`` in place of any earlier export."""
    began = time.strftime("%Y%m%d_%H%M%S", time.gmtime(run.started))
    study, written = folder / run.place.study, _write(run, hidden)
    study.mkdir(exist_ok=True)
    for old in study.glob(f"offline-run-*-{run.run_id}"):
        shutil.rmtree(old)
    os.replace(written, study / f"offline-run-{began}-{run.run_id}")


def _write(run: TrackedRun, hidden: Path) -> Path:
    """Writes an offline run below ``hidden``; returns its folder."""
    tags = run.annotations.tags
    labels = [run.place.tier, run.status, *(f"{name}={tags[name]}"[:MAX_TAG] for name in tags)]
    offline = wandb.init(
        project=run.place.study,
        id=run.run_id,
        name=run.label,
        notes=run.annotations.note or None,
        tags=[label for label in labels if label],
        config={**run.parameters, **run.tags, **{f"tags.{name}": tags[name] for name in tags}},
        dir=hidden,
        # With these wandb asks no host and notes nothing of this process.
        settings=wandb.Settings(
            mode="offline",
            console="off",
            silent=True,
            disable_code=True,
            disable_git=True,
            save_code=False,
            x_disable_machine_info=True,
            x_disable_meta=True,
            x_disable_stats=True,
            x_save_requirements=False,
        ),
    )
    files = Path(offline.dir)
    for path in run.files:
        shutil.copyfile(path, files / path.name)
        offline.save(files / path.name, base_path=files, policy="now")
    for point in run.points:
        offline.log({**point.values, "_timestamp": point.time}, step=point.step)
    offline.summary.update(dict(run.final))
    offline.finish(exit_code=0 if run.status == "completed" else 1)
    folder = files.parent
    for name in ("tmp", "logs"):  # of this export, not of the run
        shutil.rmtree(folder / name, ignore_errors=True)
    return folder
