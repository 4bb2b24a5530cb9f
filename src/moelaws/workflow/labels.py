"""What Snakemake's report lists of each figure and table: its place, its name and its caption."""

import re

from moelaws.spec.study import Study
from moelaws.spec.words import natural

# Snakemake fills in what stands in braces, and writes labels into a script of the report.
_PLAIN = str.maketrans("{}<>", "()()")


def report_labels(study: Study, name: str) -> dict[str, str]:
    """Returns the columns of the row of a figure or table.

    Snakemake sorts the rows by the text of the first column. So this one is the place in the
    natural order of names, because as texts F10 would precede F2.
    """
    captions = {picture.name: picture.caption for picture in study.pictures}
    place = sorted(captions, key=natural).index(name) + 1
    text = " ".join(captions[name].split())
    shows = re.split(r"(?<!et al)\. ", text)[0].rstrip(".").translate(_PLAIN)
    return {"no.": f"{place:03d}", "figure": name, "shows": shows}
