"""``moelaws show``: one run's record, or what a figure, table or fit was made of."""

from collections.abc import Iterator
from pathlib import Path

import click

from moelaws.cli.answers import JsonCommand, print_answer, print_json, print_table, table_text
from moelaws.cli.common import study_option
from moelaws.cli.project import simulated_option, tier_option
from moelaws.cli.study_files import study_with
from moelaws.files.layout import Results, TierFolder
from moelaws.records.chain import Link, changed_runs, link, trained_by
from moelaws.records.names import find_record
from moelaws.records.runs import flatten
from moelaws.spec.errors import UserError
from moelaws.spec.project import load_project
from moelaws.spec.words import counted

# Word on the command line -> key of such entries in a study.
KINDS = {"figure": "figures", "table": "tables", "fit": "fits", "derived": "derived"}


@click.command(name="show", cls=JsonCommand)
@click.argument("what", metavar="RUN|FILE|KIND")
@click.argument("name", required=False)
@study_option
@simulated_option
@tier_option
def command(
    what: str,
    name: str | None,
    study_name: str | None,
    simulated: bool,
    tier: str | None,
    as_json: bool,
) -> None:
    """Show everything on record of RUN (an id, its beginning, or a name as `moelaws runs` has it).

    With a KIND (figure, table, fit or derived) and a NAME, or with a FILE that was made, show what
    it was made of: every file behind it by digest, back to the runs, their commits and their text.

    \b
    moelaws show 3fb1
    moelaws show figure F7
    moelaws show results/demo/tables/sparsity.parquet
    """
    if name is not None:
        project = load_project(overrides={"tier": tier} if tier else {})
        folder = Results().tier(project.tier, simulated or project.source == "simulated")
        path = _file(what, name, study_name, folder)
    elif Path(what).suffix and " " not in what:  # which a run's name may have
        path = Path(what)
    else:
        data = find_record(Results(), what).as_dict()
        rows = [(key, str(value)) for key, value in flatten(data).items()]
        print_answer(as_json, data, table_text(("key", "value"), rows))
        return

    top = link(path.with_suffix(".json") if "figures" in path.parts else path)
    if top.state == "missing":
        raise UserError(f"{top.path}: no such file; run the workflow first")
    if as_json:
        print_json(top.as_dict())
    else:
        print_table(["file", "state", "digest", "made by code"], _rows(top, 0))
        _print_runs(top)


def _file(kind: str, name: str, study_name: str | None, folder: TierFolder) -> Path:
    """Returns the file that tells the origin of an entry of a study."""
    if kind not in KINDS:
        raise UserError(f"{kind!r} is not among {', '.join(KINDS)}; a run goes by its id alone")
    study = study_with(KINDS[kind], name, study_name)
    study.entry(KINDS[kind], name)
    if kind in ("figure", "table"):
        return folder.figures(study.study) / f"{name}.json"
    return folder.fit(study.study, name) if kind == "fit" else folder.derived(study.study, name)


def _rows(link: Link, depth: int) -> Iterator[list[str]]:
    yield ["  " * depth + str(link.path), link.state, link.digest[:16], link.code or "-"]
    for below in link.inputs:
        yield from _rows(below, depth + 1)


def _print_runs(top: Link) -> None:
    """Prints where the runs of every table in the chain are from: a file, or trainings."""
    for table in _tables(top, "imported"):
        click.echo(f"\n{table.path}: imported")
        for name, text in table.imported.items():
            click.echo(f"  {name}: {text or 'not on record'}")
    for table in _tables(top, "runs"):
        changed = changed_runs(table, Results())
        since = f"{len(changed)} of them changed since: {', '.join(changed[:4])}"
        state = since if changed else "as they are"
        click.echo(f"\n{table.path}: {counted(len(table.runs), 'run')}, {state}")
        for name, counts in trained_by(table.runs, Results()).items():
            for value, n in counts.most_common():
                click.echo(f"  {name}: {value} ({counted(n, 'run')})")


def _tables(link: Link, origin: str) -> list[Link]:
    """Returns the tables in the chain that name their ``origin`` (runs, imported), each once."""
    tables = {link.path: link} if getattr(link, origin) else {}
    for below in link.inputs:
        tables |= {table.path: table for table in _tables(below, origin)}
    return list(tables.values())
