"""Published coefficients beside those recovered from simulated sweeps of the papers' own grids.

Reads what `snakemake --config tier=paper source=simulated` left below results/paper/simulated, and
writes docs/planning.md's table, between its two markers.

    python benchmarks/recovered.py --tier paper --page docs/planning.md
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from moelaws.analysis.plan import Coefficient, Part, coefficients, rows_of
from moelaws.files.atomic import write_text
from moelaws.files.layout import Results, TierFolder
from moelaws.fitting.report import FitReport, read_fit
from moelaws.spec.project import load_study, study_names
from moelaws.spec.study import Study
from moelaws.tables.parquet import notes

BEGIN, END = "<!-- recovered: begin -->", "<!-- recovered: end -->"
HEADING = (
    "| fit | coefficient | published | recovered | 90 % interval | held | identified |\n"
    "|-|-|-|-|-|-|-|\n"
)


def simulation(study: Study, folder: TierFolder) -> dict[str, Any] | None:
    """Returns how the study's table was simulated; None where it was not."""
    text = notes(folder.table(study.study)).get("simulation")
    return None if text is None else dict(json.loads(text))


def compared(
    study: Study, about: dict[str, Any], folder: TierFolder
) -> Iterator[tuple[FitReport, list[Part]]]:
    """Yields each fit that was made of the simulated table, with each group's parameters."""
    for entry in study.of_simulated().fits:
        path = folder.fit(study.study, entry.name)
        if path.is_file():
            report = read_fit(path)
            yield report, coefficients(report, about, *rows_of(study, entry, folder))


def section(study: Study, folder: TierFolder) -> str:
    """Returns the study's part of the page; empty where nothing of it was simulated."""
    if (about := simulation(study, folder)) is None:
        return ""
    lines, held = [], []
    rows = 0
    for report, groups in compared(study, about, folder):
        if report.law == about["law"]:
            rows = max(rows, sum(part.n for part in report.parts))
        for part, parameters in groups:
            where = "".join(f", {column} = {value:.4g}" for column, value in part.where.items())
            for name, r in parameters.items():
                if r.reference is not None:
                    lines.append(line(f"{report.name} (`{report.law}`){where}", name, r))
                    held += [r.holds] if r.identified and r.simulated else []
    text = f"### {study.study}\n\n"
    text += (
        f"`{about['law']}`, noise {about['noise']:g}, seed {about['seed']}; {rows:,} rows fitted"
    )
    text += f", of the sweeps {', '.join(about['sweeps'])}" if about["sweeps"] else ""
    text += f", of the runs with {about['row_selection']}" if about["row_selection"] else ""
    text += ".\n" + (f"Assumed: {about['assumed']}\n" if about["assumed"] else "") + "\n"
    text += HEADING + "".join(lines)
    return text + (
        f"\nOf the {len(held)} coefficients that the losses were simulated with and that the rows "
        f"identify, {sum(map(bool, held))} lie in their intervals.\n"
    )


def line(fit: str, name: str, r: Coefficient) -> str:
    """A row of the page's table."""
    interval = "-" if r.low is None or r.high is None else f"{r.low:.4g} .. {r.high:.4g}"
    held = {True: "yes", False: "no", None: "-"}[r.holds]
    cells = (
        fit,
        name + ("" if r.simulated else " *"),
        f"{r.reference:.4g}",
        f"{r.estimate:.4g}",
        interval,
        held,
        "yes" if r.identified else "no",
    )
    return f"| {' | '.join(cells)} |\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tier", default="paper")
    parser.add_argument("--page", type=Path, default=Path("docs/planning.md"))
    options = parser.parse_args(arguments)
    before, begin, rest = options.page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        sys.exit(f"{options.page}: no {BEGIN} ... {END} to write between")
    studies = [study for study in map(load_study, study_names()) if study.simulation]
    folder = Results().tier(options.tier, simulated=True)
    sections = [section(study, folder) for study in studies]
    if not any(sections):
        sys.exit(f"nothing is simulated at tier {options.tier}: run the workflow with it first")
    text = "\n".join(s for s in sections if s)
    write_text(options.page, f"{before}{BEGIN}\n{text}{END}{after}")


if __name__ == "__main__":
    main()
