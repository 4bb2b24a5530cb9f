# What the rules share: the project as a tested module of the package knows it, and the environment
# of the jobs.
import json
import os
import shlex
import sys
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.jobs import GroupJob

from moelaws.grids.architectures import architectures
from moelaws.spec.errors import UserError
from moelaws.records.code import closure
from moelaws.workflow import groups
from moelaws.workflow.code import of_speed
from moelaws.workflow.gpus import GpuShares, gpus_here
from moelaws.workflow.jobs import Jobs, relative
from moelaws.workflow.launchers import Launchers
from moelaws.workflow.packs import Packs
from moelaws.workflow.requests import Requests
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
# Where commands start: on this machine, or in a job of a cluster, for so many runs. Elsewhere this
# process submits jobs. Which executor there is Snakemake does not tell yet, but a cluster's has a
# number of jobs.
HERE = workflow.nodes is None and not workflow.remote_exec
IN_JOB = (
    sum(":run=" in word for word in sys.argv)
    if workflow.nodes is None and workflow.remote_exec
    else 0
)
CUDA = JOBS.project.device == "cuda"
REQUESTS = Requests(
    JOBS.project, JOBS.runs, gpus_here(JOBS.project.gpus) if CUDA and HERE else ()
)
# Runs that one device does not hold, or as devices_per_run says.
SEVERAL = REQUESTS.any_on_several
if SEVERAL:
    TRAIN += " --devices {resources.devices}"
# On a cluster, the short runs that share a job, as many at a time as the profile's `cores` says.
PACKS = Packs({})
if workflow.nodes is not None and workflow.resource_settings.cores:
    PACKS = JOBS.packs(REQUESTS, workflow.resource_settings.cores)
    for name in PACKS.of.values():
        workflow.parent_groupids[name] = groups.PACKS
if not HERE:
    logger.addHandler(groups.Groups(workflow))
    GroupJob.log_error = groups.with_reason(GroupJob.log_error, logger)
if IN_JOB:  # where Snakemake runs no hook, such as onstart
    LAUNCHERS.begin({"train": IN_JOB})
    if granted := os.environ.get("SLURM_CPUS_PER_TASK"):
        # --cores all would be the node's where nothing binds the job to its own.
        workflow.global_resources["_cores"] = int(granted)
# On a cluster each job gets a GPU of its own, and CUDA sees no other; the runs of a pack share that
# one as those of one machine share its GPUs.
GPUS = None
if CUDA and (HERE or PACKS.of or IN_JOB > 1):
    GPUS = GpuShares(
        REQUESTS,
        JOBS.project.gpus if HERE else "all",
        gpus_here("all") if IN_JOB > 1 else REQUESTS.gpus,
    )
    if "gpu_shares" not in workflow.global_resources:
        workflow.register_resource("gpu_shares", GPUS.total)
if GPUS and not PACKS.of:
    # A sibling on the same GPU has its part of the cores too.
    TRAIN = f"export OMP_NUM_THREADS={{threads}}; {TRAIN} {GPUS.options} --gpu-shares "
    shares = "{resources.gpu_shares}"
    TRAIN += f"$(( {shares} / {{resources.devices}} ))" if SEVERAL else shares
if SEVERAL and not HERE:
    TRAIN += " --nodes {resources.spans}"


resource_scopes:
    gpu_shares="local",  # of a pack, or of this machine


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
    if GPUS and HERE:
        return GPUS.threads(wildcards.run, workflow.cores)
    return REQUESTS.devices(wildcards.run) // REQUESTS.nodes(wildcards.run)


def timed(wildcards):
    """The runs whose configurations are timed side by side: one of each architecture."""
    return [r.run_id for r in architectures(JOBS.sweeps[wildcards.study].runs)]


def timing_threads(wildcards):
    """The threads of torch where a study is timed: those of a training on one device."""
    if GPUS and HERE:
        return min(GPUS.threads(run, workflow.cores) for run in timed(wildcards))
    return 1


def pack(wildcards):
    """The pack of a run, which is a group of Snakemake's; None for a job of its own."""
    if workflow.local_exec and not workflow.dryrun:
        return None
    return PACKS.of.get(wildcards.run)


@cache
def packed_runs():
    """The runs of this call that train in packs; once Snakemake knows its jobs."""
    needed = workflow.dag.needrun_jobs(exclude_finished=False)
    runs = [(getattr(job.wildcards, "run", None), job.group) for job in needed]
    # With --groups a user may have put a run elsewhere.
    return {run for run, group in runs if run in PACKS.of and PACKS.of[run] == group}


@cache
def asking():
    """Of each pack the run that asks for what its job needs once."""
    return PACKS.firsts(packed_runs())


def asks(wildcards):
    """Whether a run asks for what its job needs once."""
    return wildcards.run not in packed_runs() or wildcards.run in asking()


def gpus_of_each_node(rule):
    """An input function for what a job on several nodes asks for on each, as Slurm's --gres.

    Of a number for the whole job (`gpu`) the nodes might have unequal parts, and Slurm refuses the
    step of one node in which the executor starts the job, for it would have all of them.
    """
    settings = workflow.resource_settings._parsed_overwrite_resources
    model = settings.get(rule, {}).get("gpu_model")  # Slurm wants it with both numbers
    kind = f"gpu:{model.raw}" if model else "gpu"

    def each(wildcards):
        nodes = REQUESTS.nodes(wildcards.run)
        return f"{kind}:{REQUESTS.devices(wildcards.run) // nodes}" if nodes > 1 else ""

    return each


def training_resources(rule):
    """Requests of one run, estimated from its size and doubled at each retry."""
    requests = {
        "mem_mb": lambda wildcards, attempt: REQUESTS.memory_mb(wildcards.run, attempt),
        "runtime": lambda wildcards, attempt: REQUESTS.minutes(
            wildcards.run, attempt, slack=asks(wildcards)
        ),
    }
    if GPUS:
        requests["gpu_shares"] = lambda wildcards: GPUS.of(wildcards.run)
    if CUDA and not HERE:
        requests["gpu"] = lambda wildcards: (
            asks(wildcards)
            * (REQUESTS.nodes(wildcards.run) == 1)
            * REQUESTS.devices(wildcards.run)
        )
    if SEVERAL:
        requests["devices"] = lambda wildcards: REQUESTS.devices(wildcards.run)
    if SEVERAL and not HERE:
        requests["spans"] = lambda wildcards: REQUESTS.nodes(wildcards.run)
        # In the job, of the step that starts the run's own step on all nodes: it has one.
        requests["nodes"] = lambda wildcards: (
            1 if IN_JOB else asks(wildcards) * REQUESTS.nodes(wildcards.run)
        )
        requests["tasks"] = requests["nodes"]
        requests["tasks_per_gpu"] = -1  # else Slurm is asked for the tasks once a GPU
        if CUDA and any(REQUESTS.nodes(run) > 1 for run in JOBS.runs):
            requests["gres"] = gpus_of_each_node(rule)
    return requests
