"""``moelaws outlook``: what a sweep advises for larger budgets, as a page with a picture."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moelaws.cli.answers import JsonCommand, print_answer
from moelaws.cli.common import INPUT, Paths, option, out_option
from moelaws.cli.project import project_options
from moelaws.files.atomic import finite, write_json
from moelaws.files.seal import digests, made_of
from moelaws.records.code import digest
from moelaws.spec.advice import ADVICE, load_advice
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project

if TYPE_CHECKING:
    import pandas as pd

    from moelaws.fitting.report import FitReport

TIMES = (10.0, 100.0)


@click.command("outlook", cls=JsonCommand)
@click.argument("fits", nargs=-1, type=INPUT)
@project_options
@option(
    "--table tables",
    "A table of the runs that were fitted; its largest budget is what the answer goes beyond.",
    INPUT,
    multiple=True,
    required=True,
)
@out_option(
    "The Markdown file to write, with a picture and the answers as JSON beside it; without it the "
    "page is printed."
)
def command(fits: Paths, project: Project, tables: Paths, out: Path | None, as_json: bool) -> None:
    """Write what FITS and the published laws advise at 10 and 100 times the largest budget.

    Plans train on the text of the runs, at most four times over.

    FITS are reports of `moelaws fit`; those of laws that are no candidates of config/advice.yaml,
    or of simulated losses, take no part and are named. `moelaws advise` answers for any other
    budget.
    """
    import pandas as pd

    from moelaws.accounting.cost import CPU
    from moelaws.analysis.advice import Constraints, advise, page
    from moelaws.analysis.advice.blocks import markdown
    from moelaws.analysis.advice.sources import fitted_laws, published_laws
    from moelaws.analysis.inputs import completed, read_runs
    from moelaws.figures.advice import write_page
    from moelaws.workflow.code import of_outlook

    config = load_advice()
    by_study = {}
    for table in tables:
        by_study[table.stem] = frame = completed(read_runs(table))
        if missing := {"C_6N", "D", "kind", "k"} - set(frame):
            raise UserError(f"{table}: the column {min(missing)} is missing")
    runs = pd.concat(by_study.values())
    own, unusable = fitted_laws(
        fits, config, lambda path, report: _active(by_study.get(path.parent.name, runs), report)
    )
    # Infinite if the tables do not say how much text there was, like those of other tools' runs.
    text = float((runs["D"] / runs["epochs"]).max()) if "epochs" in runs else math.nan
    tokens = math.inf if math.isnan(text) else page.EPOCHS * text
    largest, answers = float(runs["C_6N"].max()), {}
    for factor in TIMES:
        answers[factor] = advise(
            [*published_laws(config), *own],
            Constraints(factor * largest, max_tokens=tokens),
            config.shape_of(project.tier),
            advisers=config.advisers,
            setters=config.setters,
        )
    titled = {
        f"{factor:g} times the largest budget: {own.limits.compute:.3g} FLOPs": own
        for factor, own in answers.items()
    }
    advice = [*page.outlook(titled, project.tier, {p.stem: why for p, why in unusable.items()})]
    data = finite({f"{factor:g}": page.as_json(own, [], CPU) for factor, own in answers.items()})
    if out is None:
        print_answer(as_json, data, markdown(advice))
        return
    origin = made_of([ADVICE, *tables, *fits], digest(of_outlook(config)))
    write_page(out, advice, titled)
    files = digests([out, out.with_suffix(".png")])
    write_json(out.with_suffix(".json"), {"made_of": origin, "files": files, "answers": data})
    print_answer(as_json, {"page": str(out)}, out)


def _active(runs: "pd.DataFrame", report: "FitReport") -> int | None:
    """Returns the active experts of the mixtures behind a fit, or None if they are not all alike.

    ``runs`` are those of the fit's study.
    """
    from moelaws.analysis.inputs import row_mask
    from moelaws.tables.sweeps import in_sweep

    if sweep := report.spec.get("sweep"):
        runs = runs[in_sweep(runs, sweep)]
    runs = runs[row_mask(runs, report.spec.get("rows", ""))]
    counts = runs.loc[runs["kind"] == "moe", "k"].unique()
    return int(counts[0]) if len(counts) == 1 else None
