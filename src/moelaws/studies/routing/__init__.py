"""Routed models of Clark et al. 2022: does routing help, and up to which size of model?

routers.py names the three routers and their fits, and gives the losses over steps of all runs
derived.py puts each routed run beside the dense model of its size, and gives the size at which
           routing stops helping and the intervals over base sizes
curves.py  draws training curves, figures.py the other figures; tables.py sets T3 and what belongs
           to it; claims.py measures claims
data/      the published runs: curves.csv.gz is the authors' file, runs.yaml the mapping that makes
           runs.parquet of it (``moelaws import``)
"""
