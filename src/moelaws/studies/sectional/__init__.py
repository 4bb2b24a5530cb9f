"""Sectional paper: what do experts that each see a section of the data cost, and do they learn?

laws/      cost.py is the paper's cost model, as printed and corrected
arms.py    names the architectures of the paper's plan, which it did not train, by the grid's sweeps
derived/   arms.py has the results of each arm, load.py the load of its experts and how alike they
           are, speeds.py the time of a step and the FLOPs by number of slices
figures/   model.py draws the cost model's curves, arms.py the arms' results and their load
tables.py  of the cost model and of the trained arms
claims.py  of the cost model, on which no run bears; run_claims.py of the trained arms
"""
