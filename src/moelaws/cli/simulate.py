"""``moelaws simulate``: a table of a law's losses at a grid's points, before any training."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.fit import pairs
from moelaws.cli.output import check_out, json_option, print_json, print_table
from moelaws.cli.project import project_options
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project

if TYPE_CHECKING:
    import pandas as pd

    from moelaws.grids.sweep import Sweep
    from moelaws.laws.base import FittableLaw
    from moelaws.spec.study import Simulation as Wanted
    from moelaws.tables.simulate import Simulation


@click.command(name="simulate")
@click.argument("law_ref", metavar="[LAW]", default="")
@click.option("--study", required=True, help="The study whose grid gives the points.")
@project_options
@click.option(
    "--noise",
    type=float,
    help="Standard deviation of ln of the loss (of the response itself for laws not of a log); "
    "0.003 unless the study says otherwise.",
)
@click.option("--seed", type=int, help="Of the noise; 1 unless the study says otherwise.")
@click.option("--rows", metavar="EXPR", help="Runs to use, such as 'C >= 1e11'.")
@click.option("--repeats", default=1, show_default=True, help="Seeds of each run of the grid.")
@click.option(
    "--params",
    default="published",
    show_default=True,
    metavar="published|FIT.json",
    help="Coefficients: the paper's or a fit's.",
)
@click.option(
    "--map",
    "mapping",
    multiple=True,
    metavar="VAR=COLUMN",
    help="The grid's column of a variable; by default as the fit or the study has it.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="FILE.parquet or FILE.csv; results/TIER/simulated/tables/STUDY.parquet by default.",
)
@json_option
def command(
    law_ref: str,
    study: str,
    project: Project,
    noise: float | None,
    seed: int | None,
    rows: str | None,
    repeats: int,
    params: str,
    mapping: tuple[str, ...],
    out: Path | None,
    as_json: bool,
) -> None:
    """A table of LAW's losses at the points of a study's grid, with noise.

    Without LAW: what the study's `simulation` asks for, as `--config source=simulated` makes it.
    Nothing is trained or tokenised. `moelaws fit` on the table tells how well the grid
    determines the law; `moelaws plan` does both.
    """
    if noise is not None and not (math.isfinite(noise) and noise >= 0):
        raise UserError(f"--noise is {noise}; it must be a finite number of at least 0")
    if (seed or 0) < 0 or repeats < 1:
        raise UserError(f"--seed is {seed}, --repeats {repeats}; at least 0 and 1 are wanted")
    check_out(out, ".parquet", ".csv")
    mapped = pairs("--map", mapping, "VAR=COLUMN, such as N=N_active")
    from rich.console import Console

    from moelaws import laws
    from moelaws.grids.sweep import expand_study
    from moelaws.records.layout import Results
    from moelaws.spec.project import load_study
    from moelaws.tables.simulate import simulation_entry

    entry = load_study(study)
    asked = simulation_entry(entry, law_ref, noise=noise, seed=seed, rows=rows)
    console = Console(stderr=True)  # no spinner where that is no terminal
    with console.status(f"simulating {asked.law} on {study}, {project.tier}"):
        made, about = simulated(expand_study(entry, project), asked, repeats, params, mapped)
        path = out or Results().table(project.tier, study, simulated=True)
        write(made, path, about)
    described = _ranges(laws.fittable(about["law"]), made)
    if as_json:
        print_json({"table": str(path), "rows": len(made.frame), **about, "ranges": described})
        return
    shown = ("from", "values", "lowest", "highest", "unit", "meaning")
    print_table(
        ("", *shown),
        [(name, *(entry[key] for key in shown)) for name, entry in described.items()],
        f"{path}: {len(made.frame)} simulated runs of {study}, {project.tier}",
    )


def simulated(
    sweep: Sweep,
    asked: Wanted,
    repeats: int = 1,
    params: str = "published",
    mapped: Mapping[str, str] = {},
) -> tuple[Simulation, dict[str, Any]]:
    """The simulated table of a sweep and how it was made, as the table's file says it.

    Args:
        sweep: of the study.
        asked: which law, where and with what noise.
        repeats: seeds of each run.
        params: published, or a fit's report.
        mapped: variable -> column, before those that ``asked`` and the fit's report have.
    """
    from moelaws import laws
    from moelaws.tables.simulate import design, simulate

    frame = design(sweep, asked.rows, repeats, asked.sweeps)
    law, coefficients, fitted = _coefficients(laws.fittable(asked.law), params, frame)
    made = simulate(
        frame,
        law,
        coefficients,
        mapping=(fitted or asked.mapping) | dict(mapped),
        noise=asked.noise,
        seed=asked.seed,
    )
    about = {
        "law": law.ref,
        "params": coefficients,
        "noise": asked.noise,
        "seed": asked.seed,
        "study": sweep.study.study,
        "tier": sweep.tier,
        "sweeps": list(asked.sweeps),
        "row_selection": asked.rows,
        "repeats": repeats,
        "variables": dict(made.origins),
        "assumed": asked.assumed,
    }
    return made, about


def _coefficients(
    law: FittableLaw, params: str, frame: pd.DataFrame
) -> tuple[FittableLaw, dict[str, float], dict[str, str]]:
    """The law's form, its coefficients, and the mapping that they were fitted with."""
    if params == "published":
        if law.published is None:
            raise UserError(f"law {law.ref} has no published coefficients; give --params FIT.json")
        return law, dict(law.published), {}
    from moelaws import laws
    from moelaws.fitting.report import read_fit

    report = read_fit(Path(params))
    form = laws.fittable(report.law)  # a fit may have chosen it
    if form.id != law.id or law.variant not in ("", form.variant):
        raise UserError(f"{params}: law is {form.ref!r}; a fit of {law.ref} is wanted")
    at: dict[str, float] = {}
    if column := report.split_by:
        values = sorted(set(frame[column])) if column in frame else []
        if len(values) != 1:
            raise UserError(
                f"{params}: the fit is split by {column}, of which the grid has {len(values)} "
                f"values; choose the runs of one, such as --rows '{column} == "
                f"{report.parts[0].where[column]:.17g}'"
            )
        at[column] = float(values[0])
    return form, report.part(at).estimates(), dict(report.spec.get("mapping", {}))


def write(made: Simulation, path: Path, about: Mapping[str, Any]) -> None:
    """Parquet holds units and how the table was made; CSV the values alone."""
    from moelaws.records.files import replacing
    from moelaws.tables.parquet import write_table

    if path.suffix == ".csv":
        with replacing(path) as temporary:
            made.frame.to_csv(temporary, index=False)
    else:
        notes = {"simulation": json.dumps(about)}
        if "L_true" in made.frame:
            # A study's own table: figures and fits read it like a trained one.
            notes |= {"study": about["study"], "tier": about["tier"]}
        write_table(made.frame, made.columns, path, notes)


def _ranges(law: FittableLaw, made: Simulation) -> dict[str, dict[str, Any]]:
    """What each variable and the response are, where from, and which values they take."""
    import numpy as np

    response = law.response.name
    columns = dict(made.variables) | {response: made.frame[response].to_numpy()}
    origins = dict(made.origins) | {response: law.ref}
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
