"""``moelaws tag`` and ``moelaws note`` keep what people write about runs beside their records."""

from collections.abc import Iterable, Mapping

import click

from moelaws.cli.answers import JsonCommand, print_answer, table_text
from moelaws.files.layout import Results
from moelaws.records.annotations import annotate
from moelaws.records.names import find_record
from moelaws.spec.errors import UserError


@click.command(name="tag", cls=JsonCommand)
@click.argument("words", metavar="RUN... NAME=VALUE...", nargs=-1, required=True)
def tag(words: tuple[str, ...], as_json: bool) -> None:
    """Give each RUN (an id, its beginning or a name) each tag NAME, with any text as its VALUE.

    An earlier VALUE is replaced; an empty VALUE removes the tag. Tags are kept beside the record
    and change neither the run nor what the workflow makes of it. `moelaws runs`, `show` and
    `query` show them.

    \b
    moelaws tag 3fb1 c02d baseline=yes optimizer=muon
    moelaws tag 3fb1 optimizer=
    """
    runs = [word for word in words if "=" not in word]
    if len(runs) in (0, len(words)):
        raise UserError("give one RUN or more, and one NAME=VALUE or more, such as baseline=yes")
    assigned = (word.partition("=") for word in words if "=" in word)
    _annotate(runs, {name: value for name, _, value in assigned}, None, as_json)


@click.command(name="note", cls=JsonCommand)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.argument("text")
def note(runs: tuple[str, ...], text: str, as_json: bool) -> None:
    """Write TEXT as the note of each RUN (an id, its beginning or a name), over an earlier one.

    An empty TEXT removes the note. It is kept beside the record and changes neither the run nor
    what the workflow makes of it.

    \b
    moelaws note 3fb1 "diverged after the node was rebooted"
    """
    _annotate(runs, {}, text, as_json)


def _annotate(
    runs: Iterable[str], tags: Mapping[str, str], note: str | None, as_json: bool
) -> None:
    results = Results()
    # An unknown run is refused before any is changed.
    ids = dict.fromkeys(find_record(results, run).run_id for run in runs)
    changed = {run_id: annotate(results, run_id, tags, note) for run_id in ids}
    data = [{"run_id": i, "tags": a.tags, "note": a.note} for i, a in changed.items()]
    rows = [(i, a.text, " ".join(a.note.split())) for i, a in changed.items()]
    print_answer(as_json, data, table_text(["run_id", "tags", "note"], rows))
