"""Trains a run: loop, optimizer, schedule, checkpoints, evaluation."""
