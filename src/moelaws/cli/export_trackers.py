"""``moelaws export mlflow | tensorboard | wandb``: runs on record for experiment trackers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.gathered import gathered
from moelaws.cli.output import json_option, print_json
from moelaws.cli.project import override_options
from moelaws.cli.runs import Selection, selection_options
from moelaws.spec.errors import UserError, listed
from moelaws.spec.project import CONFIG, load_project

if TYPE_CHECKING:
    from moelaws.exports.chosen import Chosen
    from moelaws.exports.send import Sent, Tracker


@dataclass(frozen=True)
class Scope:
    """Which runs are meant, by the project and by name."""

    chosen: tuple[str, ...]
    studies: tuple[str, ...]
    results: Path
    overrides: dict[str, Any]


def _shared(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds what the three commands share; a command receives ``scope``, ``selection``, JSON."""
    scope = gathered(
        "scope",
        Scope,
        click.argument("chosen", metavar="[RUN]...", nargs=-1),
        click.option(
            *("--study", "studies"),
            metavar="STUDY",
            multiple=True,
            help="Only runs of this study; may be given again. The configuration's by default.",
        ),
        click.option(
            "--results",
            type=click.Path(path_type=Path),
            default=Path("results"),
            show_default=True,
            help="Root of the records.",
        ),
        override_options,
    )
    return scope(selection_options(json_option(command)))


@click.command(name="mlflow")
@click.option(
    *("--to", "uri"),
    required=True,
    metavar="URI",
    help="sqlite:///FILE.db, or the http address of an MLflow server.",
)
@_shared
def mlflow(uri: str, scope: Scope, selection: Selection, as_json: bool) -> None:
    """Put the runs of the chosen studies, or each RUN, into MLflow, an experiment a study.

    The runs are those that completed or diverged. A second call adds nothing twice: it updates
    what changed, and completes what was interrupted.
    """
    with _needs("mlflow"):
        from moelaws.exports.mlflow import opened
    _export("mlflow", uri, scope, selection, opened(uri), as_json)


@click.command(name="tensorboard")
@click.option(
    *("--to", "folder"),
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The folder to give to tensorboard --logdir.",
)
@_shared
def tensorboard(folder: Path, scope: Scope, selection: Selection, as_json: bool) -> None:
    """Write the runs of the chosen studies, or each RUN, for TensorBoard: DIR/STUDY/RUN.

    The runs are those that completed or diverged. A second call adds nothing twice: it updates
    what changed, and completes what was interrupted.
    """
    with _needs("tensorboard"):
        from moelaws.exports.tensorboard import opened
    _export("tensorboard", folder, scope, selection, opened(folder), as_json)


@click.command(name="wandb")
@click.option("--offline", is_flag=True, help="Needed: runs are written for `wandb sync`.")
@click.option(
    *("--to", "folder"),
    default=Path("wandb_runs"),  # a folder "wandb" would hide the package from Python
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The folder that gets STUDY/offline-run-*.",
)
@_shared
def wandb(offline: bool, folder: Path, scope: Scope, selection: Selection, as_json: bool) -> None:
    """Write the runs of the chosen studies, or each RUN, for W&B, a project a study.

    The runs are those that completed or diverged. A second call adds nothing twice: it updates
    what changed, and completes what was interrupted. `wandb sync DIR/STUDY/offline-run-*` sends
    them to a server.
    """
    if not offline:
        raise UserError(
            "export wandb asks no server: add --offline, and then call wandb sync on what it wrote"
        )
    with _needs("wandb"):
        from moelaws.exports.wandb import opened
    _export("wandb", folder, scope, selection, opened(folder), as_json)


@contextmanager
def _needs(package: str) -> Iterator[None]:
    """Turns a missing package into what to do about it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("moelaws"):
            raise
        raise UserError(
            f"export {package} needs the package {package}: "
            f"pip install --no-deps -r envs/{package}.txt"
        ) from None


def _export(
    name: str,
    to: str | Path,
    scope: Scope,
    selection: Selection,
    opened: AbstractContextManager[Tracker],
    as_json: bool,
) -> None:
    from moelaws.exports.send import send
    from moelaws.records.progress import reporting

    chosen = _choose(scope, selection)
    with opened as tracker, reporting() as report:
        sent = send(chosen, tracker, report)
    if as_json:
        print_json({"tracker": name, "to": str(to), **_as_dict(sent)})
        return
    for line in _told(to, sent):
        click.echo(line)


def _choose(scope: Scope, selection: Selection) -> Chosen:
    from moelaws.exports.chosen import asked_in, choose
    from moelaws.records.code import training_code
    from moelaws.records.layout import Results
    from moelaws.records.listing import Listing
    from moelaws.records.runs import all_records, find_record

    results, code = Results(scope.results), training_code()
    if not results.runs.is_dir():
        raise UserError(f"there is no folder {results.runs}; --results names the root of records")
    overrides = dict(scope.overrides)
    if scope.studies:
        overrides["studies"] = list(scope.studies)
    asked = None
    if overrides or CONFIG.exists():
        asked = asked_in(load_project(overrides=overrides))
    records = [find_record(results, run) for run in scope.chosen] or all_records(results)
    listing = Listing.of([r for r in records if selection.holds(r, code)], code)
    listing = listing.where(selection.where)
    named = bool(scope.chosen) and not scope.studies
    return choose(listing.records, results, asked, named)


def _as_dict(sent: Sent) -> dict[str, Any]:
    outcomes: dict[str, Any] = {
        outcome: [{"study": run.study, "run_id": run.run_id} for run in runs]
        for outcome, runs in sent.runs.items()
    }
    return {**outcomes, "left_out": [vars(run) for run in sent.left_out]}


def _told(to: str | Path, sent: Sent) -> Iterator[str]:
    """Yields how many runs were added, updated, unchanged, and which were left out, and why."""
    studies = Counter(run.study for some in sent.runs.values() for run in some)
    of = ", ".join(f"{study} {count}" for study, count in studies.items())
    counts = ", ".join(f"{len(some)} {outcome}" for outcome, some in sent.runs.items())
    yield f"{to}: {counts}, {len(sent.left_out)} left out{f' (runs: {of})' if of else ''}"
    reasons: dict[str, list[str]] = {}
    for run in sent.left_out:
        reasons.setdefault(run.reason, []).append(run.run_id)
    for reason, ids in reasons.items():
        yield f"left out, {reason}: {listed(ids, 5)}"
