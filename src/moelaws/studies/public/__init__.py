"""The register of public runs: what mixtures that others trained say of the laws in print.

derived.py      takes the best run of each recipe, size and number of tokens; it gives isoFLOP
                optima, the leverage of mixtures, and the best rates
predictions.py  predicts the runs of the largest budget
figures.py and frontier.py make what figures draw, the latter with fits; claims.py measures claims
"""
