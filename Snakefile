# From grid to figure: every run of the chosen studies, their tables, fits, figures and a report.
#
#   snakemake --cores all                     the demo tier on this machine
#   snakemake --cores all -n                  what would run
#   snakemake --profile slurm                 on a cluster
#   snakemake --cores all --config tier=gpu   another key of config/config.yaml for this call
#
# The rules are in workflow/, where other workflows and catalogs look for them.
include: "workflow/Snakefile"


# An included file leaves no default target behind.
workflow.default_target = "all"
