"""Leverage paper: how much compute does a mixture of experts save over a dense model?

laws/      curve.py is a loss curve, loss.py, activation.py (Eq 1), granularity.py (Eq 2),
           compute.py (Eq 3) and joint.py (Eq 4); moelaws/laws/leverage holds the laws of learning
           rate, batch and size that grids of every study follow
derived/   points.py and singles.py make tables of efficiency leverage, forms.py of other forms of
           the laws, optima.py of the best granularity and shares, losses.py of the runs that
           loss.py is fitted to, scores.py of the pair's scores on tasks; curves.py and
           efficiency.py are Algorithm 1, series.py the sub-experiments with their parabolas and
           slopes (pooled.py), trends.py the slopes of EL
figures/   draws the paper's pictures
tables.py  sets the tables that list runs and scores, coefficients.py those that compare fits
claims.py  has one rule a claim
"""
