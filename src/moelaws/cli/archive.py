"""``moelaws archive``: a finished sweep as one file."""

from pathlib import Path
from typing import Any

import click

from moelaws.cli.answers import Answer, JsonCommand
from moelaws.cli.common import FILE, check_out, option
from moelaws.cli.project import override_options
from moelaws.records.progress import reporting
from moelaws.spec.errors import UserError
from moelaws.spec.words import counted


@click.command(name="archive", cls=JsonCommand)
@option("--to out", "Write the archive to this file.", FILE, metavar="FILE.zip", required=True)
@option("--force", "Replace the file of --to where it exists.", is_flag=True)
@override_options
def command(out: Path, force: bool, overrides: dict[str, Any]) -> Answer:
    """Write a finished sweep of the chosen studies to one ZIP file.

    It holds the configuration, the pinned packages, the record of each run, tables, fits, figures,
    claims, pages, the code, and a README.txt that says how to use it. Neither the text nor its
    tokens are in it. Where it is unpacked, `sha256sum -c SHA256SUMS` checks each file.

    \b
    moelaws archive --set studies=sparsity --to sparsity.zip
    """
    from moelaws.workflow import archive
    from moelaws.workflow.jobs import Jobs

    check_out(out, ".zip", option="--to")
    if out.exists() and not force:
        raise UserError(f"--to is {str(out)!r}, which exists; --force replaces it")
    with reporting() as report:
        sums = archive.write(out, Jobs.load(overrides), overrides, report)
    return {"archive": str(out), "files": sums}, f"{out}: {counted(len(sums), 'file')}"
