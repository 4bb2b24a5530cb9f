# What the rules share: the project as a tested module of the package knows it, and the environment
# of the jobs.
import json
import shlex
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from moelaws.spec.errors import UserError
from moelaws.records.code import closure
from moelaws.workflow.gpus import GpuShares
from moelaws.workflow.jobs import Jobs, relative
from moelaws.workflow.launchers import Launchers
from moelaws.workflow.terminal import CallReport
from moelaws.workflow.trained import Trained

try:
    JOBS = Jobs.load(config)
    # A dry run of too large a sweep only warns; a start is refused.
    if TOO_MUCH := JOBS.too_much():
        print(f"moelaws: warning: {TOO_MUCH}", file=sys.stderr)
except UserError as error:
    # The message is all that the user needs, not where the Snakefile met it.
    print(f"moelaws: {error}", file=sys.stderr)
    sys.exit(2)

# What this call shows. In the logs of these rules there may be warnings that a user should see: an
# optimum or a learning rate at the edge of those tried.
CALL = CallReport(logger, workflow.output_settings, {"aggregate", "derive", "fit"})
if workflow.is_main_process:  # not where Snakemake runs one job of a cluster
    logger.addHandler(CALL)

LAUNCHERS = Launchers()

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
TRAIN = "exec moelaws train - " + words(
    *("--results", RESULTS.root, "--device", JOBS.project.device)
)
# The GPUs of this machine. On a cluster the scheduler chooses one for each job, and CUDA sees no
# other. Which executor there is Snakemake does not tell yet, but a cluster's has a number of jobs.
GPUS = None
if (
    JOBS.project.device == "cuda"
    and workflow.nodes is None
    and not workflow.remote_exec
):
    GPUS = GpuShares(JOBS.project, JOBS.runs)
    if "gpu_shares" not in workflow.global_resources:
        workflow.register_resource("gpu_shares", GPUS.total)
    # A sibling on the same GPU has its part of the cores too.
    TRAIN = (
        f"export OMP_NUM_THREADS={{threads}}; {TRAIN} "
        f"{GPUS.options} --gpu-shares {{resources.gpu_shares}}"
    )
# Where losses are simulated.
SIMULATED = ["--simulated"] if JOBS.simulated else []

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
    run="[0-9a-f]{16}",
    corpus="[0-9a-f]{16}",
    study="|".join(JOBS.studies),
    name="[A-Za-z][A-Za-z0-9_]*",


def log_file(kind):
    return RESULTS.log(FOLDER, kind, "{study}", "{name}")


def read_by(kind):
    """Input functions for what one entry of a study's YAML reads."""

    def entries(wildcards):
        return [JOBS.entry(kind, wildcards.study, wildcards.name)]

    return {
        "table": lambda w: JOBS.own_table(w.study),
        "fits": lambda w: JOBS.fits_read(w.study, entries(w)),
        "derived": lambda w: JOBS.derived_read(w.study, entries(w)),
    }


def code_of(kind):
    """An input function for the source files behind one entry, compared by content."""
    return lambda w: JOBS.reader_code(
        w.study, kind, [JOBS.entry(kind, w.study, w.name)]
    )


def code(*modules):
    """The source files of modules and of all that they import."""
    return relative(closure(*modules))


def files_of(kind):
    """The files that the rule declares for one entry, as options of its command."""
    return lambda w: JOBS.files(w.study, [JOBS.entry(kind, w.study, w.name)])


def study_of(wildcards):
    """What commands take as the study: its name, or the file of a user's own."""
    return JOBS.studies[wildcards.study].reference


def training_threads(wildcards):
    """Cores of one run: on GPUs, its part of those that Snakemake was given."""
    return GPUS.threads(wildcards.run, workflow.cores) if GPUS else 1


def training_resources():
    """Requests of one run, estimated from its size and doubled at each retry."""
    requests = {
        "mem_mb": lambda wildcards, attempt: JOBS.memory_mb(wildcards.run, attempt),
        "runtime": lambda wildcards, attempt: JOBS.minutes(wildcards.run, attempt),
    }
    if GPUS:
        requests["gpu_shares"] = lambda wildcards: GPUS.of(wildcards.run)
    elif JOBS.project.device == "cuda":
        requests["gpu"] = 1
    return requests
