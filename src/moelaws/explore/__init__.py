"""One page to read a tier by: its answers, runs, curves, laws, figures and claims."""
