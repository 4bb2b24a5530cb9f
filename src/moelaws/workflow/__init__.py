"""What the rules of the workflow need to know of the project; it knows nothing of Snakemake."""
