"""Where the files behind a study's entry lie: as given on the command line, else below results/."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from moelaws.spec.errors import UserError

table_option = click.option(
    "--table", type=click.Path(path_type=Path), help="The study's table; results/... by default."
)
fit_option = click.option(
    "--fit",
    "fits",
    multiple=True,
    metavar="NAME=FILE",
    help="A fit's JSON; results/... by default.",
)
simulated_option = click.option(
    "--simulated", is_flag=True, help="Read and write below results/TIER/simulated."
)


def files(
    option: str, given: Sequence[str], names: Sequence[str], default: Callable[[str], Path]
) -> dict[str, Path]:
    """The file of each of ``names``: the one ``given`` as NAME=FILE, else its ``default``.

    Raises:
        UserError: for a text that is not NAME=FILE or names what the entry does not declare.
    """
    paths = {name: default(name) for name in names}
    for text in given:
        name, equals, file = text.partition("=")
        if not (equals and file):
            raise UserError(f"{option} {text!r}: NAME=FILE is wanted")
        if name not in paths:
            declared = ", ".join(names) or "none"
            raise UserError(f"{option} {text!r}: the study's entry declares {declared}")
        paths[name] = Path(file)
    return paths


def report_warnings(warnings: Sequence[str], most: int = 8) -> None:
    """Warnings on standard error, the first ``most`` of them."""
    for text in warnings[:most]:
        click.echo(f"moelaws: warning: {text}", err=True)
    if len(warnings) > most:
        click.echo(f"moelaws: warning: and {len(warnings) - most} more like these", err=True)
