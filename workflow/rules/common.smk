# What the rules share: the project and its trainings, from tested modules of the package.
import atexit
import gc
import json
import os
import shlex
import signal
import sys
from functools import cache
from pathlib import Path


def interrupted(*_):
    """Ends this process after Ctrl-C, while it plans; ``CALL`` takes over when jobs begin."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.write(2, b"moelaws: interrupted\n")
    sys.exit(130)


# A shell has what it starts in the background ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, interrupted)

from snakemake.exceptions import WorkflowError
from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

import moelaws
from moelaws.files.lock import acquire, holder
from moelaws.records.code import closure
from moelaws.records.registration import read
from moelaws.spec.errors import UserError
from moelaws.spec.from_yaml import read_yaml
from moelaws.spec.words import without_tags
from moelaws.workflow.code import of_explore, of_outlook, of_study, relative
from moelaws.workflow.jobs import Jobs
from moelaws.workflow.labels import report_labels
from moelaws.workflow.slurm import SITE, SITE_LIMITS, Patient, check
from moelaws.workflow.terminal import CallReport
from moelaws.workflow.trainings import Trainings

# As a module of another workflow, the rules may be of one version and the package of another one.
if moelaws.__version__ != (VERSION := "0.1.0"):
    raise WorkflowError(
        f"these rules are of moelaws {VERSION}, and moelaws {moelaws.__version__} is installed; "
        "install the version that the module's tag names"
    )

gc.set_threshold(100_000, 50, 100)
# The installation compiles nothing, so the first import of a module does, and keeps the result.
# Images for containers forbid that, and each job would then compile pandas, scipy and torch anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Where jobs run: on this machine or, if a number of jobs is set, on a cluster. On a cluster,
# Snakemake also reads this file within each job.
IN_JOB = workflow.nodes is None and workflow.remote_exec
HERE = workflow.nodes is None and not workflow.remote_exec

# Jobs of Slurm are sent and followed by the plugin's executor with our additions.
SLURM = ExecutorPluginRegistry().get_plugin("slurm")
if not issubclass(SLURM.executor, Patient):
    SLURM.executor = type("Executor", (Patient, SLURM.executor), {})

try:
    if not HERE and Path(SITE).exists():  # its limits, unless this call has others
        limits = read_yaml(Path(SITE))
        config = {key: limits[key] for key in SITE_LIMITS if key in limits} | config
    JOBS = Jobs.load(config)
    TRAININGS = Trainings(JOBS, HERE, IN_JOB)
    # Snakemake's own locks see no call with --nolock, and none from another folder with the same
    # results. A call holds this one from onstart on; a second call would remove its files.
    OTHER_CALL = holder(JOBS.folder.root)
    # A report must change nothing, and so must a call while another one runs.
    if workflow.is_main_process and "--report" not in sys.argv:
        if not OTHER_CALL:
            TRAININGS.prepare()
        # If a sweep is too large, a dry run only warns, and a start is refused.
        if TOO_MUCH := JOBS.too_much() or JOBS.unregistered():
            print(f"moelaws: warning: {TOO_MUCH}", file=sys.stderr)
except UserError as error:
    # The user needs the message alone, not its place in the Snakefile.
    print(f"moelaws: {error}", file=sys.stderr)
    sys.exit(2)

# What this call shows. The logs of these rules may have warnings that a user should see, such as
# on an optimum or a learning rate at the edge of those tried.
CALL = CallReport(
    logger,
    workflow.output_settings,
    {"aggregate", "derive", "fit"},
    TRAININGS,
    (workflow.resource_settings.cores or 0) if HERE else 0,
)
if workflow.is_main_process:  # not where Snakemake runs one job of a cluster
    logger.addHandler(CALL)

TIER, RESULTS, FOLDER = JOBS.project.tier, JOBS.results, JOBS.folder


def refuse(owner):
    raise UserError(
        f"another call of Snakemake ({owner}) is at work on {FOLDER.root}; when it has ended, "
        "give this call again"
    )


def hold_results():
    """Holds the tier's folder until this process ends; refuses while another call does."""
    if OTHER_CALL:
        refuse(f"{OTHER_CALL['host']}, process {OTHER_CALL['pid']}")
    held = acquire(FOLDER.root, on_wait=refuse)
    held.__enter__()
    atexit.register(held.__exit__, None, None, None)


def words(*texts):
    """Returns words for a shell line, with braces doubled, because Snakemake formats the line."""
    return shlex.join(map(str, texts)).replace("{", "{{").replace("}", "}}")


# These are part of shell lines and no parameters of rules, so that a difference here reruns
# nothing: rules depend on contents. First, this call's overrides, for the commands that expand a
# grid or choose a text.
SETTINGS = words(
    *("--tier", TIER),
    *(
        word
        for key, value in config.items()
        for word in ("--set", f"{key}={json.dumps(value, ensure_ascii=False)}")
    ),
)


def make(kind, name="", more="", out="{output}"):
    """Returns the shell line of a rule that makes an entry of a study, or all of a kind."""
    return (
        f"moelaws make {kind} {{params.study:q}} {name} {SETTINGS} {more} "
        f"--out {out} > {{log}} 2>&1"
    )


def place(kind, out):
    """Returns the shell line that takes a figure or a table from those drawn in one job.

    One that could not be drawn there hides no other: it is tried alone, each time, until that
    works. Copies, for a job that is killed between two moves would find half of its files the
    next time.
    """
    return (
        "if [ -f {input.drawn}/{wildcards.name}.json ]; then "
        "cp {input.drawn}/{wildcards.name}.log {log}; "
        "for file in {output}; do cp {input.drawn}/$(basename $file) $file; done; "
        f"else {make(kind, '{wildcards.name}', out=out)}; fi"
    )


shell.prefix(
    "set -euo pipefail; "
    # One thread per process and one process per core: oversubscribed matrix products get very slow.
    "export OMP_NUM_THREADS=1 "
    # So `.venv/bin/snakemake` finds the `moelaws` beside it without an activated environment.
    "PATH="
    + words(Path(sys.executable).parent)
    + ":$PATH; "
)


wildcard_constraints:
    batch="[0-9a-f]{16}",
    corpus="[0-9a-f]{16}",
    study="|".join(JOBS.studies),
    name="[A-Za-z][A-Za-z0-9_]*",


def read_by(kind):
    """Returns the inputs of a study's entry, or of all of a kind where no wildcard names one.

    They are what it reads, its code, and its configuration.
    """
    return unpack(lambda w: JOBS.read_by(kind, w.study, w.get("name", "")))


def code(*modules):
    """Returns the source files of modules and of all that they import."""
    return relative(closure(*modules))


def study_of(wildcards):
    """Returns what commands take for the study: its name, or the file of a user's own."""
    return JOBS.studies[wildcards.study].reference


@cache
def registrations_of(study):
    """Returns what was registered of a study's sweep; the labels of all its pictures ask for it."""
    return [read(path) for path in JOBS.registrations(study)]


def labels_of(wildcards):
    """Returns what the report's list says of a figure or a table."""
    registrations = registrations_of(wildcards.study)
    return report_labels(JOBS.studies[wildcards.study], wildcards.name, registrations)


def text_of_report(name):
    """Returns the path of a text of the report; as a module, the workflow has it elsewhere."""
    here = Path("workflow/report", name)
    return str(here) if here.exists() else workflow.source_path(f"../report/{name}")


def log_file(kind):
    return RESULTS.log(FOLDER, kind, "{study}", "{name}")
