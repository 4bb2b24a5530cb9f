"""``moelaws grid``: what a sweep holds and costs, before anyone spends it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.common import Data, json_command, option, print_answer, table_text, warn
from moelaws.cli.project import project_options
from moelaws.files.layout import Results
from moelaws.records.names import name_of
from moelaws.spec.errors import UserError
from moelaws.spec.from_toml import table_beside
from moelaws.spec.hyperparameters import choice_of
from moelaws.spec.project import Project, chosen_studies
from moelaws.spec.tier import CPU_TIERS, TIERS
from moelaws.spec.words import counted, short

if TYPE_CHECKING:
    from moelaws.accounting.cost import Device, PerRun
    from moelaws.grids.sweep import Sweep

LONG = 150  # runs; a longer sweep is summarised by budget and sparsity unless --all is given
COLUMNS, PLACED = table_beside(__file__).values()


@json_command
@click.argument("study", required=False)
@project_options
@option("--all every", "Print a line for each run, however many.", is_flag=True)
@option("--stages by_stage", "Print what each stage of the grid adds and costs.", is_flag=True)
@option("--run prefix", "Print the configuration of one run alone, for moelaws train.")
def command(
    study: str | None,
    project: Project,
    every: bool,
    by_stage: bool,
    prefix: str | None,
    as_json: bool,
) -> None:
    """List the runs that STUDY's grid expands to: sizes, FLOPs and estimated cost.

    Without STUDY they are those of each study of the configuration. The estimate of time rests on
    the finished runs of this machine, where there are any.

    --run takes a run_id, or the first digits of one.
    """
    from moelaws.accounting.cost import device_of
    from moelaws.grids.sweep import beyond_step_law
    from moelaws.grids.timings import learned
    from moelaws.workflow.check import check_study

    sweeps = _sweeps(study, project)
    for sweep in sweeps:
        check_study(sweep.study)
    if prefix is not None:
        runs = {r.run_id: r for s in sweeps for r in s.runs if r.run_id.startswith(prefix)}
        if len(runs) != 1:
            raise UserError(
                f"--run is {prefix!r}, and the ids of {len(runs)} runs of this sweep begin with "
                "it; `moelaws grid` without --run lists them"
            )
        click.echo(next(iter(runs.values())).config.canonical_json())
        return
    own = project.tier not in TIERS  # such a tier is for the project's device
    on_cpu = project.device == "cpu" if own else project.tier in CPU_TIERS
    device = learned(device_of("cpu" if on_cpu else "cuda", project), Results())
    if by_stage:
        rows = [row for sweep in sweeps for row in _stages(sweep, project, device)]
        print_answer(as_json, rows, _by_stage(rows))
        return
    listed = {s.study.study: _rows(s, device, project.devices_per_run) for s in sweeps}
    data = listed[sweeps[0].study.study] if study else listed
    lines: list[str] = []
    if not as_json:
        for sweep in sweeps:
            lines += _lines(sweep, listed[sweep.study.study], device, every, project)
        warn(*filter(None, [beyond_step_law(sweeps, project)]))
    print_answer(as_json, data, "\n".join(filter(None, [*lines, device.basis])))


def _sweeps(study: str | None, project: Project) -> list[Sweep]:
    from moelaws.grids.sweep import expand_study, sweep_of

    if study:
        return [sweep_of(study, project)]
    chosen = chosen_studies(project)
    sweeps = [expand_study(s, project) for s in chosen if project.tier in s.grids]
    if not sweeps:
        names = ", ".join(s.study for s in chosen)
        raise UserError(f"no study of the configuration ({names}) has a grid {project.tier}")
    return sweeps


def _lines(
    sweep: Sweep, rows: list[Data], device: Device, every: bool, project: Project
) -> Iterator[str]:
    """Yields a sweep's runs and their cost; warns where they cannot be run as they are."""
    from moelaws.grids.budget import budget
    from moelaws.grids.sweep import too_long_for
    from moelaws.tables.describe import kept_runs

    title = f"{sweep.study.study}, {project.tier}: {counted(len(rows), 'run')}"
    if every or len(rows) <= LONG:
        shown = [*COLUMNS, *(PLACED if device.own_memory else ())]
        shown += ["corpus"] * (len(sweep.texts) > 1)
        cells = [[_cell(name, row[name]) for name in shown] for row in rows]
        yield table_text(shown, cells, title, cut=True)
    else:
        yield _summary(rows, title)
    kept = kept_runs(sweep)
    yield budget(sweep.runs, device, kept, per_run=project.devices_per_run).words()
    memory = max(r["estimated_memory"] for r in rows) / 1e9
    yield f"the largest run needs about {memory:.2g} GB of memory"
    together = Counter(r["devices"] for r in rows)
    if set(together) != {1}:
        runs = ", ".join(f"{together[n]:,} on {n}" for n in sorted(together))
        yield (
            "placed by memory or devices_per_run, runs on so many GPUs of "
            f"{device.own_memory / 1e9:g} GB: {runs}"
        )
    if device.own_memory and memory * 1e9 > device.own_memory:
        warn(
            f"a run wants more than the {device.own_memory / 1e9:.0f} GB of each GPU, on as many "
            "as it has balance groups (sequences of a dense model): lower balance_group (batch, "
            "where it is not set), context or the model's size"
        )
    grid, gates = sweep.study.grids[project.tier], sorted({r["gates"] for r in rows})
    if "chosen" in {getattr(rule, "rule", "") for rule in (grid.derive.lr, grid.derive.batch)}:
        warn(*filter(None, map(choice_of(project).borrowed, gates)))
    if problem := too_long_for(sweep):
        warn(f"this sweep cannot be run as it is: {problem}")


