"""Training of one run: loop, optimizer, schedule, checkpoints, evaluation."""
