"""The search of the leverage paper (App E): the best learning rate, batch and size of a budget.

derived/  near_optimal.py lists the runs, marks the near-optimal ones and gives the best size of
          each budget, noise.py refits the laws under the spread of seeds
figures.py makes what the figures draw
tables.py sets Table 5 and the coefficients of Eq 5
claims.py has what its claims measure
"""
