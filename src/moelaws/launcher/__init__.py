"""Starts commands without loading large libraries anew: a process that has them forks for each."""
