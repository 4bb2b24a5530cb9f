"""The allocation paper asks how a budget should be split between experts and attention.

laws/     ratio.py is Eq 1 and its coefficients, loss.py is Eq 2, elasticity.py is App A.2
derived/  r_star.py gives the best ratio of each budget and sparsity, fits.py its coefficients over
          sparsity and each run with r* beside its ratio
figures/  ratio.py makes what F1, F2 and F6 draw, loss.py what F4 draws
tables.py sets T1 to T4; claims.py has the trends of r*, a rule each
"""
