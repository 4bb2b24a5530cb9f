"""``moelaws export FORMAT``: runs on record for other programs."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from moelaws.cli.answers import JsonCommand, print_answer
from moelaws.cli.common import FILE, FOLDER, Words, option, results_option, with_options
from moelaws.cli.project import override_options
from moelaws.cli.runs import Selection, selection_options
from moelaws.files.layout import Results
from moelaws.records.names import find_record
from moelaws.records.progress import reporting
from moelaws.spec.errors import UserError, listed, without_password
from moelaws.spec.project import CONFIG, load_project
from moelaws.spec.references import resolve
from moelaws.spec.words import counted


@click.group(name="export")
def command() -> None:
    """Write runs in the formats of other programs."""


@command.command(
    name="hf",
    short_help="Write a run as a folder that Hugging Face's transformers loads.",
    cls=JsonCommand,
)
@click.argument("run", metavar="RUN")
@option("--to", "Folder to write.", FILE, required=True)
@results_option
def hf(run: str, to: Path, results: Results, as_json: bool) -> None:
    """Write RUN (an id, its beginning or a name) as a folder that transformers loads as it stands.

    The weights must be kept: by a study's keep_weights, or `moelaws train --keep-weights`. The
    architecture must be one that transformers has: the folder gives the same logits. An earlier
    export of the same run is replaced.

    \b
    moelaws export hf 3fb1 --to exported
    """
    from moelaws.exports.hf.folder import export

    run_id = find_record(results, run).run_id
    architecture, files = export(results, run_id, to)
    size = sum(files.values())
    about = {"run_id": run_id, "folder": str(to), "architecture": architecture, "files": files}
    text = f"{to}: run {run_id} as {architecture}, {size / 1e6:.1f} MB"
    print_answer(as_json, {**about, "bytes": size}, text)


def _tracker(name: str, short_help: str, help: str, *options: Callable[..., Any]) -> None:
    help += (
        "\n\nThe runs are those that completed or diverged. A second call adds nothing twice: it "
        "replaces what is there of these runs."
    )

    @command.command(name=name, short_help=short_help, help=help, cls=JsonCommand)
    @with_options(*options)
    @click.argument("chosen", metavar="[RUN]...", nargs=-1)
    @option(
        "--study studies",
        "Only runs of this study; may be given again. The configuration's by default.",
        metavar="STUDY",
        multiple=True,
    )
    @results_option
    @override_options
    @selection_options
    def export_to(
        to: str | Path,
        chosen: Words,
        studies: Words,
        results: Results,
        overrides: dict[str, Any],
        selection: Selection,
        as_json: bool,
    ) -> None:
        from moelaws.exports.material import export, places_of

        try:
            writer = resolve("moelaws.exports", f"{name}:writer")
        except ModuleNotFoundError:
            raise UserError(
                f"export {name} needs the package {name}: pip install --no-deps -r envs/{name}.txt"
            ) from None
        if not results.runs.is_dir():
            raise UserError(
                f"there is no folder {results.runs}; --results names the root of records"
            )
        overrides |= {"studies": list(studies)} if studies else {}
        places = None
        if overrides or CONFIG.exists():
            places = places_of(load_project(overrides=overrides))
        records = selection.of(results, chosen).records
        named = bool(chosen) and not studies
        with writer(to) as write, reporting() as report:
            runs, left_out = export(records, results, places, write, report, named)
        written = [{"study": study, "run_id": run} for study, run in runs]
        omitted = [{"run_id": run, "reason": reason} for run, reason in left_out.items()]
        shown = without_password(str(to))
        data = {"tracker": name, "to": shown, "runs": written, "left_out": omitted}
        counts = Counter(study for study, _ in runs)
        of = ", ".join(f"{study} {count}" for study, count in counts.items())
        total = counted(len(runs), "run")
        lines = [f"{shown}: {total}{f' ({of})' if of else ''}, {len(left_out)} left out"]
        for reason in dict.fromkeys(left_out.values()):
            ids = [run for run, why in left_out.items() if why == reason]
            lines.append(f"left out, {reason}: {listed(ids, 5)}")
        print_answer(as_json, data, "\n".join(lines))


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
    option(  # a folder "wandb" would hide the package from Python
        "--to",
        "The folder that gets STUDY/offline-run-*.",
        FOLDER,
        Path("wandb_runs"),
        metavar="DIR",
    ),
)
