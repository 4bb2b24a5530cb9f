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
        raise WorkflowError(f"refused: {TOO_MUCH}")
    if HERE:
        # Cores limit the jobs here. By its own limit of 100 a second Snakemake would look at all
        # waiting jobs each second, once more for each job that has ended: a whole core in the end.
        workflow.scheduler.job_rate_limiter = None
    try:
        if workflow.executor_plugin is SLURM:
            check(workflow.executor_settings)
        hold_results()
        for line in (*JOBS.left_out, *TRAININGS.lines()):
            logger.info(f"moelaws: {line}")
    except UserError as error:
        print(f"moelaws: {error}", file=sys.stderr)
        sys.exit(2)
    CALL.begin()


onsuccess:
    CALL.end(log, succeeded=True)


onerror:
    CALL.end(log, succeeded=False)


# Each target names the markers of its trainings: Snakemake makes nothing again that is missing between
# files that are there.
rule all:
    default_target: True
    input:
        JOBS.fits(),
        JOBS.reported(),
        JOBS.reports(),
        FOLDER.explore,
        JOBS.tables(),
        JOBS.own_code(),
        TRAININGS.markers(),
    localrule: True


rule figures:
    input:
        JOBS.pictures(),
        TRAININGS.markers(),
    localrule: True


rule tables:
    input:
        JOBS.tables(),
        TRAININGS.markers(),
    localrule: True


rule runs:
    input:
        TRAININGS.markers(),
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
