"""Sectional paper: what do experts that each see a section of the data cost, and do they learn?

laws/      cost.py is the paper's cost model, as printed and corrected
model.py   evaluates both forms, and holds the shapes at which they are shown
arms.py    the architectures of the paper's plan, which it did not train, by the grid's sweeps
derived/   arms.py is what each arm came to, load.py its experts' load and likeness, speeds.py the
           time of a step and the FLOPs by number of slices
figures/   model.py draws the cost model's curves, arms.py the arms' results, balance.py their load
tables.py  of the cost model and of the trained arms
claims.py  of the cost model, on which no run bears; run_claims.py of the trained arms
"""
