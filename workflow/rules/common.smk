# What the rules share: the project and its trainings as tested modules of the package know them.
import json
import shlex
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from moelaws.records.code import closure
from moelaws.spec.errors import UserError
from moelaws.workflow.code import of_speed
from moelaws.workflow.jobs import Jobs, relative
from moelaws.workflow.terminal import CallReport
from moelaws.workflow.trainings import Trainings

# Where jobs run: on this machine, or on a cluster, which a number of jobs tells. There Snakemake
# reads this file once more within each job.
IN_JOB = workflow.nodes is None and workflow.remote_exec
HERE = workflow.nodes is None and not workflow.remote_exec
if HERE and workflow.scheduling_settings:  # a dry run has none
    # Cores limit the jobs here. Snakemake's own limit of 100 a second would look at all waiting jobs
    # again one second after each look: the looks add up to a whole core.
    workflow.scheduling_settings.max_jobs_per_timespan = None

try:
    JOBS = Jobs.load(config)
    TRAININGS = Trainings(JOBS, HERE, IN_JOB)
    # A report, and a call beside another one, change nothing.
    if workflow.is_main_process and "--report" not in sys.argv:
        if not any(Path(".snakemake/locks").glob("*")):
            TRAININGS.prepare()
        # A dry run of too large a sweep only warns; a start is refused.
        if TOO_MUCH := JOBS.too_much():
            print(f"moelaws: warning: {TOO_MUCH}", file=sys.stderr)
except UserError as error:
    # The message is all that the user needs, not where the Snakefile met it.
    print(f"moelaws: {error}", file=sys.stderr)
    sys.exit(2)

# What this call shows. In the logs of these rules there may be warnings that a user should see: an
# optimum or a learning rate at the edge of those tried.
CALL = CallReport(
    logger, workflow.output_settings, {"aggregate", "derive", "fit"}, TRAININGS
)
if workflow.is_main_process:  # not where Snakemake runs one job of a cluster
    logger.addHandler(CALL)

TIER, RESULTS, FOLDER = JOBS.project.tier, JOBS.results, JOBS.folder


def words(*texts):
    """Words for a shell line; braces are doubled, for Snakemake formats the line."""
    return shlex.join(map(str, texts)).replace("{", "{{").replace("}", "}}")


# These stand in shell lines as they are, not as parameters of the rules: rules follow by content,
# and a difference here reruns nothing. First, what this call overrides, for the commands that
# expand a grid or choose a text.
SETTINGS = words(
    *("--tier", TIER),
    *(
        word
        for key, value in config.items()
        for word in ("--set", f"{key}={json.dumps(value)}")
    ),
)
SIMULATED = "--simulated" if JOBS.simulated else ""

shell.prefix(
    "set -euo pipefail; "
    # One thread a process, one process a core: oversubscribed matrix products collapse.
    "export OMP_NUM_THREADS=1 "
    # `.venv/bin/snakemake` finds the `moelaws` beside it without an activated environment.
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
    """The inputs of one entry of a study: what it reads, its code, and what the study asks for."""

    def entries(wildcards):
        return [JOBS.entry(kind, wildcards.study, wildcards.name)]

    return {
        "table": lambda w: JOBS.own_table(w.study),
        "fits": lambda w: JOBS.fits_read(w.study, entries(w)),
        "derived": lambda w: JOBS.derived_read(w.study, entries(w)),
        "code": lambda w: JOBS.code(kind, w.study, w.name),
        "spec": lambda w: JOBS.entry_spec(kind, w.study, w.name),
    }


def code(*modules):
    """The source files of modules and of all that they import."""
    return relative(closure(*modules))


def files_of(kind):
    """The files that the rule declares for one entry, as options of its command."""
    return lambda w: JOBS.files(w.study, [JOBS.entry(kind, w.study, w.name)])


def study_of(wildcards):
    """What commands take as the study: its name, or the file of a user's own."""
    return JOBS.studies[wildcards.study].reference


def log_file(kind):
    return RESULTS.log(FOLDER, kind, "{study}", "{name}")