def _stages(sweep: Sweep, project: Project, device: Device) -> Iterator[Data]:
    """Yields what each stage of a grid adds to those before it, and the seconds of that."""
    from moelaws.grids.sweep import expand_study

    known = set[str]()
    for stage in sweep.study.grids[project.tier].stages:
        own = expand_study(sweep.study, project.model_copy(update={"stages": (stage,)}))
        rows = [r for r in _rows(own, device, project.devices_per_run) if r["run_id"] not in known]
        known |= {row["run_id"] for row in rows}
        yield {
            "study": sweep.study.study,
            "stage": stage,
            "runs": len(rows),
            "FLOPs": sum(row["flops_spent"] for row in rows),
            "seconds": sum(row["device_seconds"] for row in rows),
            "longest": max((row["estimated_seconds"] for row in rows), default=0.0),
        }


def _by_stage(rows: list[Data]) -> str:
    if not rows:
        return "no grid of these has stages"
    cells = [[short(x) if isinstance(x, float) else x for x in row.values()] for row in rows]
    return table_text([*rows[0]], cells, "each stage adds")


def _cell(name: str, value: Any) -> object:
    """Returns a size as people write it, and the beginning of an id."""
    if name in ("N_total", "N_active", "D"):
        return short(value, 4)
    return value[:8] if name == "run_id" else value


def _rows(sweep: Sweep, device: Device, per_run: PerRun) -> list[Data]:
    """Returns each run's columns in the study's table, with its devices and its cost."""
    from moelaws.accounting.cost import placed, spent
    from moelaws.tables.describe import describe, kept_runs

    own = spent([run.config for run in sweep.runs], kept_runs(sweep))
    costs = [placed(config, device, per_run) for config in own]
    return [
        {
            **describe(run),
            "name": name_of(run.config),
            "C": run.C,
            "device": device.name,
            "devices": cost.devices,
            "micro_batch": cost.micro_batch,
            "shared_steps": run.config.steps - part.steps,
            "flops_spent": cost.flops,
            "estimated_seconds": cost.seconds,
            "device_seconds": cost.device_seconds,
            "estimated_memory": cost.device_bytes or cost.host_bytes,
        }
        for run, part, cost in zip(sweep.runs, own, costs, strict=True)
    ]


def _summary(rows: list[Data], title: str) -> str:
    """Returns a line for each budget and sparsity, with the ends of their runs' sizes."""
    import pandas as pd

    sizes = ("d_model", "N_total", "N_active", "D")
    columns = {f"{end} {size}": (size, end) for size in sizes for end in ("min", "max")}
    columns |= {"runs": ("S", "size"), "FLOPs": ("C_sparsity", "sum"), "hours": ("hours", "sum")}
    frame = pd.DataFrame(rows)
    frame["hours"] = frame["device_seconds"] / 3600
    groups = frame.groupby(["C", "S"], dropna=False).agg(**columns).reset_index()
    lines = [list(group.values()) for group in groups.to_dict("records")]
    return table_text([*groups], lines, f"{title}, summed up (--all for each)")
