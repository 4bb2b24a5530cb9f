# What the rules share: the project, its sweeps, and the paths that results/ gives them.
import hashlib
import json
import os
import shlex
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from moelaws import laws
from moelaws.accounting.cost import DEVICES, estimate
from moelaws.grids.sweep import expand_study, project_sources, too_long_for
from moelaws.records.code import closure
from moelaws.records.layout import Results
from moelaws.records.progress import watch
from moelaws.spec.errors import UserError
from moelaws.spec.project import chosen_studies, load_project
from moelaws.tables.check import check_study
from moelaws.tables.keep import kept_runs

RESULTS = Results()

try:
    PROJECT = load_project(overrides=config)
    SWEEPS = {s.study: expand_study(s, PROJECT) for s in chosen_studies(PROJECT)}
    for name, sweep in SWEEPS.items():
        check_study(sweep.study)
        if problem := too_long_for(sweep.runs, project_sources(PROJECT)):
            raise UserError(f"config/studies/{name}.yaml: {problem}")
    KEPT = sorted({run for sweep in SWEEPS.values() for run in kept_runs(sweep)})
except UserError as error:
    # The message is all that the user needs, not where the Snakefile met it.
    print(f"moelaws: {error}", file=sys.stderr)
    sys.exit(2)

TIER = PROJECT.tier
STUDIES = {name: sweep.study for name, sweep in SWEEPS.items()}
RUNS = {run.run_id: run for sweep in SWEEPS.values() for run in sweep.runs}
CORPORA = {
    key: corpus for sweep in SWEEPS.values() for key, corpus in sweep.corpora.items()
}


def exported(name, value):
    """NAME=VALUE for the shell; braces doubled, for Snakemake formats the prefix too."""
    return f"{name}={shlex.quote(value)}".replace("{", "{{").replace("}", "}}")


shell.prefix(
    "set -euo pipefail; export "
    + " ".join(
        [
            # One thread a process, one process a core: oversubscribed matrix products collapse.
            exported("OMP_NUM_THREADS", "1"),
            # What the command line overrode, handed on to the commands. Rules follow by content,
            # not by this: a text that differs here reruns nothing.
            exported("MOELAWS_OVERRIDES", json.dumps({**config, "tier": TIER})),
            exported("MOELAWS_DEVICE", PROJECT.device),
            # `.venv/bin/snakemake` finds the `moelaws` beside it without an activated environment.
            exported("PATH", str(Path(sys.executable).parent)) + ":$PATH; ",
        ]
    )
)


wildcard_constraints:
    run="[0-9a-f]{16}",
    corpus="[0-9a-f]{16}",
    study="|".join(STUDIES),
    name="[A-Za-z][A-Za-z0-9_]*",


def code(*modules):
    """Source files that a job depends on, compared by content: editing one reruns the job."""
    return [os.path.relpath(path) for path in closure(*modules)]


def summaries(study=None):
    runs = RUNS if study is None else [run.run_id for run in SWEEPS[study].runs]
    return [RESULTS.summary(run) for run in runs]


def weights():
    return [RESULTS.kept(run) for run in KEPT]


def tables():
    return [RESULTS.table(TIER, study) for study in STUDIES]


def figures():
    return [
        RESULTS.figure(TIER, name, figure.id).with_suffix(".png")
        for name, spec in STUDIES.items()
        for figure in spec.figures
    ]


def fits():
    return [
        RESULTS.fit(TIER, name, fit.name)
        for name, spec in STUDIES.items()
        for fit in spec.fits
    ]


def report_file():
    return RESULTS.tier(TIER) / "report.html"


def entry(kind, study, name):
    """An entry of a study's YAML by its name."""
    label = "id" if kind == "figures" else "name"
    for candidate in getattr(STUDIES[study], kind):
        if getattr(candidate, label) == name:
            return candidate
    raise WorkflowError(f"config/studies/{study}.yaml: no {name!r} among its {kind}")


def table_inputs(kind):
    """Input functions for what an entry's YAML names: its fits (with draws) and derived tables."""

    def fits(wildcards):
        names = entry(kind, wildcards.study, wildcards.name).fits
        paths = [RESULTS.fit(TIER, wildcards.study, name) for name in names]
        return paths + [path.with_suffix(".bootstrap.parquet") for path in paths]

    def derived(wildcards):
        names = getattr(entry(kind, wildcards.study, wildcards.name), "derived", ())
        return [RESULTS.derived(TIER, wildcards.study, name) for name in names]

    return fits, derived


def sweep_digest(study):
    """Which runs, under which budgets, in which order."""
    text = json.dumps([(run.run_id, run.C) for run in SWEEPS[study].runs])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def lacked_memory(run):
    """When the run ended out of memory, as its record says; empty where it never did."""
    marker = RESULTS.lacked_memory(run)
    return marker.read_text() if marker.exists() else ""


def training_resources(device):
    """Requests of one run, estimated from its size and doubled at each retry."""

    def cost(wildcards):
        return estimate(RUNS[wildcards.run].config, DEVICES[device])

    def memory(wildcards, attempt):
        # In a Slurm job two processes of Snakemake, 165 MB each, share it with the trainer.
        return (400 + int(cost(wildcards).host_bytes / 1e6 * 1.5)) * 2 ** (attempt - 1)

    def minutes(wildcards, attempt):
        # Generous, for nodes differ; at most two days, for a run that is cut off only resumes.
        return min(2880, (10 + int(cost(wildcards).seconds / 20)) * 2 ** (attempt - 1))

    requests = {"mem_mb": memory, "runtime": minutes}
    return {**requests, "gpu": 1} if device == "cuda" else requests
