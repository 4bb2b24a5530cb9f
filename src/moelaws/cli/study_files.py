"""Where the files behind a study's entries lie: as given on the command line, else in results/."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moelaws.spec.errors import UserError
from moelaws.spec.study import Reader, Study

if TYPE_CHECKING:
    from moelaws.analysis.inputs import Inputs

_OPTIONS = (
    click.option(
        "--table",
        type=click.Path(path_type=Path),
        help="The study's table; results/... by default.",
    ),
    click.option(
        "--fit",
        "fits",
        multiple=True,
        metavar="NAME=FILE",
        help="A fit's JSON; results/... by default.",
    ),
    click.option(
        "--derived",
        multiple=True,
        metavar="NAME=FILE",
        help="A derived table; results/... by default.",
    ),
    click.option(
        "--simulated",
        is_flag=True,
        help="Read and write below results/TIER/simulated, as with source: simulated.",
    ),
)


def file_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--table``, ``--fit``, ``--derived`` and ``--simulated``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def entry_inputs(
    study: Study,
    entries: Sequence[Reader],
    tier: str,
    simulated: bool,
    table: Path | None = None,
    fits: Sequence[str] = (),
    derived: Sequence[str] = (),
) -> Inputs:
    """What the study's ``entries`` read together.

    Raises:
        UserError: for a file that is missing or damaged, or one given that no entry declares.
    """
    from moelaws.analysis.inputs import Inputs
    from moelaws.records.layout import Results

    name, results = study.study, Results()
    if table is None and study.grids:
        table = results.table(tier, name, simulated)
    declared_fits = sorted({fit for entry in entries for fit in entry.fits})
    declared_tables = sorted({one for entry in entries for one in entry.derived})
    return Inputs.read(
        table,
        files("--fit", fits, declared_fits, lambda n: results.fit(tier, name, n, simulated)),
        files(
            "--derived",
            derived,
            declared_tables,
            lambda n: results.derived(tier, name, n, simulated),
        ),
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
