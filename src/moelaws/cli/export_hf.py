"""``moelaws export hf``: a run whose weights were kept, for Hugging Face's transformers."""

from __future__ import annotations

from pathlib import Path

import click

from moelaws.cli.output import json_option, print_json
from moelaws.records.layout import Results
from moelaws.records.runs import find_record


@click.command(name="hf")
@click.argument("run", metavar="RUN")
@click.option("--to", type=click.Path(path_type=Path), required=True, help="Folder to write.")
@click.option("--results", default="results", help="Root of the records.", show_default=True)
@json_option
def command(run: str, to: Path, results: str, as_json: bool) -> None:
    """Write RUN (an id or its beginning) as a folder that transformers loads as it stands.

    The weights must be kept: by a study's keep_weights, or `moelaws train --keep-weights`. The
    architecture must be one that transformers has: the folder gives the same logits. An earlier
    export of the same run is replaced.

    \b
    moelaws export hf 3fb1 --to exported
    """
    from moelaws.exports.hf.folder import export

    tree = Results(Path(results))
    written = export(tree, find_record(tree, run).run_id, to)
    size = sum(written.files.values())
    if as_json:
        print_json(
            {
                "run_id": written.run_id,
                "folder": str(to),
                "architecture": written.architecture,
                "files": written.files,
                "bytes": size,
            }
        )
    else:
        click.echo(f"{to}: run {written.run_id} as {written.architecture}, {size / 1e6:.1f} MB")
