"""``moelaws probe``: hidden states of a run whose weights were kept."""

from __future__ import annotations

from pathlib import Path

import click

from moelaws.cli.output import json_option, out_option, print_json
from moelaws.records.files import read_json
from moelaws.records.layout import Results
from moelaws.spec.base import parse
from moelaws.spec.run import RunConfig


@click.command(name="probe")
@click.argument("run_id")
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
@out_option("RESULTS/hidden/RUN_ID.parquet.")
@json_option
def command(
    run_id: str, results: str, tokens: int, seed: int, out: Path | None, as_json: bool
) -> None:
    """Write the hidden states of RUN_ID, after each layer, at sampled held-out tokens.

    The weights must be kept: by a study's keep_weights, or `moelaws train --keep-weights`. A run
    that diverged has none, and its table is empty.
    """
    from moelaws.probing.hidden import probe, write_none
    from moelaws.training.weights import check_exists

    tree = Results(Path(results))
    out = out or tree.hidden(run_id)
    kept = tree.kept(run_id)
    check_exists(kept)
    status = read_json(kept)["status"]
    rows = 0
    if status == "completed":
        config = parse(RunConfig, read_json(tree.run(run_id) / "config.json"), tree.run(run_id))
        folder = tree.corpus(config.corpus.corpus_id)
        rows = probe(tree.weights(run_id), folder, out, tokens, seed)
    else:
        write_none(out)
    if as_json:
        print_json({"run_id": run_id, "status": status, "file": str(out), "rows": rows})
    else:
        click.echo(f"{out}: {rows} states" + ("" if rows else f" (run {status})"))
