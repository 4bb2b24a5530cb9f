"""FLOPs in each paper's convention, parameters by group, cost estimates: pure functions."""
