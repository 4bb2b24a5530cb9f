"""Sparsity paper (Abnar et al. 2025): how sparse and how large is best at one budget?

laws/     loss.py is Eq 6, isoflop.py is Eq 8
derived/  surface.py reads fitted isoFLOP surfaces and refits them to fewer runs, optima.py gives
          their minima, trends.py the slopes on which the claims rest, null.py the surfaces that
          those are compared with, contrasts.py the best trials and the gain from sparsity at equal
          width, scores.py scores on tasks and how they follow the loss
figures/  surface.py is F1, F2, F8 and F9, optima.py F3, F4, F11 and F12, goodness.py F6 and the
          baselines, flops.py F7, downstream.py F5 and F10, runs.py contrasts and times
tables.py sets T1 from the runs and those of the fits; its claims need no code of their own
"""
