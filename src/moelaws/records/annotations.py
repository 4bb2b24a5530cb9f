"""Tags and notes that people write about a run. They lie beside its record and are no part of it.

No rule of the workflow reads them, so writing them reruns nothing. They may be written while the
run trains, and they stay when it is trained again.
"""

import re
from collections.abc import Mapping

from moelaws.files.atomic import read_json, write_json
from moelaws.files.layout import Results
from moelaws.files.lock import one_at_a_time
from moelaws.spec.base import Frozen, parse
from moelaws.spec.errors import UserError, quoted

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


class Annotations(Frozen):
    """What people wrote about one run."""

    tags: dict[str, str] = {}  # name -> value, any text
    note: str = ""  # any text; empty if there is none

    @property
    def text(self) -> str:
        """Returns the tags on one line, such as ``baseline=yes, optimizer=muon``."""
        return ", ".join(f"{name}={' '.join(value.split())}" for name, value in self.tags.items())


def of(results: Results, run_id: str) -> Annotations:
    """Returns the annotations of a run, which may be empty."""
    path = results.annotations(run_id)
    return parse(Annotations, read_json(path), path) if path.is_file() else Annotations()


def annotate(
    results: Results, run_id: str, tags: Mapping[str, str] | None = None, note: str | None = None
) -> Annotations:
    """Adds ``tags`` to a run, sets its ``note``, and returns all its annotations.

    An empty value removes a tag, and an empty ``note`` removes the note; None leaves it as it is.
    """
    tags = dict(tags or {})
    for name in tags:
        if not _NAME.fullmatch(name):
            raise UserError(
                f"tag {quoted(name)}: the name of a tag begins with a letter and has at most 64 of "
                "the characters A-Z a-z 0-9 _ . -"
            )
    for text in (*tags.values(), note or ""):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UserError(f"{quoted(text)} is not UTF-8; give a text that is") from None
    with one_at_a_time(results.run(run_id)):  # of two writers at once, one would lose its text
        old = of(results, run_id)
        kept = {name: value for name, value in sorted({**old.tags, **tags}.items()) if value}
        new = Annotations(tags=kept, note=old.note if note is None else note)
        if new == Annotations():
            results.annotations(run_id).unlink(missing_ok=True)
        elif new != old:
            write_json(results.annotations(run_id), new.model_dump())
    return new
