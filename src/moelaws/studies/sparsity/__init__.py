"""Sparsity paper (Abnar et al. 2025): how sparse and how large is best at one budget?

laws/     loss.py is Eq 6, isoflop.py is Eq 8
derived/  surface.py reads fitted isoFLOP surfaces and refits them to fewer runs, optima.py gives
          their minima, trends.py the slopes on which the claims rest and the nulls that those are
          compared with, contrasts.py the best trials and the gain from sparsity at equal width,
          scores.py scores on tasks and how they follow the loss
figures/  surface.py makes the maps of F1 and F8 and the slices of F2 and F9, optima.py F4 and the
          published optima, runs.py F5 and F10 with the contrasts and times of runs
tables.py sets T1 from the runs and those of the fits; its claims need no code of their own
"""
