"""``moelaws export FORMAT``: runs on record for other programs."""

from collections import Counter
from pathlib import Path
from typing import Any

import click

from moelaws.cli.common import (
    FILE,
    FOLDER,
    INPUT,
    Answer,
    JsonCommand,
    Paths,
    Words,
    option,
    results_option,
)
from moelaws.cli.project import override_options
from moelaws.cli.runs import Selection, selection_options
from moelaws.files.layout import Results
from moelaws.records.names import find_record
from moelaws.records.progress import reporting
from moelaws.spec.errors import UserError, listed, without_password
from moelaws.spec.from_toml import table_beside
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
def hf(run: str, to: Path, results: Results) -> Answer:
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
    data = {
        "run_id": run_id,
        "folder": to,
        "architecture": architecture,
        "files": files,
        "bytes": size,
    }
    return data, f"{to}: run {run_id} as {architecture}, {size / 1e6:.1f} MB"


@command.command(
    name="dataset",
    short_help="Write tables of runs as a data set, with a card.",
    cls=JsonCommand,
)
@click.argument("tables", metavar="TABLE.parquet...", nargs=-1, required=True, type=INPUT)
@option("--to", "Folder to write.", FILE, required=True)
@option("--author", "Who made the runs.", required=True)
@option("--license", "Its identifier on the hub, such as cc-by-4.0.", required=True)
@option("--title", "What the data set is called.", default="Runs of scaling-law sweeps")
@option("--url", "Where it will be found.", default="")
def dataset(tables: Paths, to: Path, author: str, license: str, title: str, url: str) -> Answer:
    """Write tables of runs as a folder that datasets and mlcroissant load, and the hub shows.

    The tables keep their columns. The runs of all studies stand once more in one table, under the
    names that others use. Nothing is sent anywhere.

    \b
    moelaws export dataset results/demo/tables/*.parquet --to runs \\
      --author "A. Name" --license cc-by-4.0
    """
    from moelaws.exports.dataset import export

    rows = export(tables, to, title, author, license, url)
    lines = [f"{to / 'README.md'}: {counted(len(rows), 'table')}"]
    lines += [f"{name}: {counted(count, 'row')}" for name, count in rows.items()]
    return {"folder": to, "rows": rows}, "\n".join(lines)


def _tracker(name: str, to: dict[str, Any], help: str, short_help: str) -> None:
    help += (
        "\n\nThe runs are those that completed or diverged. A second call adds nothing twice: it "
        "replaces what is there of these runs."
    )

    @command.command(name=name, short_help=short_help, help=help, cls=JsonCommand)
    @option("--to", **to, type=None if name == "mlflow" else FOLDER)
    @click.argument("chosen", metavar="[RUN]...", nargs=-1)
    @results_option
    @override_options
    @selection_options
    def export_to(
        to: str | Path,
        chosen: Words,
        results: Results,
        overrides: dict[str, Any],
        selection: Selection,
    ) -> Answer:
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
        places = None
        if overrides or CONFIG.exists():
            places = places_of(load_project(overrides=overrides))
        records = [record for record, _ in selection.of(results, chosen)]
        with writer(to) as put, reporting() as report:
            runs, left_out = export(records, results, places, put, report, bool(chosen))
        shown = without_password(str(to))
        counts = Counter(run["study"] for run in runs)
        of = ", ".join(f"{study} {count}" for study, count in counts.items())
        total = counted(len(runs), "run")
        lines = [f"{shown}: {total}{f' ({of})' if of else ''}, {len(left_out)} left out"]
        for reason in dict.fromkeys(run["reason"] for run in left_out):
            ids = [run["run_id"] for run in left_out if run["reason"] == reason]
            lines.append(f"left out, {reason}: {listed(ids, 5)}")
        data = {"tracker": name, "to": shown, "runs": runs, "left_out": left_out}
        return data, "\n".join(lines)


for _name, _words in table_beside(__file__).items():
    _tracker(_name, **_words)
