"""Learning rate and batch over parameters and tokens (Step Law, Li et al. 2025, 2503.04715)."""

from moelaws.laws.declared import law_beside

LAW, VARIANTS = law_beside(__file__)
BEYOND = (
    "Step Law sets learning rates or batches beyond the searches behind it, which had 0.2e9 to "
    "2.2e9 parameters and 2e9 to 100e9 tokens; a search of your own is safer "
    "(docs/hyperparameters.md)"
)


def is_searched(N: float, D: float) -> bool:
    """Returns whether the searches behind the law had models of ``N`` parameters on ``D`` tokens.

    ``BEYOND`` says it in words.
    """
    return 0.2e9 <= N <= 2.2e9 and 2e9 <= D <= 100e9
