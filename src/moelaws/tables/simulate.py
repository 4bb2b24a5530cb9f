"""Simulates a law's losses at a grid's points, for power analysis and tests of recovery."""

import hashlib
import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.files.atomic import replacing
from moelaws.grids.expand import Run
from moelaws.grids.sweep import Sweep
from moelaws.laws.base import Array, FittableLaw
from moelaws.laws.mapping import sources
from moelaws.laws.vocabulary import derive
from moelaws.spec.errors import UserError
from moelaws.spec.rows import select
from moelaws.spec.study import Simulation as SimulationEntry
from moelaws.spec.study import Study
from moelaws.tables.column import Column
from moelaws.tables.describe import describe
from moelaws.tables.foreign import columns, numbers
from moelaws.tables.parquet import write_table
from moelaws.tables.schema import COLUMNS, SIMULATED_COLUMNS

DEFAULT_MAPPING = {"N": "N_total"}  # unless a study, a fit or the user says otherwise
# Runs of a trunk share this part of the noise's variance; docs/evidence measured .80.
OF_TRUNK = 0.9


@dataclass(frozen=True)
class Simulation:
    """A simulated table: a row a run, with every column of a study's table.

    The columns that only a training measures have no values.
    """

    frame: pd.DataFrame
    columns: tuple[Column, ...]  # what each of its columns holds, with units
    origins: Mapping[str, str]  # variable -> the design's column, or how it was derived from others


def simulation_entry(study: Study, law: str = "", **changes: Any) -> SimulationEntry:
    """Returns the ``simulation`` entry of ``study``, or an entry of ``law`` for all its runs.

    The latter maps columns as the study's fits do. ``changes`` replace other keys of the entry,
    such as ``noise``; a change of None leaves its key as it is.
    """
    entry = study.simulation
    if law:
        entry = SimulationEntry(law=law, mapping=studys_mapping(study, laws.fittable(law)))
    elif entry is None:
        raise UserError(
            f"{study.file} has no simulation, for no law gives its losses; "
            "name a law to simulate it by (moelaws laws lists them)"
        )
    return entry.model_copy(update={k: v for k, v in changes.items() if v is not None})


def design(
    sweep: Sweep, rows: str = "", repeats: int = 1, sweeps: Collection[str] = ()
) -> pd.DataFrame:
    """Returns the runs of ``sweep`` as a table describes them before any training, one row a run.

    ``rows`` is an expression over these columns (``spec.rows``), and ``sweeps`` names those of the
    grid to use; all by default. ``repeats`` says how many seeds each run has; the further ones are
    runs of their own, with seeds above the grid's.
    """
    chosen = [run for run in sweep.runs if not sweeps or set(sweeps) & set(run.sweeps)]
    if not chosen:
        place = f"{sweep.study.study}, tier {sweep.tier}"
        raise UserError(f"{place}: no runs to simulate in the sweeps {', '.join(sweeps)}")
    seeds = [run.config.seed for run in chosen]
    stride = max(seeds) - min(seeds) + 1
    runs = [_reseeded(run, stride * i) for i in range(repeats) for run in chosen]
    frame = pd.DataFrame([{**describe(run), "C": run.C} for run in runs])
    frame["_configuration"] = [
        run.config.model_copy(update={"seed": 0}).fingerprint() for run in runs
    ]
    floats = [c.name for c in COLUMNS if c.type == "float" and c.name in frame]
    frame = frame.astype(dict.fromkeys(floats, "float64"))
    frame = frame.assign(study=sweep.study.study, tier=sweep.tier)
    if rows.strip():
        frame = frame[select(columns(frame), rows)].reset_index(drop=True)
    if frame.empty:
        raise UserError(
            f"rows expression {rows!r} selects none of the {len(runs)} runs of "
            f"{sweep.study.study}, tier {sweep.tier}; `moelaws grid` lists them, and --rows '' "
            "takes them all"
        )
    return frame


def studys_mapping(study: Study, law: FittableLaw) -> dict[str, str]:
    """Returns variable -> column as in the study's first fit of this law; empty without one.

    If the study fits only another form of the law, its mapping is taken.
    """
    entries = [fit for fit in study.fits if fit.law.partition(":")[0] == law.id]
    entries.sort(key=lambda fit: fit.law != law.ref)  # this form first, in the study's order
    return dict(entries[0].mapping) if entries else {}


