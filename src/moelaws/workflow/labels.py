"""What Snakemake's report lists of each figure and table: its place, its name and its caption."""

import re
from collections.abc import Iterable

from moelaws.records.code import CODE
from moelaws.records.registration import Registration
from moelaws.spec.study import Study
from moelaws.spec.words import natural, on_one_line

# Snakemake fills in what stands in braces, and writes labels into a script of the report.
_PLAIN = str.maketrans("{}<>", "()()")


def report_labels(study: Study, name: str, registrations: Iterable[Registration]) -> dict[str, str]:
    """Returns the columns of the row of a figure or table.

    Snakemake sorts the rows by the text of the first column. So this one is the place in the
    natural order of names, because as texts F10 would precede F2.
    """
    pictures = {picture.name: picture for picture in study.pictures}
    place, picture = sorted(pictures, key=natural).index(name) + 1, pictures[name]
    text = on_one_line(picture.caption)
    shows = re.split(r"(?<!et al)\. ", text)[0].rstrip(".").translate(_PLAIN)
    registered = "no"
    if own := max(registrations, key=lambda one: one.time, default=None):
        was = {**own.entries["figures"], **own.entries["tables"]}.get(name, {})
        now = picture.model_dump(mode="json", exclude_defaults=True) | {CODE: was.get(CODE)}
        registered = own.digest[:16] if now == was else "with deviations"
    return {"no.": f"{place:03d}", "figure": name, "shows": shows, "registered": registered}
