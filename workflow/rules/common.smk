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
from moelaws.grids.budget import over_limit
from moelaws.grids.sweep import expand_study, project_sources, too_long_for
from moelaws.records.code import closure
from moelaws.records.layout import Results
from moelaws.records.progress import watch
from moelaws.spec.errors import UserError
from moelaws.spec.project import chosen_studies, load_project
from moelaws.spec.study import label
from moelaws.tables.check import check_study
from moelaws.tables.kept_weights import kept_runs

RESULTS = Results()

try:
    PROJECT = load_project(overrides=config)
    SIMULATED = PROJECT.source == "simulated"
    STUDIES = {study.study: study for study in chosen_studies(PROJECT)}
    for study in STUDIES.values():
        check_study(study)
    # Of simulated losses there is nothing to train.
    SWEEPS = (
        {}
        if SIMULATED
        else {name: expand_study(study, PROJECT) for name, study in STUDIES.items()}
    )
    for name, sweep in SWEEPS.items():
        if problem := too_long_for(sweep.runs, project_sources(PROJECT)):
            raise UserError(f"config/studies/{name}.yaml: {problem}")
    KEPT = {name: sorted(kept_runs(sweep)) for name, sweep in SWEEPS.items()}
    PROBED = {
        run
        for name, kept in KEPT.items()
        if any(derived.hidden for derived in STUDIES[name].derived)
        for run in kept
    }
    # A dry run of too large a sweep only warns; a start is refused.
    if TOO_MUCH := over_limit(
        SWEEPS.values(),
        PROJECT,
        RESULTS,
        {run for kept in KEPT.values() for run in kept},
        PROBED,
    ):
        print(f"moelaws: warning: {TOO_MUCH}", file=sys.stderr)
except UserError as error:
    # The message is all that the user needs, not where the Snakefile met it.
    print(f"moelaws: {error}", file=sys.stderr)
    sys.exit(2)

TIER = PROJECT.tier
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
    return [
        RESULTS.kept(run) for run in sorted({r for kept in KEPT.values() for r in kept})
    ]


# Paths of this call's tier and source: those of the layout, with simulated ones in their own tree.
def table_file(study):
    return RESULTS.table(TIER, study, SIMULATED)


def derived_file(study, name):
    return RESULTS.derived(TIER, study, name, SIMULATED)


def fit_file(study, name):
    return RESULTS.fit(TIER, study, name, SIMULATED)


def figure_file(study, name):
    return RESULTS.figure(TIER, study, name, SIMULATED)


def paper_table_file(study, name):
    return RESULTS.paper_table(TIER, study, name, SIMULATED)


def verdicts_file(study):
    return RESULTS.verdicts(TIER, study, SIMULATED)


def claims_file():
    return RESULTS.claims(TIER, SIMULATED)


def report_file():
    return RESULTS.tier(TIER, SIMULATED) / "report.html"


def log_file(kind, study, name):
    return (
        RESULTS.root
        / "logs"
        / RESULTS.tier(TIER, SIMULATED).relative_to(RESULTS.root)
        / f"{kind}/{study}/{name}.log"
    )


def own_table(study):
    """The study's table; nothing for a study that only computes."""
    return [table_file(study)] if STUDIES[study].grids else []


def tables():
    return [path for study in STUDIES for path in own_table(study)]


def figures():
    return [
        figure_file(name, figure.id).with_suffix(".png")
        for name, spec in STUDIES.items()
        for figure in spec.figures
    ]


def paper_tables():
    return [
        paper_table_file(name, table.id)
        for name, spec in STUDIES.items()
        for table in spec.tables
    ]


def fits():
    return [
        fit_file(name, fit.name) for name, spec in STUDIES.items() for fit in spec.fits
    ]


def verdicts():
    return [verdicts_file(name) for name, spec in STUDIES.items() if spec.claims]


def claims_pages():
    """The page of the claims, where a chosen study makes any."""
    return [claims_file()] if verdicts() else []


def names(kind):
    """A wildcard's pattern: the entries of a kind, that no two rules make one file."""
    found = sorted({label(e) for s in STUDIES.values() for e in getattr(s, kind)})
    return "|".join(found) or "(?!)"


def hidden_states(study):
    """Of the runs whose weights the study keeps."""
    return [RESULTS.hidden(run) for run in KEPT.get(study, ())]


def entry(kind, study, name):
    """An entry of a study's YAML by its name."""
    for candidate in getattr(STUDIES[study], kind):
        if label(candidate) == name:
            return candidate
    raise WorkflowError(f"config/studies/{study}.yaml: no {name!r} among its {kind}")


def fitted_table(wildcards):
    """What a fit is fitted to: the study's table, a derived one or another fit's estimates."""
    study, named = wildcards.study, entry("fits", wildcards.study, wildcards.name).table
    if not named:
        return table_file(study)
    if named in {fit.name for fit in STUDIES[study].fits}:
        return fit_file(study, named)
    return derived_file(study, named)


def fits_read(study, entries):
    """The reports of the fits that the study's ``entries`` read, with their draws."""
    names = sorted({name for one in entries for name in one.fits})
    paths = [fit_file(study, name) for name in names]
    return paths + [path.with_suffix(".bootstrap.parquet") for path in paths]


def derived_read(study, entries):
    """The derived tables that the study's ``entries`` read."""
    return [
        derived_file(study, name)
        for name in sorted({name for one in entries for name in one.derived})
    ]


def read_by(kind):
    """Input functions for what one entry of a study's YAML reads."""

    def one(wildcards):
        return [entry(kind, wildcards.study, wildcards.name)]

    return {
        "table": lambda w: own_table(w.study),
        "fits": lambda w: fits_read(w.study, one(w)),
        "derived": lambda w: derived_read(w.study, one(w)),
    }


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
