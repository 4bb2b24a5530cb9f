"""Runs as offline runs of Weights & Biases, which `wandb sync` sends to a server.

Each is ``FOLDER/STUDY/offline-run-DATE_TIME-RUN``. A study is a project of W&B.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

os.environ["WANDB_ERROR_REPORTING"] = "false"  # wandb reads it when it is imported

import psutil
import wandb

from moelaws.exports.material import TrackedRun, into_folder, replacing_run
from moelaws.spec.from_toml import table_beside

MAX_TAG = 64  # characters of a tag that W&B takes


@contextmanager
def writer(folder: Path) -> Iterator[Callable[[TrackedRun], None]]:
    with into_folder(_put, folder) as put:
        try:
            yield put
        except BaseException:
            # The process in which wandb writes would wait for ever for a run that was interrupted.
            for child in psutil.Process().children():
                child.kill()
            with suppress(SystemExit, OSError):
                wandb.teardown()
            raise
        wandb.teardown()  # ends that process


def _put(folder: Path, run: TrackedRun) -> None:
    """Writes the run in place of any earlier export of it."""
    began = time.strftime("%Y%m%d_%H%M%S", time.gmtime(run.started))
    place = folder / run.place.study / f"offline-run-{began}-{run.run_id}"
    with replacing_run(place, f"run-{run.run_id}.wandb") as work:
        files = _write(run, work)
        for path in (files, *files.parent.glob("*.wandb")):
            path.rename(work / path.name)
        shutil.rmtree(work / "wandb")  # what is left there is of this export, not of the run


def _write(run: TrackedRun, folder: Path) -> Path:
    """Writes an offline run below ``folder``; returns the folder of its files."""
    tags = run.annotations.tags
    labels = [run.place.tier, run.status, *(f"{name}={tags[name]}"[:MAX_TAG] for name in tags)]
    offline = wandb.init(
        project=run.place.study,
        id=run.run_id,
        name=run.label,
        notes=run.annotations.note or None,
        tags=[label for label in labels if label],
        config={**run.parameters, **run.tags, **{f"tags.{name}": tags[name] for name in tags}},
        dir=folder,
        settings=wandb.Settings(**table_beside(__file__)),
    )
    files = Path(offline.dir)
    for path in run.files:
        shutil.copyfile(path, files / path.name)
        offline.save(files / path.name, base_path=files, policy="now")
    for point in run.points:
        offline.log({**point.values, "_timestamp": point.time}, step=point.step)
    offline.summary.update(dict(run.final))
    offline.finish(exit_code=0 if run.status == "completed" else 1)
    return files
