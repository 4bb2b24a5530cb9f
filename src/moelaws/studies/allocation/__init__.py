"""The allocation paper asks how a budget should be split between experts and attention.

laws/     ratio.py is Eq 1 and its coefficients, loss.py is Eq 2, elasticity.py is App A.2
derived/  r_star.py gives the best ratio of each budget and sparsity, stages.py its coefficients
          over sparsity, runs.py each run with r* beside its ratio; cells.py groups the runs,
          trends.py measures what the claims rest on
figures/  valleys.py is F1 and F6, scaling.py F2, goodness.py F3 and F5, curve.py F4
tables.py sets T1, T3 and T4 from fits, hyperparameters.py sets T2 from the runs
claims.py has one rule a claim
"""
