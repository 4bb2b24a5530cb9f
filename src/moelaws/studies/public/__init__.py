"""The register of public runs: what mixtures that others trained say of the laws in print.

derived.py  takes the best run of each recipe, size and number of tokens; it gives isoFLOP optima,
            predictions of the largest runs, the leverage of mixtures, and the best rates
figures.py  draws them, and claims.py has the rules
"""
