"""Routed models of Clark et al. 2022: does routing help, and up to which size of model?

routers.py names the three routers, their fits and the runs that Eq 1 speaks of
derived/  gains.py puts each routed run beside the dense model of its size, cutoffs.py gives the
          size at which routing stops helping, sizes.py the intervals over base sizes, curves.py
          the losses over steps
figures/  one module a figure; looks.py has colours and axes, common.py what a fit predicts
tables.py sets T3 and what belongs to it; claims.py has a rule for each claim
data/     the published runs: curves.csv.gz is the authors' file, runs.yaml the mapping that makes
          runs.parquet of it (``moelaws import``)
"""
