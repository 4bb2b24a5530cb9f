"""``moelaws simulate``: a table of a law's losses at a grid's points, before any training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.answers import Answer, JsonCommand
from moelaws.cli.common import (
    PARAMS,
    REPEATS,
    WHOLE,
    Words,
    between,
    option,
    out_option,
    pairs,
    with_options,
)
from moelaws.cli.project import project_options
from moelaws.records.code import digest
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project, load_study
from moelaws.spec.study import Simulation as SimulationEntry
from moelaws.spec.words import counted

if TYPE_CHECKING:
    from moelaws.grids.sweep import Sweep
    from moelaws.laws.base import FittableLaw
    from moelaws.tables.simulate import Simulation


# Adds ``--noise``, ``--seed``, ``--repeats`` and ``--params``, which ``from_options`` takes.
simulation_options = with_options(
    option(
        "--noise",
        "Standard deviation of ln of the loss (of the response itself for laws not of a log); "
        "0.003 unless the study says otherwise.",
        between(0, 100),
    ),
    option("--seed", "Seed of the noise; 1 unless the study says otherwise.", WHOLE),
    option("--repeats", "Seeds of each run of the grid.", REPEATS, 1),
    option(
        "--params",
        "Coefficients to simulate with: the paper's or a fit's.",
        PARAMS,
        "published",
        metavar="published|FIT.json",
    ),
)


@click.command(name="simulate", cls=JsonCommand)
@click.argument("law_ref", metavar="[LAW]", default="")
@option("--study study_name", "The study whose grid gives the points.", required=True)
@project_options
@simulation_options
@option("--rows", "Runs to use, such as 'C >= 1e11'.", metavar="EXPR")
@option(
    "--map mapping",
    "The grid's column of a variable; by default as the fit or the study has it.",
    multiple=True,
    metavar="VAR=COLUMN",
)
@out_option(
    "FILE.parquet or FILE.csv to write; STUDY.parquet in this folder by default.",
    ".parquet",
    ".csv",
)
def command(
    law_ref: str,
    study_name: str,
    project: Project,
    mapping: Words,
    out: Path | None,
    **options: Any,
) -> Answer:
    """Write a table of LAW's losses at the points of a study's grid, with noise.

    Without LAW it is the study's own `simulation`, as `--config source=simulated` makes it.
    Nothing is trained or tokenised. `moelaws fit` on the table tells how well the grid
    determines the law; `moelaws plan` does both.
    """
    from moelaws.grids.sweep import expand_study
    from moelaws.tables.simulate import write
    from moelaws.workflow.code import of_simulation

    mapped = pairs("--map", mapping, "VAR=COLUMN, such as N=N_active")
    study = load_study(study_name)
    _, simulation, about = from_options(expand_study(study, project), law_ref, mapped, **options)
    path = out or Path(f"{study.study}.parquet")
    write(simulation, path, about, digest(of_simulation(about["law"])))
    runs, origins = len(simulation.frame), simulation.origins.items()
    variables = ", ".join(f"{name} = {origin}" for name, origin in origins)
    title = f"{path}: {counted(runs, 'simulated run')} of {study.study}, {project.tier}"
    return {"table": str(path), "rows": runs, **about}, f"{title}\n{about['law']} of {variables}"


def from_options(
    sweep: Sweep,
    law: str,  # if it is not the study's own
    mapped: Mapping[str, str] = {},  # variable -> column, before those of the study and the fit
    *,
    repeats: int,  # seeds of each run
    params: str,  # published, or the file of a fit's report
    **entry: Any,  # rows, noise and seed; where one is None, the study says it
) -> tuple[SimulationEntry, Simulation, dict[str, Any]]:
    """Returns what the options ask for: the entry, its table, and how that was simulated."""
    from moelaws.tables.simulate import simulated, simulation_entry

    own = simulation_entry(sweep.study, law, **entry)
    fitted = None if params == "published" else _coefficients(own.law, params)
    return own, *simulated(sweep, own, repeats, fitted, mapped)


def _coefficients(ref: str, params: str) -> tuple[FittableLaw, dict[str, float], dict[str, str]]:
    """Returns the form of a law, its coefficients, and the mapping that they were fitted with."""
    from moelaws import laws
    from moelaws.fitting.report import read_fit

    report, law = read_fit(Path(params)), laws.fittable(ref)
    form = laws.fittable(report.law)  # a fit may have chosen it
    if form.id != law.id or law.variant not in ("", form.variant):
        raise UserError(f"{params} holds a fit of {form.ref}; give a fit of {law.ref}")
    if (unit := report.unit(law.response)) != law.response.unit:
        raise UserError(f"{params}: its losses are in {unit}, and tables in {law.response.unit}")
    if column := report.split_by:
        raise UserError(f"{params}: it is split by {column}, and one fit is needed of all rows")
    return form, report.parts[0].estimates(), dict(report.spec.get("mapping", {}))
