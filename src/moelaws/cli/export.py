"""``moelaws export FORMAT``: runs on record for other programs."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from moelaws.cli.common import (
    FILE,
    FOLDER,
    gathered,
    json_option,
    option,
    print_answer,
    print_json,
    results_option,
    with_options,
)
from moelaws.cli.project import override_options
from moelaws.cli.runs import Selection, selection_options
from moelaws.files.layout import Results
from moelaws.records.progress import reporting
from moelaws.records.runs import find_record
from moelaws.spec.errors import UserError, listed
from moelaws.spec.project import CONFIG, load_project
from moelaws.spec.references import resolve
from moelaws.spec.words import counted


@click.group(name="export")
def command() -> None:
    """Write runs in the formats of other programs."""


@command.command(
    name="hf", short_help="Write a run as a folder that Hugging Face's transformers loads."
)
@click.argument("run", metavar="RUN")
@option("--to", "Folder to write.", FILE, required=True)
@results_option
@json_option
def hf(run: str, to: Path, results: Path, as_json: bool) -> None:
    """Write RUN (an id or its beginning) as a folder that transformers loads as it stands.

    The weights must be kept: by a study's keep_weights, or `moelaws train --keep-weights`. The
    architecture must be one that transformers has: the folder gives the same logits. An earlier
    export of the same run is replaced.

    \b
    moelaws export hf 3fb1 --to exported
    """
    from moelaws.exports.hf.folder import export

    tree = Results(results)
    written = export(tree, find_record(tree, run).run_id, to)
    size = sum(written.files.values())
    text = f"{to}: run {written.run_id} as {written.architecture}, {size / 1e6:.1f} MB"
    print_answer(as_json, {**vars(written), "folder": str(to), "bytes": size}, text)


@dataclass(frozen=True)
class Scope:
    """The runs and the studies that a user names, and the project that has them."""

    chosen: tuple[str, ...]
    studies: tuple[str, ...]
    results: Path
    overrides: dict[str, Any]


def _shared(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the arguments of all trackers: ``scope``, ``selection`` and ``as_json``."""
    scope = gathered(
        "scope",
        Scope,
        click.argument("chosen", metavar="[RUN]...", nargs=-1),
        option(
            "--study studies",
            "Only runs of this study; may be given again. The configuration's by default.",
            metavar="STUDY",
            multiple=True,
        ),
        results_option,
        override_options,
    )
    return scope(selection_options(json_option(command)))


def _refuse_online(context: click.Context, parameter: click.Parameter, offline: bool) -> None:
    if not offline:
        raise UserError(
            "export wandb asks no server: add --offline, and then call wandb sync on what it wrote"
        )


def _tracker(name: str, short_help: str, help: str, *options: Callable[..., Any]) -> None:
    """Adds the command that exports runs to the program ``name``."""
    help += (
        "\n\nThe runs are those that completed or diverged. A second call adds nothing twice: it "
        "replaces what is there of these runs."
    )

    @_shared
    def export_to(to: str | Path, scope: Scope, selection: Selection, as_json: bool) -> None:
        _export(name, to, scope, selection, as_json)

    command.command(name=name, short_help=short_help, help=help)(with_options(export_to, options))


_tracker(
    "mlflow",
    "Put runs into a database or a server of MLflow.",
    "Put the runs of the chosen studies, or each RUN, into MLflow, an experiment a study.",
    option(
        "--to",
        "sqlite:///FILE.db, or the http address of an MLflow server.",
        required=True,
        metavar="URI",
    ),
)
_tracker(
    "tensorboard",
    "Write runs as event files for TensorBoard.",
    "Write the runs of the chosen studies, or each RUN, for TensorBoard: DIR/STUDY/RUN.",
    option(
        "--to", "The folder to give to tensorboard --logdir.", FOLDER, required=True, metavar="DIR"
    ),
)
_tracker(
    "wandb",
    "Write runs as offline runs of W&B.",
    "Write the runs of the chosen studies, or each RUN, for W&B, a project a study. `wandb sync "
    "DIR/STUDY/offline-run-*` sends them to a server.",
    option(
        "--offline",
        "Needed: runs are written for `wandb sync`.",
        is_flag=True,
        expose_value=False,
        callback=_refuse_online,
    ),
    option(  # a folder "wandb" would hide the package from Python
        "--to",
        "The folder that gets STUDY/offline-run-*.",
        FOLDER,
        Path("wandb_runs"),
        metavar="DIR",
    ),
)


def _export(name: str, to: str | Path, scope: Scope, selection: Selection, as_json: bool) -> None:
    from moelaws.exports.material import export, places_of

    try:
        writer = resolve("moelaws.exports", f"{name}:writer")
    except ModuleNotFoundError:
        raise UserError(
            f"export {name} needs the package {name}: pip install --no-deps -r envs/{name}.txt"
        ) from None
    results = Results(scope.results)
    if not results.runs.is_dir():
        raise UserError(f"there is no folder {results.runs}; --results names the root of records")
    overrides = dict(scope.overrides)
    if scope.studies:
        overrides["studies"] = list(scope.studies)
    places = None
    if overrides or CONFIG.exists():
        places = places_of(load_project(overrides=overrides))
    records = selection.of(results, scope.chosen).records
    named = bool(scope.chosen) and not scope.studies
    with writer(to) as write, reporting() as report:
        runs, left_out = export(records, results, places, write, report, named)
    if as_json:
        written = [{"study": study, "run_id": run} for study, run in runs]
        omitted = [{"run_id": run, "reason": reason} for run, reason in left_out.items()]
        print_json({"tracker": name, "to": str(to), "runs": written, "left_out": omitted})
        return
    studies = Counter(study for study, _ in runs)
    of = ", ".join(f"{study} {count}" for study, count in studies.items())
    click.echo(
        f"{to}: {counted(len(runs), 'run')}{f' ({of})' if of else ''}, {len(left_out)} left out"
    )
    for reason in dict.fromkeys(left_out.values()):
        ids = [run for run, why in left_out.items() if why == reason]
        click.echo(f"left out, {reason}: {listed(ids, 5)}")
