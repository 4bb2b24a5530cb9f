"""``moelaws probe``: hidden states of runs whose weights were kept."""

from __future__ import annotations

from pathlib import Path

import click

from moelaws.cli.output import json_option, out_option, print_json
from moelaws.records.batches import kept_runs
from moelaws.records.files import read_json, write_json
from moelaws.records.layout import Results
from moelaws.records.seal import digest
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig


@click.command(name="probe")
@click.argument("word", metavar="RUN_OR_BATCH")
@click.option("--results", default="results", help="Root of the records.", show_default=True)
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
@out_option("Of a single run; RESULTS/hidden/RUN_ID.parquet by default.")
@click.option("--marker", type=click.Path(path_type=Path), help="Write this file when all is done.")
@json_option
def command(
    word: str,
    results: str,
    tokens: int,
    seed: int,
    out: Path | None,
    marker: Path | None,
    as_json: bool,
) -> None:
    """Write a run's hidden states, after each layer, at sampled held-out tokens.

    RUN_OR_BATCH is a run's id or its beginning, or the file of a batch, of which all runs with kept
    weights are probed. Weights are kept by a study's keep_weights, or `moelaws train
    --keep-weights`. A run that diverged has none, and its table is empty.
    """
    from moelaws.probing.hidden import probe, write_none
    from moelaws.training.weights import check_exists

    tree = Results(Path(results))
    run_ids = kept_runs(word, tree)
    if out and len(run_ids) != 1:
        raise UserError("--out is for a single run")
    written = []
    for run_id in run_ids:
        path = out or tree.hidden(run_id)
        check_exists(tree.kept(run_id))
        status = read_json(tree.kept(run_id))["status"]
        rows = 0
        if status == "completed":
            config = parse(RunConfig, read_json(tree.run(run_id) / "config.json"), tree.run(run_id))
            folder = tree.corpus(config.corpus.corpus_id)
            rows = probe(tree.weights(run_id), folder, path, tokens, seed)
        else:
            write_none(path)
        written.append({"run_id": run_id, "status": status, "file": str(path), "rows": rows})
        if not as_json:
            click.echo(f"{path}: {rows} states" + ("" if rows else f" (run {status})"))
    if as_json:
        print_json(written if word.endswith(".json") else written[0])
    if marker:
        write_json(marker, {"runs": {run: digest(tree.hidden(run)) for run in run_ids}})
