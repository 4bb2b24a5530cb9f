"""Compare what two versions of the code made: two results folders, to the last digit.

    python benchmarks/same_results.py BEFORE AFTER

Runs, tables, derived tables, fits with their draws, claims and the CSVs of figures and paper tables
must be equal. Timings, memory, code digests, package versions and the words of captions, claims
and rules are left out. Pictures that differ in bytes are compared by pixel. The script prints a
line for each difference, then counts, and exits with 1 where anything differs.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import image

# What two trainings on one machine differ in, and what names code or packages.
MEASURED = {
    *("seconds", "tokens_per_second", "peak_memory", "code", "wall_seconds", "peak_memory_bytes"),
    *(
        "versions",
        "draws_digest",
        "started",
        "ended",
        "seconds_per_step",
        "time",
        "seal",
        "made_of",
    ),
}
# Keys of older versions: of claims, of near optima and of counts of draws.
RENAMED = {"id": "name", "found": "optima", "asked": "requested"}
WORDS = {"statement", "rule"}
# Keys of fits that are no more.
GONE = {
    "rollout", "subsamples", "parameters_differ", "skew", "excess_kurtosis", "normal_p",
}  # fmt: skip
WORDED_LINES = ("- *Claim*", "- *Rule*", r"\caption{")


def differences(before: Path, after: Path) -> Iterator[tuple[Path, str]]:
    """Each file, relative to ``before``, and how the one below ``after`` differs; "" if not."""
    for path in sorted(before.rglob("*")):
        name = path.relative_to(before)
        compare = COMPARED.get(path.suffix.removeprefix("."))
        if compare is None or not path.is_file() or path.name == "provenance.json":
            continue
        if name.parts[0] == "specs":  # what entries say, which is no result
            continue
        other = after / name
        yield name, compare(path, other) if other.is_file() else "is missing"


def same_frame(before: Path, after: Path) -> str:
    """How two Parquet files differ in columns that are not timings."""
    one, two = (frame(path) for path in (before, after))
    try:
        pd.testing.assert_frame_equal(one, two, check_exact=True)
    except AssertionError as error:
        return " ".join(str(error).split())[:200]
    return ""


def frame(path: Path) -> pd.DataFrame:
    """The table without the columns that differ between two trainings of one run."""
    table = pd.read_parquet(path)
    return table[[name for name in table.columns if name not in MEASURED]]


def same_json(before: Path, after: Path) -> str:
    """The first key at which two JSON files differ."""
    one, two = (strip(json.loads(path.read_text())) for path in (before, after))
    return first_difference(one, two, "")


def strip(data: Any) -> Any:
    """The data without what differs between two trainings of one run."""
    if isinstance(data, dict):
        kept = {key: value for key, value in data.items() if key not in MEASURED | WORDS | GONE}
        return {RENAMED.get(key, key): strip(value) for key, value in kept.items()}
    return [strip(value) for value in data] if isinstance(data, list) else data


def first_difference(one: Any, two: Any, where: str) -> str:
    """Where two pieces of JSON data first differ, and how; "" where they are equal."""
    if isinstance(one, dict) and isinstance(two, dict):
        for key in sorted(one.keys() | two.keys()):
            if key not in one or key not in two:
                return f"{where}.{key} is only in one"
            if text := first_difference(one[key], two[key], f"{where}.{key}"):
                return text
        return ""
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        pairs = zip(one, two, strict=True)
        texts = (first_difference(a, b, f"{where}[{i}]") for i, (a, b) in enumerate(pairs))
        return next((text for text in texts if text), "")
    return "" if one == two else f"{where}: {one!r} is now {two!r}"


def same_text(before: Path, after: Path) -> str:
    """Whether two files of text differ, and in which line first."""
    one, two = lines_of(before), lines_of(after)
    lines = (n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b)
    if (n := next(lines, None)) is not None:
        return f"line {n + 1}: {one[n][:90]!r} is now {two[n][:90]!r}"
    return "" if len(one) == len(two) else f"{len(one)} lines are now {len(two)}"


def lines_of(path: Path) -> list[str]:
    """The lines of a text but for captions, which stand first in a table's Markdown."""
    lines = path.read_text().splitlines()
    lines = lines[1:] if path.suffix == ".md" else lines
    return [line for line in lines if not line.startswith(WORDED_LINES)]


def same_picture(before: Path, after: Path) -> str:
    """The share of pixels that differ visibly, where two pictures are not the same bytes."""
    if before.read_bytes() == after.read_bytes():
        return ""
    one, two = image.imread(before), image.imread(after)
    if one.shape != two.shape:
        return f"shape {one.shape} is now {two.shape}"
    share = float((np.abs(one - two).max(axis=-1) > 0.1).mean())
    return f"{share:.2%} of the pixels differ" if share else ""


COMPARED = {
    "parquet": same_frame,
    "json": same_json,
    "csv": same_text,
    "md": same_text,
    "tex": same_text,
    "png": same_picture,
}


def main() -> None:
    before, after = map(Path, sys.argv[1:3])
    counts: Counter[str] = Counter()
    different = 0
    for name, text in differences(before, after):
        counts[name.suffix.removeprefix(".")] += 1
        if text:
            different += 1
            print(f"{name}: {text}")
    files = ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items()))
    print(f"{sum(counts.values())} files compared ({files}), {different} differ")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
