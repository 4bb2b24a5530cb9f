"""Leverage paper: how much compute does a mixture of experts save over a dense model?

laws/      curve.py is a loss curve, loss.py, activation.py (Eq 1), granularity.py (Eq 2),
           compute.py (Eq 3) and joint.py (Eq 4); moelaws/laws/leverage holds the laws of learning
           rate, batch and size that grids of every study follow
derived/   curves.py is Algorithm 1, points.py makes tables of efficiency leverage and of the forms
           of its laws, series.py has the sub-experiments, runs.py lists the runs that loss.py is
           fitted to and the pair's scores on tasks
figures/   curves.py makes curves beside leverage and the joint law, losses.py losses over what is
           varied, training curves and scores, leverage.py points of leverage
tables.py  sets the paper's tables
claims.py  has the slopes of leverage and what its claims measure
"""
