"""``moelaws simulate``: a table of a law's losses at a grid's points, before any training."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.answers import Answer, JsonCommand, table_text
from moelaws.cli.common import (
    PARAMS,
    REPEATS,
    WHOLE,
    Words,
    between,
    gathered,
    option,
    out_option,
    pairs,
)
from moelaws.cli.project import project_options
from moelaws.files.atomic import replacing
from moelaws.records.code import digest
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project, load_study
from moelaws.spec.study import Simulation as SimulationEntry
from moelaws.spec.words import counted

if TYPE_CHECKING:
    import pandas as pd

    from moelaws.grids.sweep import Sweep
    from moelaws.laws.base import FittableLaw
    from moelaws.tables.simulate import Simulation


@dataclass(frozen=True)
class SimulationOptions:
    """How losses are simulated, as a command line says it; None leaves it to the study."""

    noise: float | None
    seed: int | None
    repeats: int
    params: str  # published, or the file of a fit's report


# Adds ``--noise``, ``--seed``, ``--repeats`` and ``--params``; the command receives ``options``.
simulation_options = gathered(
    "options",
    SimulationOptions,
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
    options: SimulationOptions,
    rows: str | None,
    mapping: Words,
    out: Path | None,
) -> Answer:
    """Write a table of LAW's losses at the points of a study's grid, with noise.

    Without LAW it is the study's own `simulation`, as `--config source=simulated` makes it.
    Nothing is trained or tokenised. `moelaws fit` on the table tells how well the grid
    determines the law; `moelaws plan` does both.
    """
    from moelaws import laws
    from moelaws.grids.sweep import expand_study
    from moelaws.tables.simulate import simulation_entry
    from moelaws.workflow.code import of_simulation

    mapped = pairs("--map", mapping, "VAR=COLUMN, such as N=N_active")
    study = load_study(study_name)
    entry = simulation_entry(study, law_ref, noise=options.noise, seed=options.seed, rows=rows)
    sweep = expand_study(study, project)
    simulation, about = simulated(sweep, entry, options.repeats, options.params, mapped)
    path = out or Path(f"{study.study}.parquet")
    write(simulation, path, about, digest(of_simulation(about["law"])))
    runs, ranges = len(simulation.frame), _ranges(laws.fittable(about["law"]), simulation)
    keys = ("from", "values", "lowest", "highest", "unit", "meaning")
    lines = [(name, *(values[key] for key in keys)) for name, values in ranges.items()]
    title = f"{path}: {counted(runs, 'simulated run')} of {study.study}, {project.tier}"
    data = {"table": str(path), "rows": runs, **about, "ranges": ranges}
    return data, table_text(("", *keys), lines, title)


def simulated(
    sweep: Sweep,
    entry: SimulationEntry,  # which law, where and with what noise
    repeats: int = 1,  # seeds of each run
    params: str = "published",  # or a fit's report
    mapped: Mapping[str, str] = {},  # variable -> column, before those of the entry and the report
) -> tuple[Simulation, dict[str, Any]]:
    """Returns the simulated table of a sweep, and how it was simulated, as its file says."""
    from moelaws import laws
    from moelaws.tables.simulate import design, simulate

    frame = design(sweep, entry.rows, repeats, entry.sweeps)
    law, coefficients, fitted = _coefficients(laws.fittable(entry.law), params, frame)
    mapping, noise = (fitted or entry.mapping) | dict(mapped), entry.noise
    simulation = simulate(frame, law, coefficients, mapping=mapping, noise=noise, seed=entry.seed)
    about = {
        "law": law.ref,
        "params": coefficients,
        "noise": noise,
        "seed": entry.seed,
        "study": sweep.study.study,
        "tier": sweep.tier,
        "sweeps": list(entry.sweeps),
        "row_selection": entry.rows,
        "repeats": repeats,
        "variables": dict(simulation.origins),
        "assumed": entry.assumed,
    }
    return simulation, about


def _coefficients(
    law: FittableLaw, params: str, frame: pd.DataFrame
) -> tuple[FittableLaw, dict[str, float], dict[str, str]]:
    """Returns the law's form, its coefficients, and the mapping that they were fitted with."""
    from moelaws import laws
    from moelaws.fitting.report import read_fit

    if params == "published":
        if law.published is None:
            raise UserError(f"law {law.ref} has no published coefficients; give --params FIT.json")
        return law, dict(law.published), {}
    report = read_fit(Path(params))
    form = laws.fittable(report.law)  # a fit may have chosen it
    if form.id != law.id or law.variant not in ("", form.variant):
        raise UserError(f"{params} holds a fit of {form.ref}; give a fit of {law.ref}")
    if (unit := report.unit(law.response)) != law.response.unit:
        raise UserError(f"{params}: its losses are in {unit}, and tables in {law.response.unit}")
    at: dict[str, Any] = {}
    if column := report.split_by:
        values = sorted(set(frame[column])) if column in frame else []
        if len(values) != 1:
            raise UserError(
                f"{params}: the fit is split by {column}, of which the grid has {len(values)} "
                f"values; choose the runs of one, such as --rows '{column} == "
                f"{report.parts[0].where[column]!r}'"
            )
        at[column] = values[0]
    return form, report.group(at).estimates(), dict(report.spec.get("mapping", {}))


def write(simulation: Simulation, path: Path, about: Mapping[str, Any], code: str) -> None:
    """Writes Parquet, with units, ``about`` and the digest ``code``, or CSV: the values alone."""
    from moelaws.tables.parquet import write_table

    if path.suffix == ".csv":
        with replacing(path) as temporary:
            simulation.frame.to_csv(temporary, index=False)
    else:
        notes = {"simulation": json.dumps(about)}
        if "L_true" in simulation.frame:
            # A study's own table: figures and fits read it like a trained one.
            notes |= {"study": about["study"], "tier": about["tier"]}
        write_table(simulation.frame, simulation.columns, path, notes, {"code": code})


def _ranges(law: FittableLaw, simulation: Simulation) -> dict[str, dict[str, Any]]:
    """Returns what each variable and the response are, where from, and their range of values."""
    import numpy as np

    response = law.response.name
    columns = dict(simulation.variables) | {response: simulation.frame[response].to_numpy()}
    origins = dict(simulation.origins) | {response: law.ref}
    return {
        v.name: {
            "from": origins[v.name],
            "values": len(np.unique(columns[v.name])),
            "lowest": float(columns[v.name].min()),
            "highest": float(columns[v.name].max()),
            "unit": v.unit,
            "meaning": v.description,
        }
        for v in (*law.variables, law.response)
        if v.name in columns
    }
