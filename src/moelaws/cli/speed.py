"""``moelaws speed``: how fast several configurations train, measured side by side."""

from pathlib import Path
from typing import Any

import click

from moelaws.cli.answers import Answer, JsonCommand, table_text
from moelaws.cli.common import COUNT, WHOLE, Words, option, out_option, read_named, results_option
from moelaws.cli.gpu import device_option, gpus_option, holding
from moelaws.cli.project import override_options
from moelaws.files.layout import Results
from moelaws.files.seal import made_of
from moelaws.gpus.listing import Chosen
from moelaws.grids.expand import Run, architectures
from moelaws.grids.sweep import sweep_of
from moelaws.records.code import digest
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.project import load_project
from moelaws.spec.run import RunConfig
from moelaws.tables.describe import describe
from moelaws.workflow.code import of_speed

# The columns that tell which configuration a row measures.
ARCHITECTURE = ("kind", "n_layers", "d_model", "d_expert", "E", "k", "batch_tokens")


@click.command(name="speed", cls=JsonCommand)
@click.argument("runs", nargs=-1, metavar="[RUN_OR_CONFIG]...")
@option("--study", "Those of this study's grid too, one for each architecture.")
@override_options
@device_option
@option("--repeats", "Rounds, in each of which every configuration has a turn.", COUNT, 15)
@option("--seed", "Seed of the order of the turns.", WHOLE, 0)
@results_option
@gpus_option
@out_option("A Parquet file for the numbers; without it they are only printed.", ".parquet")
def command(
    runs: Words,
    study: str | None,
    overrides: dict[str, Any],
    device: str,
    repeats: int,
    seed: int,
    results: Results,
    gpus: Chosen | None,
    out: Path | None,
) -> Answer:
    """Measure how fast configurations train, and what memory a training step takes.

    Each RUN_OR_CONFIG is a run on record, by its id or its name, or a JSON file such as
    `moelaws grid --run` prints; - is standard input. No text is needed and nothing is trained:
    the models are new and read random tokens. They take turns in one process, and `time` is the
    time that a training token takes, over that of the first one. `state` are parameters, gradients
    and moments; `saved` is what the forward pass keeps for the backward pass.

    torch uses OMP_NUM_THREADS threads, one by default, as `moelaws train` does.
    """
    from moelaws.probing.speed import measure, write_rows

    named = [read_named(word, results) for word in runs]
    configs = [parse(RunConfig, data, where) for where, data in named]
    measured = [Run(config.run_id, config, None) for config in configs]
    if study:
        measured += architectures(sweep_of(study, load_project(overrides=overrides)).runs)
    if not measured:
        raise UserError("there is nothing to measure: name runs, JSON files or --study STUDY")
    with holding(gpus, 1):
        rows = measure([run.config for run in measured], device, repeats, seed)
    if out:
        files = [where for where, _ in named if isinstance(where, Path)]
        write_rows(out, rows, made_of(files, digest(of_speed())))
    lines = [{**describe(run), **row} for run, row in zip(measured, rows, strict=True)]
    names = ("run_id", *ARCHITECTURE, *rows[0])
    speeds = [{name: line[name] for name in names} for line in lines]
    columns = ("tokens/s", "time", "90 % interval", "evaluated/s", "state MB", "saved MB")
    title = f"{rows[0]['device']}, {rows[0]['threads']} threads, {repeats} rounds"
    text = table_text(("run_id", *ARCHITECTURE, *columns), map(_cells, lines), title)
    data = {"file": str(out) if out else None, "speeds": speeds}
    return data, f"{text}\n{out}" if out else text


def _cells(line: dict[str, Any]) -> tuple[object, ...]:
    return (
        *(line[name] for name in ("run_id", *ARCHITECTURE)),
        line["tokens_per_second"],
        line["time_ratio"],
        f"{line['time_ratio_low']:.3f} .. {line['time_ratio_high']:.3f}",
        line["evaluation_tokens_per_second"],
        line["state_bytes"] / 1e6,
        line["activation_bytes"] / 1e6,
    )
