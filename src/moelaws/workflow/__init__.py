"""What the workflow's rules need to know of the project; nothing here imports Snakemake."""