def simulate(
    frame: pd.DataFrame,  # of ``design``
    law: FittableLaw,  # whose response to simulate
    params: Mapping[str, float],  # its coefficients, natural scale
    *,
    # Variable -> the design's column. N is N_total by default; others go by their own names, or
    # are derived (``laws.mapping``).
    mapping: Mapping[str, str] = {},
    noise: float,  # standard deviation, of ln of the response or of itself
    seed: int = 0,  # of the noise
) -> Simulation:
    """Simulates the law's response in each row of a ``design``, under its own name, with noise.

    It takes the place of a column of that name: a law of the optimal D simulates D.

    A law of a logarithmic scale gets L = L_true exp(noise z), another L = L_true + noise z, with a
    standard normal z that follows from ``seed`` and the row's run alone: a run keeps its noise
    whatever the other rows, the law and the coefficients are. Runs of a trunk share ``OF_TRUNK`` of
    its variance.

    A variable that the design does not have is refused, and so is a value outside of its domain or
    a response that the noise makes infinite or zero.
    """
    variables, origins = _variables(frame, law, {**DEFAULT_MAPPING, **mapping})
    with np.errstate(over="ignore", under="ignore"):  # refused below
        true, z = law.predict(params, variables), standard_noise(frame, seed)
        observed = np.asarray(true * np.exp(noise * z) if law.log_response else true + noise * z)
    if (lost := ~np.isfinite(observed) | (law.log_response & (observed == 0))).any():
        row = int(np.argmax(lost))
        at = ", ".join(f"{name} = {values[row]:.6g}" for name, values in variables.items())
        raise UserError(
            f"run {frame['run_id'].iloc[row]} ({at}): {law.ref} gives {true[row]:.6g}, which noise "
            f"{noise:g} makes {observed[row]:g}; leave such runs out by --rows, or give less noise"
        )
    error = noise * observed if law.log_response else np.full_like(observed, noise)
    name, unit = law.response.name, law.response.unit
    measured = {
        name: Column(name, "float", f"{law.response.description}: simulated, with noise", unit),
        f"{name}_se": Column(f"{name}_se", "float", "its standard error, by the noise", unit),
        f"{name}_true": Column(f"{name}_true", "float", "the law's own value", unit),
    }
    out = frame.assign(source="simulated", status="completed")
    out = out.assign(**dict(zip(measured, (observed, error, true), strict=True)))
    seeds = out.groupby("_configuration")[name]
    out = out.assign(n_seeds=seeds.transform("count").astype("int64"))
    if name == "L":
        out = out.assign(L_seed_sd=seeds.transform("std"))
    declared = [measured.pop(c.name, c) for c in SIMULATED_COLUMNS]
    declared += measured.values()
    # Columns that only a training measures are added without values.
    out = out.reindex(columns=[column.name for column in declared])
    return Simulation(out, tuple(declared), origins)


def simulated(
    sweep: Sweep,
    entry: SimulationEntry,  # which law, where and with what noise
    repeats: int = 1,  # seeds of each run
    # The law's form, its coefficients and their mapping, if they are not the published ones
    fitted: tuple[FittableLaw, Mapping[str, float], Mapping[str, str]] | None = None,
    mapped: Mapping[str, str] = {},  # variable -> column, before those of the entry and the fit
) -> tuple[Simulation, dict[str, Any]]:
    """Returns the simulated table of a sweep, and how it was simulated, as its file says."""
    law = laws.fittable(entry.law)
    if not (fitted or law.published):
        raise UserError(f"law {law.ref} has no published coefficients; give --params FIT.json")
    law, params, own = fitted or (law, law.published or {}, {})
    frame, mapping = design(sweep, entry.rows, repeats, entry.sweeps), own or entry.mapping
    options: dict[str, Any] = {"noise": entry.noise, "seed": entry.seed}
    simulation = simulate(frame, law, params, mapping={**mapping, **mapped}, **options)
    about = {
        "law": law.ref,
        "params": dict(params),
        **options,
        "study": sweep.study.study,
        "tier": sweep.tier,
        "sweeps": list(entry.sweeps),
        "row_selection": entry.rows,
        "repeats": repeats,
        "variables": dict(simulation.origins),
        "assumed": entry.assumed,
    }
    return simulation, about


def write(simulation: Simulation, path: Path, about: Mapping[str, Any], code: str) -> None:
    """Writes Parquet, with units, ``about`` and the digest ``code``, or CSV: the values alone."""
    if path.suffix == ".csv":
        with replacing(path) as temporary:
            simulation.frame.to_csv(temporary, index=False)
    else:
        notes = {"simulation": json.dumps(about)}
        if "L_true" in simulation.frame:
            # A study's own table: figures and fits read it like a trained one.
            notes |= {key: about[key] for key in ("study", "tier", "stages") if key in about}
        write_table(simulation.frame, simulation.columns, path, notes, {"code": code})


def _reseeded(run: Run, more: int) -> Run:
    config = run.config.model_copy(update={"seed": run.config.seed + more})
    return replace(run, run_id=config.run_id, config=config)


def _variables(
    frame: pd.DataFrame, law: FittableLaw, mapping: Mapping[str, str]
) -> tuple[dict[str, Array], dict[str, str]]:
    """Returns the law's variables, each within its domain, and where each is from."""
    grid = numbers(frame)
    response = law.response.name  # a study's entry may map it, but it is still to be simulated
    mapping = {name: column for name, column in mapping.items() if name != response}
    given = sources(law, mapping, [*(name for name in grid if name != response), response])
    values = {n: grid[column] for n, column in given.columns.items() if n != response}
    derived, texts = derive(values, [step.result for step in given.derivations], law.derivations)
    values, origins = values | derived, {**given.columns, **texts}
    for name in values:
        variable = given.variables[name]
        if (wrong := ~variable.domain.holds(values[name])).any():
            row = int(np.argmax(wrong))
            raise UserError(
                f"run {frame['run_id'].iloc[row]}: {name} ({origins[name]}) is "
                f"{values[name][row]:.6g}; for {law.ref} it must be {variable.domain.text}; "
                "such runs can be left out by --rows"
            )
    used = [v.name for v in law.variables if v.name in values]  # others have defaults
    return {name: values[name] for name in used}, {name: origins[name] for name in used}


def standard_noise(frame: pd.DataFrame, seed: int) -> Array:
    """Returns a standard normal number (n,) for each row, with a correlation within each trunk."""
    keys = [frame["run_id"].tolist(), frame.get("trunk", frame["run_id"]).tolist()]
    own, shared = np.array([[_normal(f"{seed}:{key}") for key in names] for names in keys])
    together = math.sqrt(OF_TRUNK) * shared + math.sqrt(1 - OF_TRUNK) * own
    alone = [run == trunk for run, trunk in zip(*keys, strict=True)]
    return np.asarray(np.where(alone, own, together))


def _normal(key: str) -> float:
    """Returns a standard normal number that depends on ``key`` alone, not on NumPy's version."""
    bits = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") >> 12
    return NormalDist().inv_cdf((bits + 0.5) / 2**52)
