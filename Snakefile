# From grid to figure: every run of the chosen studies, their tables, fits, figures and a report.
#
#   snakemake --cores all                     the demo tier on this machine
#   snakemake --cores all -n                  what would run
#   snakemake --profile slurm                 on a cluster
#   snakemake --cores all --config tier=gpu   another key of config/config.yaml for this call
from snakemake.utils import min_version

min_version("9.20")


include: "workflow/rules/common.smk"


onstart:
    if TOO_MUCH:
        raise WorkflowError("refused: more than limits in config/config.yaml allow")
    trained = Trained(RESULTS, {run: JOBS.runs[run].flops for run in JOBS.runs})
    lines = [*JOBS.left_out]
    if JOBS.project.device == "cuda" and workflow.local_exec and not HERE:
        raise WorkflowError("device is cuda: give --cores without --jobs")
    if GPUS and HERE and trained.pending:
        try:
            lines.append(GPUS.words(trained.pending))
        except UserError as error:
            raise WorkflowError(str(error))
    if shared := PACKS.words(packed_runs()):
        lines.append(shared)
    for line in lines:
        logger.info(f"moelaws: {line}")
    CALL.begin(trained)
    if workflow.local_exec:
        LAUNCHERS.begin(CALL.counts)
        # The limit of jobs a second, which spares clusters, has Snakemake look at all files of all
        # waiting jobs every second, and once more a second for each job that has ended: on two
        # cores it took a tenth of the demo's time.
        workflow.scheduler.job_rate_limiter = None


onsuccess:
    LAUNCHERS.end()
    CALL.end(log, succeeded=True)


onerror:
    LAUNCHERS.end()
    CALL.end(log, succeeded=False)


rule all:
    default_target: True
    input:
        JOBS.figures(),
        JOBS.paper_tables(),
        JOBS.fits(),
        JOBS.claims_pages(),
        JOBS.laws_pages(),
        JOBS.outlooks(),
        FOLDER.report,
        FOLDER.explore,
        JOBS.weights(),
    localrule: True


rule figures:
    input:
        JOBS.figures(),
        JOBS.paper_tables(),
    localrule: True


rule tables:
    input:
        JOBS.tables(),
    localrule: True


rule runs:
    input:
        JOBS.summaries(),
        JOBS.weights(),
    localrule: True


include: "workflow/rules/corpora.smk"
include: "workflow/rules/runs.smk"
include: "workflow/rules/probing.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/fits.smk"
include: "workflow/rules/contests.smk"
include: "workflow/rules/outlook.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/claims.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/explore.smk"
