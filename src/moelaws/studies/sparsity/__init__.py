"""Sparsity paper (Abnar et al. 2025): how sparse and how large is best at one budget?

laws/     loss.py is Eq 6, isoflop.py is Eq 8
derived/  surface.py reads the fitted isoFLOP surfaces; optima.py and sparsity_optima.py give their
          minima, trends.py the slopes on which the claims rest, subsamples.py what refits to fewer
          runs predict, downstream.py and relation.py scores on tasks and how they follow the loss
figures/  surface.py is F1, slices.py F2, optima.py F3, F4, F11 and F12, goodness.py F6 and the
          baselines, flops.py F7, budgets.py F8 and F9, downstream.py F5 and F10; published.py draws
          the paper's own optima
search_space.py sets T1 from the runs alone, tables.py those of the fits; claims.py has a rule for
each claim
"""
