"""The ``megablocks`` back end: the routed experts by the MegaBlocks package (Gale et al., 2023)."""
