"""Sectional paper: what do experts that each see a section of the width cost? Nothing is trained.

laws/     cost.py is the paper's cost model, as printed and corrected; model.py evaluates both forms
          and holds the shapes at which they are shown
figures/  the model's curves; tables.py sets optima, costs and errata
claims.py has one rule a claim
"""
