"""What a run, a grid and a study are: schemas, validation and identity, nothing else."""
