"""Routed models of Clark et al. 2022: does routing help, and up to which size of model?

data/     the published runs: curves.csv.gz is the authors' file, runs.yaml the mapping that makes
          runs.parquet of it (``moelaws import``)
"""
