"""Sectional paper: what do experts that each see a section of the data cost, and do they learn?

laws/      cost.py is the paper's cost model, as printed and corrected
model.py   evaluates both forms, and holds the shapes at which they are shown
arms.py    the architectures of the paper's plan, which it did not train, by the grid's sweeps
derived/   what each arm came to, the experts' load, the speed of a step, FLOPs by number of slices
figures/   the model's curves (cost, optimum, reduction) and the arms' results
claims.py, tables.py          of the cost model: no run is behind them
run_claims.py, run_tables.py  of the trained arms
"""
